"""What a command asks for and a container alone does not answer: the network, values of API objects, files that others write."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NoReturn

from .filesystem import FileEntry, FileSystem

if TYPE_CHECKING:
    from .filesystem import _Place


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


class OutsideFiles(FileSystem):
    """The files of a volume that others may write: each use of them raises `OutsideAnswer`."""

    def _place(self, path: str) -> "_Place":
        _raise(path)

    def _lookup(self, path: str) -> FileEntry | None:
        _raise(path)

    def _find_entry(self, path: str) -> FileEntry:
        _raise(path)

    def _names(self, path: str) -> Iterable[str]:
        _raise(path)


def _raise(path: str) -> NoReturn:
    raise OutsideAnswer(path)
