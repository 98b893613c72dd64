"""What a command asks for and a container alone does not answer: the network, values of API objects, files that others write."""

from typing import Final, NoReturn

from .vfs.file_system import FileSystem
from .vfs.inodes import Inodes
from .vfs.mount_table import MountTable

HOST_NAME: Final = "the host name"


class OutsideAnswer(Exception):
    """A command that is computed in advance asks for something whose answer lies outside of its container: nobody knows it before it runs."""


class ValueAsked(OutsideAnswer):
    """It asks for a value of its pod, which is left out of what equal commands share: a variable by its name, or `HOST_NAME`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class ProcessesAsked(OutsideAnswer):
    """It asks for the processes that run beside it."""


class _OutsideMounts(MountTable):
    """The mounts of files that others may write: each use of a path raises `OutsideAnswer`."""

    def __init__(self) -> None:
        super().__init__(Inodes(), {})
        self.has_mounts = True

    def find(self, path: str) -> NoReturn:
        raise OutsideAnswer(path)


def outside_files() -> FileSystem:
    """Return the files of a volume that others may write: each use of them raises `OutsideAnswer`."""
    return FileSystem().view(mounts=_OutsideMounts())
