"""A folder of this machine whose files programs of this machine may write, too, and which no link leads out of.

The attack: a process puts a link to a file of the machine, such as /etc/passwd, into a volume, also in the place of a folder while a
simulated container uses it, so that the controller manager reads or writes that file. Each folder on the way to a file is opened relative to
the one above it, and none of them may be a link. A pipe or a device is never opened.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mockube.container_runtime.simulated.shell.vfs.file_entry import (
    AccessDenied,
    FileError,
    NoSpace,
    NoSuchFile,
    OperationNotPermitted,
    ReadOnly,
)

_SEARCH: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ERRORS: Final = {
    errno.ENOENT: NoSuchFile,
    errno.ENOTDIR: NoSuchFile,
    errno.ELOOP: NoSuchFile,
    errno.EACCES: AccessDenied,
    errno.EPERM: OperationNotPermitted,
    errno.ENOSPC: NoSpace,
    errno.EDQUOT: NoSpace,
    errno.EROFS: ReadOnly,
}
IS_ROOT: Final = os.geteuid() == 0
"""Whether this process may give files to other users."""


@contextmanager
def _file_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        known = _ERRORS.get(error.errno or 0)
        raise (FileError(os.strerror(error.errno or 0)) if known is None else known()) from error
    except ValueError as error:  # a name that this machine cannot have
        raise FileError("Invalid argument") from error


class MachineFolder:
    """Paths are absolute in the folder, and have neither `..` nor links."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def _parent(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield a descriptor of the folder of a file, and the name of the file in it."""
        *parents, name = path.strip("/").split("/")
        with _file_errors():
            descriptor = os.open(self.path, _SEARCH)
            try:
                for parent in parents:
                    below = os.open(parent, _SEARCH, dir_fd=descriptor)
                    os.close(descriptor)
                    descriptor = below
                yield descriptor, name or "."
            finally:
                os.close(descriptor)

    @contextmanager
    def _open(self, path: str, flags: int) -> Iterator[int]:
        """Yield a descriptor of a regular file."""
        with self._parent(path) as (folder, name):
            # A device may act when it is opened: it is not opened at all.
            with suppress(FileNotFoundError):
                _require_file(os.stat(name, dir_fd=folder, follow_symlinks=False))
            descriptor = os.open(name, flags | _OPEN, 0o600, dir_fd=folder)
            try:
                _require_file(os.fstat(descriptor))
                yield descriptor
            finally:
                os.close(descriptor)

    def stat(self, path: str) -> os.stat_result:
        with self._parent(path) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def target(self, path: str) -> str:
        """Return the target of a link."""
        with self._parent(path) as (folder, name):
            return os.readlink(name, dir_fd=folder)

    def names(self, path: str) -> Sequence[str]:
        """Return what is in a folder."""
        with self._parent(path) as (folder, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | _OPEN, dir_fd=folder)
            try:
                return os.listdir(descriptor)  # noqa: PTH208 - of a descriptor
            finally:
                os.close(descriptor)

    def read(self, path: str, limit: int) -> bytes:
        """Return at most `limit` bytes of a regular file."""
        with self._open(path, os.O_RDONLY) as descriptor:
            data = bytearray()
            while len(data) < limit and (part := os.read(descriptor, limit - len(data))):
                data += part
            return bytes(data)

    def write(self, path: str, data: bytes, zeros: int, *, append: bool = False) -> None:
        """Write a regular file; the zeros after the data take no space on the disk of this machine."""
        with self._open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0)) as descriptor:
            if not append:
                os.ftruncate(descriptor, 0)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if zeros:
                os.ftruncate(descriptor, os.fstat(descriptor).st_size + zeros)

    def make_directory(self, path: str) -> None:
        with self._parent(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)

    def link(self, path: str, target: str) -> None:
        """Create a symbolic link."""
        with self._parent(path) as (folder, name):
            os.symlink(target, name, dir_fd=folder)

    def remove(self, path: str) -> None:
        """Remove a file or an empty folder."""
        with self._parent(path) as (folder, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    def free_bytes(self) -> int:
        """Return the bytes that this process may write on the disk of the folder."""
        with _file_errors():
            status = os.statvfs(self.path)
            return status.f_bavail * status.f_frsize

    def rename(self, path: str, target: str) -> None:
        with self._parent(path) as (folder, name), self._parent(target) as (target_folder, target_name):
            os.rename(name, target_name, src_dir_fd=folder, dst_dir_fd=target_folder)

    def change(self, path: str, *, user: int, group: int, mode: int | None, modified: float) -> None:
        """Give a file an owner, if this process may do that, a mode, if it has one, and the time of its change, unless that is 0."""
        with self._parent(path) as (folder, name):
            # In a user namespace, root has not all users.
            with suppress(OSError):
                if IS_ROOT:
                    os.chown(name, user, group, dir_fd=folder, follow_symlinks=False)
            if mode is not None:
                kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                flags = os.O_DIRECTORY if stat.S_ISDIR(kind) else 0
                if flags or stat.S_ISREG(kind):
                    descriptor = os.open(name, os.O_RDONLY | flags | _OPEN, dir_fd=folder)
                    try:
                        os.fchmod(descriptor, mode)
                    finally:
                        os.close(descriptor)
            if modified:
                os.utime(name, (modified, modified), dir_fd=folder, follow_symlinks=False)


def _require_file(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.ENXIO, os.strerror(errno.ENXIO))
