"""The lock of a cluster identifies its holder: no other process is signalled or waited for."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from mockube.cli import down
from mockube.clusters.named_cluster import Holder, hold_lock, inspect_cluster, lock_holder, send_signals
from mockube.component_base.clock import SteppedClock
from mockube.failure import Failure
from tests.support.processes.process import ROOT

WAITS = "import sys; print(flush=True); sys.stdin.read()"


@contextmanager
def process():
    """Start a process that runs until it is killed."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        running.stdout.readline()
        yield running
        running.kill()


def start_time(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


async def test_lock_holder_is_current_process_until_released(folder):
    async with hold_lock(folder, SteppedClock()):
        found = lock_holder(folder.lock)
        assert found == Holder(os.getpid(), start_time(os.getpid()))
        assert inspect_cluster(folder).holder == found
    assert lock_holder(folder.lock) is None
    assert folder.lock.read_bytes() == b""
    assert stat.S_IMODE(folder.lock.stat().st_mode) == 0o600


async def test_stale_lock_has_no_holder(folder):
    folder.lock.write_text("1 1\n")
    assert lock_holder(folder.lock) is None
    async with hold_lock(folder, SteppedClock()):
        assert lock_holder(folder.lock).pid == os.getpid()


def test_signal_is_sent_to_lock_holder():
    with process() as one:
        send_signals(Holder(one.pid, start_time(one.pid)), (signal.SIGTERM,))
        assert one.wait() == -signal.SIGTERM


def test_signal_is_not_sent_to_other_process_with_same_pid():
    with process() as other:
        send_signals(Holder(other.pid, "1"), (signal.SIGKILL,))
        other.stdin.close()  # so that it ends by itself
        assert other.wait() == 0


def test_signal_to_ended_process_is_ignored():
    with process() as one:
        pid, since = one.pid, start_time(one.pid)
    send_signals(Holder(pid, since), (signal.SIGTERM,))


async def test_lock_that_is_a_link_is_not_followed(folder, tmp_path):
    target = tmp_path / "precious"
    target.write_text("kept")
    folder.lock.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        async with hold_lock(folder, SteppedClock()):
            pytest.fail("it was followed")
    with pytest.raises(OSError, match="symbolic links"):
        lock_holder(folder.lock)
    assert target.read_text() == "kept"


async def test_folder_writable_by_others_is_refused(folder):
    folder.path.chmod(0o777)
    with pytest.raises(Failure, match="can be changed by every user: `chmod go-w"):
        async with hold_lock(folder, SteppedClock()):
            pytest.fail("it was used")


HOLDS = """
import asyncio, sys
from mockube.component_base.clock import RealClock
from mockube.clusters.named_cluster import hold_lock
from mockube.clusters.named_cluster import cluster_folder

async def hold():
    async with hold_lock(cluster_folder("one", {"XDG_DATA_HOME": sys.argv[1]}), RealClock()):
        print(flush=True)
        await asyncio.get_running_loop().create_future()

asyncio.run(hold())
"""


@pytest.mark.thorough
def test_down_does_not_wait_for_restarted_cluster(folder, environment):
    command = [sys.executable, "-c", HOLDS, environment["XDG_DATA_HOME"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as first:
        first.stdout.readline()
        meant = inspect_cluster(folder)
        assert meant.holder.pid == first.pid
        first.terminate()
        first.wait()
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as second:
            second.stdout.readline()
            down._end_process(meant, down.FORCED_SIGNALS)
            assert inspect_cluster(folder).holder.pid == second.pid
            second.kill()
            assert second.wait() == -signal.SIGKILL
