"""The file system of a node: what the system writes, and what users and pods have changed.

Only the changes are kept beyond the process, so that a new release may have another system.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from posixpath import dirname
from typing import Final, TypeAlias

from mockube.container_runtime.simulated.files.folder_inodes import FolderInodes
from mockube.container_runtime.simulated.files.machine_folder import MachineFolder
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.inodes import Inodes

_REMOVED: Final = FileEntry(data=b"", file_system="removed")
"""Stands, among the changes, for a file of the system that was removed."""


class NodeInodes(Inodes):
    """The files of one node."""

    source = ("/dev/vda1", "ext4")

    def __init__(self, system: Mapping[str, FileEntry], on_change: Callable[[], None]) -> None:
        super().__init__()
        for path, entry in system.items():
            self.put(path, entry)
        self.on_change, self.initial = on_change, self.used
        self._system = dict(self.entries)
        """What the system has written, by path."""

    @property
    def system(self) -> Mapping[str, FileEntry]:
        """What the system has written, by path."""
        return self._system

    def changes(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield what differs from what the system has written."""
        for path, entry in self.entries.items():
            if self._system.get(path) != entry:
                yield path, entry
        for path in self._system:
            if path not in self.entries:
                yield path, _REMOVED

    def replace_contents(self, entries: Mapping[str, FileEntry]) -> None:
        """Replace all changes by others, without a change that is reported."""
        changes, removed = _parts(entries)
        super().replace_contents({**self._system, **changes})
        with _Unreported(self):
            _delete_all(self, removed)

    def update_system(self, system: Mapping[str, FileEntry]) -> None:
        """Replace what the system has written, where nobody has changed it since."""
        unchanged = {path for path, entry in self._system.items() if self.entries.get(path) == entry}
        with _Unreported(self):
            _delete_all(self, unchanged - system.keys() - {"/"})
            for path, entry in system.items():
                is_new = path not in self._system and path not in self.entries
                if (is_new or path in unchanged) and self.entries.get(path) != entry:
                    self.put(path, entry)
        self._system = {**_parents(system, self.entries), **system, "/": self._system["/"]}

    def write_by_system(self, path: str, data: bytes) -> None:
        """Write a file of the system, such as a log."""
        entry = self.entries.get(path)
        if entry is None or self._system.get(path) != entry:
            return
        with _Unreported(self):
            self.put(path, FileEntry(data=data, mode=entry.mode, modified=entry.modified))
        self._system[path] = self.entries[path]


class FolderNodeInodes(FolderInodes):
    """The files of a node in a folder of this machine, from when a process first mounts some of them.

    What the system writes is not compared with what is there: a process may have changed it.
    """

    def __init__(self, folder: MachineFolder, present: NodeInodes) -> None:
        super().__init__(folder, present.entries["/"], present.source)
        self._system = dict(present.system)

    def update_system(self, system: Mapping[str, FileEntry]) -> None:
        """Add what the system has written since, and remove what it has removed."""
        with _Unreported(self):
            _delete_all(self, self._system.keys() - system.keys())
            for path in sorted(system.keys() - self._system.keys()):
                if path not in self.entries:
                    self.put(path, system[path])
        self._system = {**_parents(system, self.entries), **system, "/": self._system["/"]}

    def write_by_system(self, path: str, data: bytes) -> None:
        """Write a file of the system, such as a log."""
        entry = self.entries.get(path)
        if entry is not None and path in self._system:
            with _Unreported(self):
                self.put(path, FileEntry(data=data, mode=entry.mode, modified=entry.modified))
            self._system[path] = self.entries[path]

    def entries_with_data(self, limit: int) -> tuple[dict[str, FileEntry], tuple[str, ...]]:
        """Return what differs from what the system has written, as `NodeInodes.changes` does."""
        entries, left_out = super().entries_with_data(limit)
        changes = {path: entry for path, entry in entries.items() if not self._is_of_system(path, entry)}
        return {
            **changes,
            **{path: _REMOVED for path in self._system if path not in self.entries},
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


SystemInodes: TypeAlias = NodeInodes | FolderNodeInodes


class _Unreported:
    """A block in which changes are not reported."""

    def __init__(self, files: SystemInodes) -> None:
        self._files = files

    def __enter__(self) -> None:
        self._on_change = self._files.on_change
        self._files.report_changes(None)

    def __exit__(self, *_: object) -> None:
        self._files.report_changes(self._on_change)


def _parts(entries: Mapping[str, FileEntry]) -> tuple[Mapping[str, FileEntry], Collection[str]]:
    """Return changes of files that are there, and the paths of removed ones."""
    removed = {path for path, entry in entries.items() if entry.file_system == _REMOVED.file_system}
    return {path: entry for path, entry in entries.items() if path not in removed}, removed


def _delete_all(files: SystemInodes, paths: Iterable[str]) -> None:
    """Delete files and empty folders, those in a folder before it."""
    for path in sorted(paths, key=len, reverse=True):
        if path in files.entries and not any(files.names(path)):
            files.delete(path)


def _parents(system: Mapping[str, FileEntry], entries: Mapping[str, FileEntry]) -> Mapping[str, FileEntry]:
    """Return the folders around the files of a system, without the root."""
    parents: set[str] = set()
    for path in system:
        folder = dirname(path)
        while folder not in parents and folder != "/":
            parents.add(folder)
            folder = dirname(folder)
    return {path: entries[path] for path in parents if path in entries}
