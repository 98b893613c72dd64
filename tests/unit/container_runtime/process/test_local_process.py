"""Container processes end with the process that started them, also if it is killed."""

import asyncio
import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mockube.container_runtime.process.command import CommandSpec, Identity
from mockube.container_runtime.process.container_launcher import run_command
from mockube.container_runtime.process.local_process import GroupWatch, start_process
from mockube.container_runtime.process.namespace_support import NamespaceSupport
from tests.support import event_loop
from tests.support.event_loop import yield_to_loop
from tests.support.process_pods import assert_gone, processes_of
from tests.support.processes.acknowledged_writes import until

STARTER = """
import asyncio, sys
from pathlib import Path
from mockube.container_runtime.process.command import POD_VARIABLE, CommandSpec, Identity, command_beside
from mockube.container_runtime.process.local_process import GroupWatch, read_chunk, start_process

SCRIPT = "import os, time; os.fork(); print('up', flush=True); time.sleep(1000)"

async def main(pod, namespace):
    watch = GroupWatch()
    await watch.begin()
    argv = [sys.executable, "-I", "-S", "-c", SCRIPT]
    spec = CommandSpec(
        argv=argv,
        environment={POD_VARIABLE: pod},
        directory=Path("/"),
        identity=Identity(),
        has_own_processes=namespace == "own",
    )
    process = await start_process(spec)
    watch.add(process.pid)
    await process.wait_for_start()
    beside = await start_process(command_beside(process.pid, spec))
    watch.add(beside.pid)
    for started in (process, beside):
        text = b""
        while text.count(b"up") < 2:
            text += await read_chunk(started.outputs[1])
    print("up", flush=True)
    await asyncio.sleep(1000)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("namespace", ["own", "of the machine"])
def test_processes_die_with_killed_kubelet(namespace, tmp_path):
    if namespace == "own":
        require_process_namespaces(tmp_path)
    pod = f"pod-{os.getpid()}"
    command = [sys.executable, "-c", STARTER, pod, namespace]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout.readline() == "up\n"
        assert len(processes_of(pod)) == 4
        os.kill(starter.pid, signal.SIGKILL)
    until(lambda: not processes_of(pod), "the end of the processes")


def require_process_namespaces(folder):
    if not asyncio.run(NamespaceSupport(folder).check()).processes:
        pytest.skip("this machine allows no namespaces of processes")


async def run(*command, terminal=False, **fields):
    """Run a command; return its exit code and its output."""
    spec = CommandSpec(argv=command, environment={}, directory=Path("/"), identity=Identity(), **fields)
    process = await start_process(spec, terminal=terminal)
    try:
        code = await process.wait()
        return code, (await process.outputs[1].read()).decode()
    finally:
        await process.end()


@pytest.mark.thorough
async def test_process_of_a_namespace_has_its_exit_code_and_its_output(tmp_path):
    if not (await NamespaceSupport(tmp_path).check()).processes:
        pytest.skip("this machine allows no namespaces of processes")
    script = "echo $$ /proc/[0-9]*; exit 7"
    assert await run("/bin/sh", "-c", script, has_own_processes=True) == (7, "1 /proc/1\n")
    code, output = await run(
        "/bin/sh", "-c", "tty; kill -9 $$; exit 3", has_own_processes=True, terminal=True
    )
    assert (code, output.startswith("/dev/pts/")) == (3, True)  # the first process ignores its own signal


@pytest.mark.thorough
async def test_command_has_no_files_of_the_loop():
    code, output = await run("/bin/sh", "-c", "ls /proc/self/fd")
    assert (code, output.split()) == (0, ["0", "1", "2", "3"])  # the last one is that of ls


def open_files():
    return {path.name: path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()}


@pytest.mark.thorough
async def test_command_does_not_join_a_process_that_has_ended():
    await run("/bin/true")  # the loop opens its files once
    before = open_files()
    with pytest.raises(FileNotFoundError):
        await run("/bin/true", joined=2**22 + 1, joined_kinds=("pid",))
    assert open_files() == before


@pytest.mark.thorough
async def test_start_that_fails_leaves_no_file_open():
    await run("/bin/true")
    before = open_files()
    with pytest.raises(ValueError, match="embedded null"):
        await run("/bin/\0", has_own_processes=True)
    with pytest.raises(FileNotFoundError):
        await run("/bin/true", joined=os.getpid(), joined_kinds=("pid", "none"))
    assert open_files() == before


@pytest.mark.thorough
async def test_process_that_cannot_be_watched_is_killed(tmp_path, monkeypatch):
    if not (await NamespaceSupport(tmp_path).check()).processes:
        pytest.skip("this machine allows no namespaces of processes")

    def fail(_):
        raise OSError(errno.EMFILE, "Too many open files")

    before, others = open_files(), children()
    monkeypatch.setattr(os, "pidfd_open", fail)
    with pytest.raises(OSError, match="Too many open files"):
        await run("/bin/sleep", "1000", has_own_processes=True)
    monkeypatch.undo()
    assert not children() - others
    await event_loop.until(lambda: open_files() == before)  # the loop closes them in a later iteration


@pytest.mark.thorough
def test_files_above_the_limit_are_closed():
    def open_file_and_lower_limit():
        os.dup2(0, 200)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    done = subprocess.run(
        run_command(["/bin/ls", "/proc/self/fd"]),
        preexec_fn=open_file_and_lower_limit,
        close_fds=False,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["0", "1", "2", "3"]


def children():
    return {int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


async def cancelled(work):
    """Begin something, cancel it while it starts processes, and return these."""
    before = children()
    task = asyncio.create_task(work)
    while not (started := children() - before):
        await yield_to_loop()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return started


@pytest.mark.thorough
async def test_watch_that_is_cancelled_while_it_begins_can_be_ended():
    watch = GroupWatch()
    started = await cancelled(watch.begin())
    await watch.end()
    for pid in started:
        assert_gone(pid)
    assert len(started) == 1


@pytest.mark.thorough
async def test_process_that_is_cancelled_while_it_starts_is_killed():
    spec = CommandSpec(
        argv=[sys.executable, "-c", "import time; time.sleep(1000)"],
        environment={},
        directory=Path("/"),
        identity=Identity(),
    )
    (pid,) = await cancelled(start_process(spec))
    assert pid not in children()  # its exit was awaited
