"""The file system of a node: what the system writes, and what users and pods have changed.

Only the changes are kept beyond the process, so that a new release may have another system.
"""

from collections.abc import Callable, Iterator, Mapping
from posixpath import dirname
from typing import Final

from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileSystem

_REMOVED: Final = FileEntry(data=b"", file_system="removed")
"""Stands, among the changes, for a file of the system that was removed."""


class NodeFiles(FileSystem):
    """The files of one node."""

    def __init__(self, system: Mapping[str, FileEntry], on_change: Callable[[], None]) -> None:
        super().__init__(system, on_change=on_change)
        self._system = dict(self._entries)
        """What the system has written, by path."""

    @property
    def source(self) -> tuple[str, str]:
        return "/dev/vda1", "ext4"

    def changed_entries(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield what differs from what the system has written."""
        for path, entry in self._entries.items():
            if self._system.get(path) != entry:
                yield path, entry
        for path in self._system:
            if path not in self._entries:
                yield path, _REMOVED

    def replace_contents(self, entries: Mapping[str, FileEntry]) -> None:
        """Replace all changes by others, without a change that is reported."""
        removed = [path for path, entry in entries.items() if entry.file_system == _REMOVED.file_system]
        changes = {path: entry for path, entry in entries.items() if path not in removed}
        super().replace_contents({**self._system, **changes})
        with self._unreported():
            for path in sorted(removed, key=len, reverse=True):
                if path in self._entries and not self._children.get(path):
                    self._delete(path)

    def update_system(self, system: Mapping[str, FileEntry]) -> None:
        """Replace what the system has written, where nobody has changed it since."""
        unchanged = {path for path, entry in self._system.items() if self._entries.get(path) == entry}
        with self._unreported():
            for path in sorted(unchanged - system.keys(), key=len, reverse=True):
                if path != "/" and not self._children.get(path):
                    self._delete(path)
            for path, entry in system.items():
                is_new = path not in self._system and path not in self._entries
                if (is_new or path in unchanged) and self._entries.get(path) != entry:
                    self.put(path, entry)
        folders = {path: self._entries[path] for path in _parents(system) if path in self._entries}
        self._system = {**folders, **system, "/": self._system["/"]}

    def write_by_system(self, path: str, data: bytes) -> None:
        """Write a file of the system, such as a log."""
        entry = self._entries.get(path)
        if entry is None or self._system.get(path) != entry:
            return
        with self._unreported():
            self.put(path, FileEntry(data=data, mode=entry.mode, modified=entry.modified))
        self._system[path] = self._entries[path]

    def _unreported(self) -> "_Unreported":
        return _Unreported(self)


class _Unreported:
    """A block in which changes are not reported."""

    def __init__(self, files: NodeFiles) -> None:
        self._files = files

    def __enter__(self) -> None:
        self._on_change, self._files._on_change = self._files._on_change, None  # noqa: SLF001 - of the same module

    def __exit__(self, *_: object) -> None:
        self._files._on_change = self._on_change  # noqa: SLF001 - of the same module


def _parents(paths: Mapping[str, FileEntry]) -> set[str]:
    parents: set[str] = set()
    for path in paths:
        folder = dirname(path)
        while folder not in parents and folder != "/":
            parents.add(folder)
            folder = dirname(folder)
    return parents
