"""The inodes of one file system by path: in memory, of bounded size; in a folder of this machine it is another table with the same methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from posixpath import basename, dirname, normpath
from typing import ClassVar, Final

from msgspec.structs import replace

from mockube.container_runtime.simulated.shell import limits

from .file_entry import FileEntry, FileError, NoSpace
from .image_folders import guessed_folder
from .quota import Quota

_FEW_ZEROS: Final = 4096
"""Fewer zeros than these are data as others."""


class InodeTable(ABC):
    """The entries of a file system, whoever uses them: without mounts, links and rights."""

    entries: Mapping[str, FileEntry]
    """The entries by path, for reading."""
    source: tuple[str, str] = ("overlay", "overlay")
    """The device and the type of the file system: that of a container lies over its image."""
    is_folder: ClassVar[bool] = False
    """Whether the files are in a folder of this machine, with all of their data."""

    def __init__(self, capacity: int | None = None) -> None:
        self.quota = Quota(capacity)
        self.on_change: Callable[[], None] | None = None
        """Called after each change of a file."""
        self.whiteouts: set[str] = set()
        """The paths of an unknown image below that were removed."""
        self.initial = 0
        """The bytes of all files when the file system was made."""

    # --- what a table does in its own way

    @abstractmethod
    def names(self, path: str) -> Collection[str]:
        """Return the names in a folder; none if there is no such folder."""

    @abstractmethod
    def set(self, path: str, entry: FileEntry) -> None:
        """Set an entry, whose folder is there."""

    @abstractmethod
    def set_attributes(self, path: str, entry: FileEntry) -> None:
        """Change the owner, the mode and the time of a file to those of an entry with the same data."""

    @abstractmethod
    def append(self, path: str, added: FileEntry) -> None:
        """Append the data and the zeros of an entry to a file."""

    @abstractmethod
    def load(self, path: str, entry: FileEntry) -> FileEntry:
        """Return an entry whose data are in a folder of this machine with these data."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file or an empty folder."""

    @abstractmethod
    def rename(self, path: str, target: str) -> bool:
        """Rename a file in one step; return False where it has to be copied."""

    @abstractmethod
    def may_have_links(self, path: str) -> bool:
        """Return whether a component of a path may be a link."""

    @property
    @abstractmethod
    def has_links(self) -> bool: ...

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of bytes of all files together, as they are in memory."""

    @property
    @abstractmethod
    def used(self) -> int:
        """The number of bytes of all files together, as a disk would have them."""

    # --- what all tables have

    @property
    def written(self) -> int:
        """The number of bytes by which all files together have grown since the file system was made."""
        return max(self.used - self.initial, 0)

    @property
    def disk_used(self) -> int:
        """The bytes that are in use on the disk that the files are on, also by others."""
        return self.quota.size - self.free()

    @property
    def in_memory(self) -> bool:
        """Whether the files are in the memory of the node, not on its disk."""
        return self.entries["/"].file_system == "tmpfs"

    def free(self) -> int:
        return self.quota.free(self.used)

    def report_changes(self, on_change: Callable[[], None] | None) -> None:
        """Call a function after each change from now on."""
        self.on_change = on_change

    def report_change(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def put(self, path: str, entry: FileEntry) -> None:
        """Set an entry, and create missing directories above it."""
        path = normpath(path)
        self.make_parents(path)
        self.set(path, entry)

    def make_parents(self, path: str) -> None:
        """Create the folders above a path that are missing, as images have them."""
        missing = []
        assert path.startswith("/"), path  # A relative path has no folder that is known.
        parent = dirname(path)
        while parent not in self.entries:
            missing.append(parent)
            parent = dirname(parent)
        for folder in reversed(missing):
            self.set(folder, guessed_folder(folder))

    def delete_all(self, paths: Iterable[str]) -> Iterator[None]:
        """Delete files and folders, what is in a folder before it; in many steps."""
        for path in paths:
            if self.names(path):  # what another process has written meanwhile
                raise FileError("Directory not empty")
            if path in self.entries:
                self.delete(path)
            yield

    def replace_contents(self, entries: Mapping[str, FileEntry]) -> None:
        """Replace all files by others, without a change that is reported."""
        on_change, self.on_change = self.on_change, None
        for path in [path for path in self.entries if path != "/"]:
            self.delete(path)
        for path, entry in entries.items():
            self.put(path, entry)
        self.on_change = on_change

    def below(self, path: str) -> Iterator[tuple[str, FileEntry]]:
        """Yield the path and the paths below it with their entries."""
        prefix = f"{path.rstrip('/')}/"
        for each, entry in self.entries.items():
            if f"{each.rstrip('/')}/".startswith(prefix):
                yield each, entry

    def changes(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield the entries to keep beyond the process: all."""
        for path in self.paths():
            if (entry := self.entries.get(path)) is not None:
                yield path, entry

    def paths(self) -> Iterator[str]:
        """Yield all paths, each directory before its contents."""
        remaining = ["/"]
        while remaining:
            current = remaining.pop()
            yield current
            folder = f"{current.rstrip('/')}/"
            remaining += [f"{folder}{name}" for name in sorted(self.names(current), reverse=True)]


