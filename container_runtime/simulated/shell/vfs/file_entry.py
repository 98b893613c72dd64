"""A file, a folder or a symbolic link, and how operations on it fail. Pure."""

from typing import ClassVar, Final

from msgspec import Struct

_DIRECTORY_SIZE: Final = 4096


class FileError(Exception):
    """An operation on a file failed; the message is that of the C library."""

    message: ClassVar[str] = ""
    """That of an error which has always the same."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or self.message)


class NoSuchFile(FileError):
    message = "No such file or directory"


class OperationNotPermitted(FileError):
    """An operation that only the owner may do."""

    message = "Operation not permitted"


class AccessDenied(FileError):
    """The user lacks a right."""

    message = "Permission denied"


class ReadOnly(FileError):
    message = "Read-only file system"


class NoSpace(FileError):
    message = "No space left on device"


class IsFolder(FileError):
    """A folder is read as a file."""

    message = "Is a directory"


class NameTooLong(FileError):
    message = "File name too long"


class FileEntry(Struct, frozen=True, kw_only=True):
    """A file, a directory or a symbolic link."""

    data: bytes | None = None
    """None for a directory, the target for a symbolic link."""
    zeros: int = 0
    """The number of zero bytes after the data, which take no memory."""
    is_sparse: bool = False
    """Whether the zeros take no space on a disk either."""
    is_unkept: bool = False
    """Whether the zeros stand for data that would take too much memory, so that nobody can read them."""
    is_on_disk: bool = False
    """Whether the zeros stand for data in a folder of this machine, which `FileSystem.content` reads."""
    target: str = ""
    """The target of a symbolic link."""
    mode: int = 0o644
    user: int = 0
    group: int = 0
    file_system: str = ""
    """The type of the file system that is mounted here, such as `tmpfs`."""
    read_only: bool = False
    modified: float = 0.0
    is_guess: bool = False
    """Whether the owner and the mode of a folder of an image are not known, so that any user may use it; or the content of a file."""

    @property
    def is_directory(self) -> bool:
        return self.data is None

    @property
    def size(self) -> int:
        return _DIRECTORY_SIZE if self.data is None else len(self.data) + self.zeros

    @property
    def disk_zeros(self) -> int:
        """The number of zeros that take space on a disk."""
        return 0 if self.is_sparse else self.zeros
