"""One process at a time on a data directory.

The lock is the kernel's and ends with the process, however that ends; the file's text is for people only.
"""

import fcntl
import os
from pathlib import Path

from mockube.etcd.embedded.disk import named
from mockube.etcd.embedded.private_directory import check_private, open_lock
from mockube.etcd.errors import Locked

NAME = "LOCK"


class DirectoryLock:
    """Holds a data directory from construction to `release`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        with named(self._path):
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
        with named(self._path):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