class Inodes(InodeTable):
    """A table in memory."""

    def __init__(self, root: FileEntry | None = None, capacity: int | None = None) -> None:
        super().__init__(capacity)
        self._entries: dict[str, FileEntry] = {"/": root or FileEntry(mode=0o755)}
        self.entries = self._entries
        self._children: dict[str, set[str]] = {"/": set()}
        self._bytes = 0
        self._zeros = 0
        self._links = set[str]()
        self._link_prefixes: tuple[str, ...] | None = ()
        """The paths of the links, for a fast look whether a path is below one; None after a change."""

    @property
    def size(self) -> int:
        return self._bytes

    @property
    def used(self) -> int:
        return self._bytes + self._zeros

    @property
    def has_links(self) -> bool:
        return bool(self._links)

    def may_have_links(self, path: str) -> bool:
        if self._link_prefixes is None:
            self._link_prefixes = tuple(self._links)
        return path.startswith(self._link_prefixes)

    def names(self, path: str) -> Collection[str]:
        return self._children.get(path, ())

    def set(self, path: str, entry: FileEntry) -> None:
        old = self._entries.get(path)
        if 0 < entry.zeros < _FEW_ZEROS:
            entry = replace(entry, data=(entry.data or b"") + bytes(entry.zeros), zeros=0)
        more_bytes = len(entry.data or b"") - len(old.data or b"" if old else b"")
        if self._bytes + more_bytes > limits.MAX_FILE_BYTES and entry.size >= limits.MIN_UNKEPT_BYTES:
            entry = replace(entry, data=b"", zeros=entry.size, is_unkept=True, is_sparse=False)
            more_bytes = -len(old.data or b"" if old else b"")
        more_zeros = entry.disk_zeros - (old.disk_zeros if old else 0)
        if self._bytes + more_bytes > limits.MAX_FILE_BYTES or (
            old is None and len(self._entries) >= limits.MAX_FILES
        ):
            raise NoSpace
        more = more_bytes + more_zeros
        if more > 0 and not self.quota.reserve(self._bytes + self._zeros, more):
            raise NoSpace
        self._bytes += more_bytes
        self._zeros += more_zeros
        if entry.target or (old is not None and old.target):
            (self._links.add if entry.target else self._links.discard)(path)
            self._link_prefixes = None
        self.whiteouts.discard(path)
        self._entries[path] = entry
        if entry.is_directory:
            self._children.setdefault(path, set())
        if path != "/":
            self._children.setdefault(dirname(path), set()).add(basename(path))
        if self.on_change is not None:
            self.on_change()

    def set_attributes(self, path: str, entry: FileEntry) -> None:
        self.set(path, entry)

    def append(self, path: str, added: FileEntry) -> None:
        old = self._entries[path]
        before, data, zeros, is_sparse = old.data or b"", added.data or b"", added.zeros, added.is_sparse
        if old.is_unkept:
            data, zeros = before, old.zeros + zeros + len(data)
        elif not data:
            data, zeros, is_sparse = before, old.zeros + zeros, old.is_sparse and not zeros
        else:
            data = before + bytes(_memory_for(old.zeros)) + data
        self.set(path, replace(added, data=data, zeros=zeros, is_sparse=is_sparse))

    def load(self, path: str, entry: FileEntry) -> FileEntry:
        del path
        return entry

    def rename(self, path: str, target: str) -> bool:
        del path, target
        return False

    def delete(self, path: str) -> None:
        removed = self._entries.pop(path)
        self._bytes -= len(removed.data or b"")
        self._zeros -= removed.disk_zeros
        if removed.target:
            self._links.discard(path)
            self._link_prefixes = None
        self._children.pop(path, None)
        self._children.get(dirname(path), set()).discard(basename(path))
        if self.on_change is not None:
            self.on_change()

    def show(self, folder: str, names: Iterable[str], instead_of: Iterable[str] = ()) -> None:
        """List names in a folder that have no entries of their own, such as processes in /proc, and others no more."""
        present = self._children.setdefault(folder, set())
        present.difference_update(instead_of)
        present.update(names)


def _memory_for(zeros: int) -> int:
    """Return the number of zero bytes before others, which take memory; raise an error if they are too many."""
    if zeros > limits.MAX_FILE_BYTES:
        raise FileError("File too large")
    return zeros
