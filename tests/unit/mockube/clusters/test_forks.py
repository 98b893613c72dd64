"""The forks of a named cluster: orders, names, options and ends, without the programs of a cluster."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from mockube.cli.detach import detach_from_loop
from mockube.clusters.forks import ForkSupervisor, StartedFork, fork_spec
from mockube.clusters.named_cluster import ClusterRecord, cluster_folder, write_record
from mockube.clusters.spec import ClusterSpec
from mockube.clusters.supervisor import Supervisor
from mockube.component_base.clock import RealClock
from mockube.component_base.fork_orders import ForkAnswer, ForkOrder
from mockube.failure import Failure
from mockube.launch import DEFAULT_NODES
from tests.support.event_loop import WAIT_TIMEOUT, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks exist on Linux only")


def spec_of(*flags, **fields):
    defaults = {"version": "1", "nodes": DEFAULT_NODES, "packs": "", "manager_flags": (), "store": "memory"}
    return ClusterSpec(flags=flags, **(defaults | fields))


def start_waiting():
    """Start a process that waits for a signal, and return its id."""
    return os.posix_spawn(sys.executable, [sys.executable, "-c", "import signal; signal.pause()"], os.environ)


class Starter:
    """Starts a process that only waits, in place of a cluster."""

    def __init__(self):
        self.started, self.pids, self.error = [], [], None

    async def __call__(self, folder, spec):
        self.started.append((folder.name, spec))
        if self.error is not None:
            raise self.error
        pid = start_waiting()
        self.pids.append(pid)
        record = ClusterRecord(
            pid=1, version="1", started="", detached=True, nodes=0, packs="", store="memory"
        )
        write_record(folder, msgspec.structs.replace(record, url="https://127.0.0.1:7"))
        return StartedFork(pid=pid)


@pytest.fixture
def parent(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = cluster_folder("parent", os.environ)
    folder.prepare()
    for name in ("ca.key", "admin.kubeconfig"):
        (folder.pki / name).write_text(name)
    return folder


async def send(path, name):
    snapshot = path.with_name(f"{name}.gz")
    snapshot.write_bytes(b"objects")
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        writer.write(msgspec.json.encode(ForkOrder(name=name, snapshot=str(snapshot))) + b"\n")
        return msgspec.json.decode(await reader.readline(), type=ForkAnswer)
    finally:
        writer.close()


async def test_fork_has_keys_and_snapshot_of_its_parent_and_ends_with_it(parent):
    start = Starter()
    async with ForkSupervisor(parent, spec_of(), start).running() as path:
        answer = await send(path, "other")
        assert (answer.url, answer.problem) == ("https://127.0.0.1:7", "")
        folder = cluster_folder("other", os.environ)
        assert answer.kubeconfig == str(folder.kubeconfig)
        assert [each.name for each in folder.pki.iterdir()] == ["ca.key"]
        assert (folder.snapshot.read_bytes(), folder.fork_of.read_text()) == (b"objects", "parent")
        assert not Path(path).with_name("other.gz").exists()
        ((name, spec),) = start.started
        assert (name, spec.fork_of, spec.flags[-1]) == ("other", "parent", f"--snapshot={folder.snapshot}")
    (pid,) = start.pids
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_fork_that_was_killed_is_waited_for_and_leaves_no_keys(parent):
    start, folder = Starter(), cluster_folder("other", os.environ)
    async with ForkSupervisor(parent, spec_of(), start).running() as path:
        await send(path, "other")
        os.kill(start.pids[0], signal.SIGKILL)
        await until(lambda: not folder.pki.exists())
        with pytest.raises(ProcessLookupError):
            os.kill(start.pids[0], 0)
        assert (await send(path, "other")).problem == "", "the folder of a fork is used again"


async def test_folder_of_an_earlier_fork_has_no_keys_of_it(parent):
    folder = cluster_folder("other", os.environ)
    folder.prepare()
    folder.fork_of.write_text("another")
    (folder.pki / "front-proxy-ca.key").write_text("of another")
    async with ForkSupervisor(parent, spec_of(), Starter()).running() as path:
        await send(path, "other")
        assert [each.name for each in folder.pki.iterdir()] == ["ca.key"]
        assert folder.pki.stat().st_mode & 0o777 == 0o700


async def test_start_of_a_fork_ends_with_its_parent(parent):
    is_starting, ends = asyncio.Event(), []

    async def start(_folder, _spec):
        is_starting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("start")

    async with ForkSupervisor(parent, spec_of(), start).running() as path:
        sending = asyncio.create_task(send(path, "other"))
        async with asyncio.timeout(WAIT_TIMEOUT):
            await is_starting.wait()
    assert ends == ["start"]
    with pytest.raises(msgspec.DecodeError):
        await sending


async def test_child_that_is_not_ready_ends_when_its_caller_is_cancelled(tmp_path):
    begun = tmp_path / "pid"

    def work(reports):
        begun.write_text(str(os.getpid()))
        reports.step("begun")
        signal.pause()

    detaching = asyncio.create_task(detach_from_loop(work, tmp_path / "log"))
    await until(lambda: begun.exists() and begun.read_text())
    detaching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await detaching
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


def test_fork_that_has_ended_leaves_its_logs_alone(parent):
    for file in (parent.snapshot, parent.kubeconfig, parent.log("server")):
        file.write_text("x")
    supervisor = Supervisor(parent, spec_of(fork_of="another"), clock=RealClock(), report=print, step=print)
    with supervisor._hold_record():
        assert parent.pki.exists()
    assert sorted(each.name for each in parent.path.iterdir()) == ["logs"]


async def test_names_in_use_are_refused(parent):
    cluster_folder("kept", os.environ).prepare()
    start = Starter()
    async with ForkSupervisor(parent, spec_of(), start).running() as path:
        kept = await send(path, "kept")
        invalid = await send(path, "..")
    assert (kept.is_conflict, kept.problem.startswith('there is a cluster "kept": delete it')) == (True, True)
    assert '".." is not a valid cluster name' in invalid.problem
    assert start.started == []


async def test_problem_of_a_start_is_returned(parent):
    start = Starter()
    start.error = Failure("no port is free")
    async with ForkSupervisor(parent, spec_of(), start).running() as path:
        assert (await send(path, "other")).problem == "no port is free"


async def test_there_is_no_socket_without_a_way_to_start(parent):
    async with ForkSupervisor(parent, spec_of(), None).running() as path:
        assert path is None


def test_options_of_a_fork_are_those_of_its_parent_without_what_both_would_use():
    flags = (
        "--data-dir=/d",
        "--etcd-servers=http://e",
        "--snapshot=s",
        "--audit-log-path=a",
        "--v=2",
        "--secure-port=1",
    )
    spec = spec_of(
        *flags, manager_flags=("--publish=true",), store="/d", data_dir=Path("/d"), copy_to=Path("/c")
    )
    fork = fork_spec(spec, "parent", Path("/new.gz"))
    assert fork.flags == ("--v=2", "--secure-port=1", "--secure-port=0", "--snapshot=/new.gz")
    assert fork.manager_flags == ("--publish=true", "--publish=false")
    assert (fork.store, fork.data_dir, fork.copy_to, fork.detached) == ("memory", None, None, True)


async def test_answer_names_what_is_not_forked(parent):
    spec = spec_of("--audit-log-path=a", manager_flags=("--publish=true",), store="/d")
    async with ForkSupervisor(parent, spec, Starter()).running() as path:
        texts = (await send(path, "other")).not_forked
    assert [text.partition(":")[0] for text in texts] == [
        "The store",
        "The audit log",
        "Addresses on this machine",
    ]
