"""The file system of a node: what the system writes, and what users and pods have changed.

Only the changes are kept beyond the process, so that a new release may have another system.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from posixpath import dirname
from typing import Final, TypeAlias

from mockube.container_runtime.simulated.files.folder_file_system import FolderFileSystem
from mockube.container_runtime.simulated.files.machine_folder import MachineFolder
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

    @property
    def system(self) -> Mapping[str, FileEntry]:
        """What the system has written, by path."""
        return self._system

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
        changes, removed = _parts(entries)
        super().replace_contents({**self._system, **changes})
        with _Unreported(self):
            _delete_all(self, removed)

    def update_system(self, system: Mapping[str, FileEntry]) -> None:
        """Replace what the system has written, where nobody has changed it since."""
        unchanged = {path for path, entry in self._system.items() if self._entries.get(path) == entry}
        with _Unreported(self):
            _delete_all(self, unchanged - system.keys() - {"/"})
            for path, entry in system.items():
                is_new = path not in self._system and path not in self._entries
                if (is_new or path in unchanged) and self._entries.get(path) != entry:
                    self.put(path, entry)
        self._system = {**_parents(system, self._entries), **system, "/": self._system["/"]}

    def write_by_system(self, path: str, data: bytes) -> None:
        """Write a file of the system, such as a log."""
        entry = self._entries.get(path)
        if entry is None or self._system.get(path) != entry:
            return
        with _Unreported(self):
            self.put(path, FileEntry(data=data, mode=entry.mode, modified=entry.modified))
        self._system[path] = self._entries[path]


class FolderNodeFiles(FolderFileSystem):
    """The files of a node in a folder of this machine, from when a process first mounts some of them.

    What the system writes is not compared with what is there: a process may have changed it.
    """

    def __init__(self, folder: MachineFolder, present: NodeFiles) -> None:
        super().__init__(folder, present.entry("/"), present.source)
        self._system = dict(present.system)

    def update_system(self, system: Mapping[str, FileEntry]) -> None:
        """Add what the system has written since, and remove what it has removed."""
        with _Unreported(self):
            _delete_all(self, self._system.keys() - system.keys())
            for path in sorted(system.keys() - self._system.keys()):
                if path not in self._entries:
                    self.put(path, system[path])
        self._system = {**_parents(system, self._entries), **system, "/": self._system["/"]}

    def write_by_system(self, path: str, data: bytes) -> None:
        """Write a file of the system, such as a log."""
        entry = self._entries.get(path)
        if entry is not None and path in self._system:
            with _Unreported(self):
                self.put(path, FileEntry(data=data, mode=entry.mode, modified=entry.modified))
            self._system[path] = self._entries[path]

    def entries_with_data(self, limit: int) -> tuple[dict[str, FileEntry], tuple[str, ...]]:
        """Return what differs from what the system has written, as `NodeFiles.changed_entries` does."""
        entries, left_out = super().entries_with_data(limit)
        changes = {path: entry for path, entry in entries.items() if not self._is_of_system(path, entry)}
        return {
            **changes,
            **{path: _REMOVED for path in self._system if path not in self._entries},
        }, left_out

    def _is_of_system(self, path: str, entry: FileEntry) -> bool:
        """Return whether a file has the contents that the system has written; its mode and times are as this machine has them."""
        written = self._system.get(path)
        return written is not None and (
            (written.is_directory, written.target, written.data, written.size)
            == (entry.is_directory, entry.target, entry.data, entry.size)
        )

    def replace_contents(self, entries: Mapping[str, FileEntry]) -> None:
        changes, removed = _parts(entries)
        super().replace_contents({**self._system, **changes})
        with _Unreported(self):
            _delete_all(self, removed)


SystemFiles: TypeAlias = NodeFiles | FolderNodeFiles


class _Unreported:
    """A block in which changes are not reported."""

    def __init__(self, files: SystemFiles) -> None:
        self._files = files

    def __enter__(self) -> None:
        self._on_change, self._files._on_change = self._files._on_change, None  # noqa: SLF001 - of the same module

    def __exit__(self, *_: object) -> None:
        self._files._on_change = self._on_change  # noqa: SLF001 - of the same module


def _parts(entries: Mapping[str, FileEntry]) -> tuple[Mapping[str, FileEntry], Collection[str]]:
    """Return changes of files that are there, and the paths of removed ones."""
    removed = {path for path, entry in entries.items() if entry.file_system == _REMOVED.file_system}
    return {path: entry for path, entry in entries.items() if path not in removed}, removed


def _delete_all(files: SystemFiles, paths: Iterable[str]) -> None:
    """Delete files and empty folders, those in a folder before it."""
    for path in sorted(paths, key=len, reverse=True):
        if path in files._entries and not any(files._names(path)):  # noqa: SLF001 - of the same module
            files._delete(path)  # noqa: SLF001 - of the same module


def _parents(system: Mapping[str, FileEntry], entries: Mapping[str, FileEntry]) -> Mapping[str, FileEntry]:
    """Return the folders around the files of a system, without the root."""
    parents: set[str] = set()
    for path in system:
        folder = dirname(path)
        while folder not in parents and folder != "/":
            parents.add(folder)
            folder = dirname(folder)
    return {path: entries[path] for path in parents if path in entries}
