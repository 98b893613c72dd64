"""The lock of a cluster: one process at a time holds it, until the process ends.

The kernel releases the lock. The file has the holder's process id and start time, since process ids are reused.
"""

import fcntl
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from mockube.apimachinery.clock import Clock
from mockube.clusters.folders import ClusterFolder
from mockube.etcd.embedded.lock import open_lock
from mockube.failure import Failure

_TRIES: Final = 20
_PAUSE: Final = 0.01
"""A process that only checks whether the lock is held has it for a moment."""
_MAX_BYTES: Final = 100
"""Bytes of the file that are read."""


class ClusterLocked(Failure):
    """Another process runs the cluster."""


class Holder(NamedTuple):
    """The process that holds a cluster. No other process is equal to it until the machine restarts."""

    pid: int
    """0 in the moment before it has written its number."""
    started: str
    """In clock ticks since the machine started; "" where the system does not show it."""


@asynccontextmanager
async def hold_lock(folder: ClusterFolder, clock: Clock) -> AsyncIterator[None]:
    folder.prepare()
    descriptor = open_lock(folder.lock)
    try:
        for _ in range(_TRIES):
            if _lock(descriptor, fcntl.LOCK_EX):
                break
            await clock.sleep(_PAUSE)
        else:
            raise ClusterLocked(f'"{folder.name}" runs already')
        pid = os.getpid()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{pid} {_start_of(pid)}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder(path: Path) -> Holder | None:
    """Return the holder of this lock file; None if it is free."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        if _lock(descriptor, fcntl.LOCK_SH):
            return None
        pid, _, started = os.pread(descriptor, _MAX_BYTES, 0).decode(errors="replace").strip().partition(" ")
        return Holder(int(pid), started) if pid.isdecimal() else Holder(0, "")
    finally:
        os.close(descriptor)


def send_signals(to: Holder, numbers: Sequence[signal.Signals]) -> None:
    """Send signals to the process if it still runs, and never to another process that reuses its id."""
    with suppress(ProcessLookupError):
        if not hasattr(os, "pidfd_open"):
            for number in numbers:
                os.kill(to.pid, number)
            return
        descriptor = os.pidfd_open(to.pid)
        try:
            if _start_of(to.pid) == to.started:
                for number in numbers:
                    signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _start_of(pid: int) -> str:
    """Field 22 of its line in /proc; the second field is a name in parentheses, which may hold blanks."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return line.rpartition(")")[2].split()[19]


def _lock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
