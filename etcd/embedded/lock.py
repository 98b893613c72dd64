"""A lock that lets one process at a time use a data directory.

The kernel releases the lock when the process ends, however it ends. The text in the file is for users only.
"""

import fcntl
import os
import stat
from pathlib import Path

from mockube.etcd.errors import Locked, UnsafeDirectory

from .disk import store_errors_for

NAME = "LOCK"


class DirectoryLock:
    """The lock on a data directory, from construction to `release`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        with store_errors_for(self._path):
            check_private(directory)
            self._fd = open_lock(self._path)
        try:
            self._take(directory)
        except BaseException:
            os.close(self._fd)
            raise

    def release(self) -> None:
        os.close(self._fd)

    def _take(self, directory: Path) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode(errors="replace").strip() or "unknown"
            raise Locked(f"{directory} is in use by process {holder}") from None
        with store_errors_for(self._path):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)


# O_NONBLOCK: to open a device may block, and POSIX does not define whether a FIFO does.
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def check_private(directory: Path) -> None:
    """Raise UnsafeDirectory, with what to do, unless only this user can change the content of the directory."""
    problem = problem_of(directory, directory.stat(), uid=os.geteuid(), gid=os.getegid())
    if problem:
        raise UnsafeDirectory(problem)


def problem_of(directory: Path, status: os.stat_result, *, uid: int, gid: int) -> str:
    """Return why a process of the user and group must not trust a directory; "" if it may."""
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != uid:
        return (
            f"{directory} belongs to user {status.st_uid}, and this process runs as user {uid}: "
            f"run it as user {status.st_uid}, `chown {uid}` the directory, or name another one"
        )
    if mode & stat.S_IWOTH:
        return (
            f"{directory} can be changed by every user: `chmod go-w {directory}`, or name another directory"
        )
    if mode & stat.S_IWGRP and status.st_gid != gid:
        return (
            f"{directory} can be changed by group {status.st_gid}, which is not that of this process ({gid}): "
            f"`chmod g-w {directory}`, or name another directory"
        )
    return ""


def open_lock(path: Path) -> int:
    """Open a lock file, which is created with mode 0600 if it does not exist; raise OSError if it is not regular."""
    descriptor = os.open(path, LOCK_FLAGS, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not a regular file: remove it")
    return descriptor
