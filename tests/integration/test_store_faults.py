"""The durable store with killed processes, full and forbidden disks, and two processes on one directory."""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mockube.component_base.clock import RealClock
from mockube.etcd.embedded.durable import DurableStore
from mockube.etcd.embedded.snapshot import snapshot_revisions
from mockube.etcd.errors import NoSpace
from mockube.etcd.kv import PutResult, Range
from tests.support.seeded import source
from tests.support.stores.durable import ALL, outcome, put, state
from tests.support.stores.durable_writer import SEGMENT_BYTES

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support" / "stores"
ROUNDS = 12


@contextmanager
def running_program(program, *arguments) -> Iterator[subprocess.Popen]:
    command = [sys.executable, SUPPORT / program, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


class WriterLog:
    """The output of a killed writer: each key belongs to one writer, which makes one call after another."""

    def __init__(self):
        self.revisions = {}
        """The effect of every acknowledged call."""
        self.tried = {}
        """The last call for each key that was made."""
        self.acknowledged = {}
        """The last acknowledged call for each key, and the revision that it created."""

    def record_line(self, line):
        match line.split():
            case ["try", name, key]:
                self.tried[key] = name
            case ["ok", name, key, revision]:
                assert int(revision) not in self.revisions, "a revision was given out twice"
                self.revisions[int(revision)] = (name, key)
                self.acknowledged[key] = (name, int(revision))

    def check(self, found):
        kvs = {kv.key.decode(): kv for kv in found.kvs}
        assert found.revision >= max(self.revisions)
        for key, (name, revision) in self.acknowledged.items():
            if self.tried[key] != name:
                continue  # a later call was in flight: it may have been carried out
            assert (kvs[key].mod_revision if key in kvs else None) == (revision if name == "put" else None)
        assert kvs.keys() <= self.tried.keys()


async def test_store_killed_at_any_moment_keeps_acknowledged_writes(tmp_path):
    random, log, snapshots = source("kill"), WriterLog(), set()
    for number in range(ROUNDS):
        with running_program("durable_writer.py", tmp_path, number) as process:
            for _ in range(random.randrange(1, 2000)):
                log.record_line(process.stdout.readline().decode())
            process.kill()
            for line in process.stdout.read().decode().splitlines(keepends=True):
                if line.endswith("\n"):
                    log.record_line(line)
        store = await DurableStore.open(tmp_path, clock=RealClock(), segment_bytes=SEGMENT_BYTES)
        log.check(await store.range(ALL))
        snapshots.update(snapshot_revisions(tmp_path))
        await store.close()
    assert len(log.revisions) > 1000
    assert len(snapshots) > 3


def test_second_process_is_refused_naming_first(tmp_path):
    with running_program("durable_writer.py", tmp_path, 0) as first:
        first.stdout.readline()
        second = subprocess.run(
            [sys.executable, SUPPORT / "durable_writer.py", tmp_path, "1"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 1
    assert f"mockube.etcd.errors.Locked: {tmp_path} is in use by process {first.pid}" in second.stderr


@contextmanager
def largest_file(size) -> Iterator[None]:
    """Let the system refuse files larger than this, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_file_size_limit_keeps_log_and_later_writes_succeed(tmp_path):
    store = await DurableStore.open(tmp_path, clock=RealClock())
    with largest_file(5000):
        answers = [await outcome(store.put(put(b"%d" % n, bytes(100)))) for n in range(100)]
        acknowledged = [n for n, answer in enumerate(answers) if isinstance(answer, PutResult)]
        assert 20 < len(acknowledged) < 50
        assert {type(answer) for answer in answers[len(acknowledged) :]} == {NoSpace}
        assert (await state(store))[0] == len(acknowledged) + 1
        together = await asyncio.gather(*(outcome(store.put(put(b"x", bytes(900)))) for _ in range(9)))
        assert {type(answer) for answer in together} == {NoSpace}
    await store.put(put(b"later"))
    await store.close()
    store = await DurableStore.open(tmp_path, clock=RealClock())
    kvs = (await store.range(ALL)).kvs
    assert {kv.key for kv in kvs} == {b"later", *(b"%d" % n for n in acknowledged)}
    assert (await store.range(Range(key=b"later"))).kvs[0].mod_revision == len(acknowledged) + 2
    await store.close()


@pytest.fixture
def world_writable_dir():
    """A directory for a process of the user nobody, so that permissions apply also if the tests run as root."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        path.chmod(0o777)
        yield path


def test_unwritable_disk_is_named_and_reads_continue(world_writable_dir):
    with running_program("durable_forbidden.py", world_writable_dir) as process:
        answers = process.stdout.read().decode().splitlines()
    data = world_writable_dir / "data"
    assert answers == [
        f"open: Unavailable: {data}/LOCK: Permission denied",
        f"put: Unavailable: {data}/00000002.log.tmp: Permission denied",
        "range: a=1 at 2",
        "put again: 3",
        f"open again: Unavailable: {data}/00000001.log: Permission denied",
    ]
