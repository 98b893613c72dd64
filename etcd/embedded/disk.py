"""File access for the log and the snapshots; errors of the system are raised as errors of the store.

Every change of a file is made by a `Disk`: it decides whether fsync is called, and tests replace it to inject errors. It
is independent of file formats.
"""

import asyncio
import errno
import logging
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

from mockube.etcd.errors import Interrupted, KVError, NoSpace, Unavailable

_logger = logging.getLogger(__name__)

UNFINISHED = ".tmp"

_sync_content = getattr(os, "fdatasync", os.fsync)
"""`fdatasync` syncs the content and the length of a file, but not its times; other systems have `fsync` only."""

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


@contextmanager
def store_errors_for(path: Path) -> Iterator[None]:
    """Raise the system's errors as errors of the store, with the path of the file."""
    try:
        yield
    except OSError as error:
        raise store_error(error, path) from error


def numbers_in_names(directory: Path, name: re.Pattern[str]) -> list[int]:
    """Return the numbers in the names of the files that match a pattern, in order."""
    with store_errors_for(directory):
        return sorted(int(match[1]) for path in directory.iterdir() if (match := name.fullmatch(path.name)))


def remove_unfinished(directory: Path) -> None:
    """Remove the unfinished files of a crashed process."""
    with store_errors_for(directory):
        for path in directory.glob("*" + UNFINISHED):
            path.unlink()


def store_error(error: OSError, path: Path) -> KVError:
    kind = NoSpace if error.errno in _FULL else Unavailable
    return kind(error.strerror or str(error), path=str(path))


@contextmanager
def _interrupted_fsync_for(path: Path) -> Iterator[None]:
    """Raise `Interrupted` after a failed fsync: the content of the disk is unknown, and a second fsync would not fail."""
    try:
        yield
    except OSError as error:
        raise Interrupted(f"fsync failed: {error.strerror}", path=str(path)) from error


class Disk:
    """The operations that change a disk. With `fsync=False` nothing is synced."""

    def __init__(self, *, fsync: bool = True) -> None:
        self.fsync = fsync

    def write(self, fd: int, data: memoryview, offset: int) -> int:
        return os.pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        if self.fsync:
            _sync_content(fd)

    def cut(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync_directory(self, directory: Path) -> None:
        """Sync a directory, so that the names in it are as durable as the files."""
        if not self.fsync:
            return
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class File:
    """An open file. The caller keeps the offsets at which it writes."""

    def __init__(self, disk: Disk, path: Path, flags: int = 0) -> None:
        self.path = path
        self._disk = disk
        with store_errors_for(path):
            self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)

    def write(self, data: bytes, offset: int) -> None:
        rest = memoryview(data)
        with store_errors_for(self.path):
            while rest:
                written = self._disk.write(self._fd, rest, offset)
                rest = rest[written:]
                offset += written

    def sync(self) -> None:
        """Return when everything written is on the disk. After a failure it is unknown how much of it is."""
        with _interrupted_fsync_for(self.path):
            self._disk.sync(self._fd)

    def size(self) -> int:
        with store_errors_for(self.path):
            return os.fstat(self._fd).st_size

    def cut(self, size: int) -> None:
        with store_errors_for(self.path):
            self._disk.cut(self._fd, size)

    def close(self) -> None:
        """Close the file, unless it is closed."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class NewFile(File):
    """A file that is being written. It gets its name only when it is complete and durable."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._name = path
        unfinished = path.with_name(path.name + UNFINISHED)
        with store_errors_for(unfinished):
            # An existing file may belong to another user, who could read what is written to it.
            unfinished.unlink(missing_ok=True)
        super().__init__(disk, unfinished, os.O_CREAT | os.O_EXCL)

    def publish(self) -> None:
        """Sync the file and give it its name."""
        self.sync()
        with store_errors_for(self._name):
            self.path.replace(self._name)
        self.path = self._name
        with _interrupted_fsync_for(self.path.parent):
            self._disk.sync_directory(self.path.parent)

    def discard(self) -> None:
        """Close the file, and remove it unless it was published."""
        self.close()
        if self.path != self._name:
            with store_errors_for(self.path):
                self.path.unlink()


PROBE_BYTES = 64 * 1024
"""Bytes that must fit on a disk that is not full."""


def check_writable(disk: Disk, directory: Path) -> None:
    """Raise an error of the store if no file can be written in a directory."""
    probe = NewFile(disk, directory / "probe")
    try:
        probe.write(bytes(PROBE_BYTES), 0)
    finally:
        probe.discard()


P = ParamSpec("P")
T = TypeVar("T")


class DiskThread:
    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function in the thread and wait for its result. Cancelling the caller does not stop the call."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))

    def call_later(self, function: Callable[[], None]) -> None:
        """Call the function in the thread after all earlier calls, without waiting. An error is logged."""
        self._executor.submit(_log_errors_of, function)

    async def close(self) -> None:
        """Return when all earlier calls are done."""
        await asyncio.to_thread(self._executor.shutdown)


def _log_errors_of(function: Callable[[], None]) -> None:
    try:
        function()
    except Exception:
        _logger.exception("the thread of a disk failed in %r", function)
