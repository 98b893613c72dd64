"""The file system of a simulated container: a tree in memory, of bounded size."""

from collections.abc import Iterable, Iterator, Mapping
from posixpath import basename, dirname, join, normpath
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from . import limits

MAX_LINKS: Final = 40
"""The maximum number of symbolic links in the resolution of a path."""
_DIRECTORY_SIZE: Final = 4096
_EMPTY_FOLDERS: Final = ("/tmp/",)  # noqa: S108 - of a simulated container
"""Folders that are empty in images."""


class FileError(Exception):
    """An operation on a file failed; the message is that of the C library."""


class NoSuchFile(FileError):
    def __init__(self) -> None:
        super().__init__("No such file or directory")


class FileEntry(Struct, frozen=True, kw_only=True):
    """A file, a directory or a symbolic link."""

    data: bytes | None = None
    """None for a directory, the target for a symbolic link."""
    target: str = ""
    """The target of a symbolic link."""
    mode: int = 0o644
    user: int = 0
    group: int = 0
    file_system: str = ""
    """The type of the file system that is mounted here, such as `tmpfs`."""
    read_only: bool = False
    modified: float = 0.0

    @property
    def is_directory(self) -> bool:
        return self.data is None

    @property
    def size(self) -> int:
        return _DIRECTORY_SIZE if self.data is None else len(self.data)


class Mount(Struct, frozen=True, kw_only=True):
    """A mount of another file system, or of a part of it, which several containers may share."""

    files: "FileSystem"
    inner: str = ""
    """The path of the part: empty for the whole, or a path with a leading slash."""
    read_only: bool = False


class ImagePlaces(NamedTuple):
    """The beginnings of paths at which an image has files that are not known."""

    usual: tuple[str, ...] = ()
    """Where a test finds a file."""
    possible: tuple[str, ...] | None = None
    """Where a file can be read; None: anywhere."""
    volumes: tuple[str, ...] = ()
    """Where volumes are mounted, whose files may not be known."""


class FileSystem:
    """A file system.

    If `is_partial`, paths without an entry may be files of the unknown image: they are read as empty files. Paths in
    one of the `volumes` are known. Without `places`, the image may have files anywhere.
    """

    def __init__(
        self,
        files: Mapping[str, FileEntry] | None = None,
        *,
        is_partial: bool = False,
        volumes: tuple[str, ...] = (),
        places: ImagePlaces | None = None,
        mounts: Mapping[str, Mount] | None = None,
    ) -> None:
        """`mounts` are shared with other file systems; paths below them are not in this one."""
        self._mounts = dict(mounts or {})
        self._volumes = tuple(f"{path.rstrip('/')}/" for path in volumes)
        self._entries: dict[str, FileEntry] = {"/": FileEntry(mode=0o755)}
        self._children: dict[str, set[str]] = {"/": set()}
        self._bytes = 0
        self._links = 0
        self._removed: set[str] = set()
        """The paths of the unknown image that were removed."""
        self.is_partial = is_partial
        self._places = places
        for path, entry in (files or {}).items():
            self.put(path, entry)

    def _find_mount(self, path: str) -> tuple[Mount, str] | None:
        """Return the mount of a path, and the path in it; None if the path is in no mount."""
        for mount_path, mount in self._mounts.items():
            if path.startswith(f"{mount_path}/"):
                return mount, mount.inner + path[len(mount_path) :]
        return None

    def _writable_mount(self, path: str) -> "tuple[FileSystem, str] | None":
        if not self._mounts or (mount_and_path := self._find_mount(path)) is None:
            return None
        mount, inner = mount_and_path
        if mount.read_only:
            raise FileError("Read-only file system")
        return mount.files, inner

    def put(self, path: str, entry: FileEntry) -> None:
        """Set an entry, and create missing directories above it."""
        path = normpath(path)
        self._make_parents(path, read_only=False)
        self._set(path, entry)

    @property
    def size(self) -> int:
        """The number of bytes of all files together."""
        return self._bytes

    def replace_read_only(self, files: Mapping[str, FileEntry]) -> None:
        """Replace all read-only entries, those of read-only mounts."""
        for path in [path for path, entry in self._entries.items() if entry.read_only]:
            replaced = self._entries.pop(path)
            self._bytes -= len(replaced.data or b"")
            self._links -= bool(replaced.target)
            self._children.pop(path, None)
            self._children.get(dirname(path), set()).discard(basename(path))
        for path, entry in files.items():
            self.put(path, entry)

    def resolve(self, path: str) -> str:
        """Return a path without symbolic links; the last component need not exist."""
        if not self._has_links():
            return path
        remaining = path.strip("/").split("/")[::-1]
        current, links = "/", 0
        while remaining:
            candidate = normpath(join(current, remaining.pop()))
            entry = self._lookup(candidate)
            if entry is None or not entry.target:
                current = candidate
                continue
            links += 1
            if links > MAX_LINKS:
                raise FileError("Too many levels of symbolic links")
            target = join(current, entry.target)
            remaining += normpath(target).strip("/").split("/")[::-1]
            current = "/"
        return current

    def _has_links(self) -> bool:
        return bool(self._links) or any(mount.files._links for mount in self._mounts.values())  # noqa: SLF001 - of the same class

    def resolve_parent(self, path: str) -> str:
        """Return a path whose directories, but not its last component, are without symbolic links."""
        if not self._has_links():
            return path
        name = basename(path)
        return join(self.resolve(dirname(path)), name) if name else path

    def _lookup(self, path: str) -> FileEntry | None:
        if self._mounts and (delegate := self._find_mount(path)) is not None:
            return delegate[0].files._lookup(delegate[1])  # noqa: SLF001 - of the same class
        return self._entries.get(path)

    def entry(self, path: str) -> FileEntry:
        """Return the entry of a path; a symbolic link is followed."""
        return self.link_entry(self.resolve(path))

    def link_entry(self, path: str) -> FileEntry:
        """Return the entry of a path; the last component may be a symbolic link."""
        path = self.resolve_parent(path)
        if self._mounts and (delegate := self._find_mount(path)) is not None:
            return delegate[0].files.link_entry(delegate[1])
        entry = self._entries.get(path)
        if entry is None:
            if self._is_below_file(path):
                raise FileError("Not a directory")
            if self.may_exist(path):
                return FileEntry(data=b"")
            raise NoSuchFile
        return entry

    def may_exist(self, path: str) -> bool:
        """Return whether a path without an entry may be in the image."""
        if not self.is_partial or path.startswith((*self._volumes, *_EMPTY_FOLDERS)):
            return False
        possible = None if self._places is None else self._places.possible
        if possible is not None and not f"{path}/".startswith(possible):
            return False
        if self._removed and any(
            path == removed or path.startswith(f"{removed}/") for removed in self._removed
        ):
            return False
        return not self._is_in_volume(path) and (not self._mounts or self._find_mount(path) is None)

    def is_expected(self, path: str) -> bool:
        """Return whether a path without an entry counts as one in the image: who tests a file does not know that it exists."""
        is_usual = self._places is None or f"{path}/".startswith(self._places.usual)
        return is_usual and self.may_exist(path)

    def _is_in_volume(self, path: str) -> bool:
        """Return whether a path is in a read-only volume, all of whose files are known."""
        parent = dirname(path)
        while parent not in self._entries:
            parent = dirname(parent)
        return self._entries[parent].read_only

    def exists(self, path: str) -> bool:
        """Return whether a path is that of an entry; a symbolic link is followed."""
        return self.has(self.resolve(path))

    def has(self, path: str) -> bool:
        """Return whether a path is that of an entry; the last component may be a symbolic link."""
        return self.knows(path)

    def is_mounted(self, path: str) -> bool:
        """Return whether a path is in a volume."""
        volumes = () if self._places is None else self._places.volumes
        return path.startswith(volumes) or self._find_mount(path) is not None

    def knows(self, path: str) -> bool:
        """Return whether a path is that of an entry, also where an image may have others."""
        return self._lookup(self.resolve_parent(path)) is not None

    def read(self, path: str) -> bytes:
        data = self.entry(path).data
        if data is None:
            raise FileError("Is a directory")
        return data

    def write(self, path: str, data: bytes, *, append: bool = False, modified: float = 0.0) -> None:
        path = self.resolve(path)
        if (delegate := self._writable_mount(path)) is not None:
            delegate[0].write(delegate[1], data, append=append, modified=modified)
            return
        old = self._entries.get(path)
        if old is not None and old.is_directory:
            raise FileError("Is a directory")
        self._check_writable(path, old)
        before = old.data if append and old is not None and old.data is not None else b""
        if old is None:
            self._set(path, FileEntry(data=data, modified=modified))
        else:
            self._set(path, replace(old, data=before + data, modified=modified))

    def link(self, path: str, target: str, *, modified: float = 0.0) -> None:
        """Create a symbolic link."""
        path = self.resolve_parent(path)
        if (delegate := self._writable_mount(path)) is not None:
            delegate[0].link(delegate[1], target, modified=modified)
            return
        if path in self._entries:
            raise FileError("File exists")
        self._check_writable(path, None)
        self._set(path, FileEntry(data=target.encode(), target=target, mode=0o777, modified=modified))

    def make_directory(self, path: str, *, parents: bool = False, modified: float = 0.0) -> None:
        path = self.resolve(path) if parents else self.resolve_parent(path)
        if (delegate := self._writable_mount(path)) is not None:
            delegate[0].make_directory(delegate[1], parents=parents, modified=modified)
            return
        if path in self._entries:
            if parents and self._entries[path].is_directory:
                return
            raise FileError("File exists")
        if parents:
            self._make_parents(path, read_only=True)
        self._check_writable(path, None)
        self._set(path, FileEntry(mode=0o755, modified=modified))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        path = self.resolve_parent(path)
        if (delegate := self._writable_mount(path)) is not None:
            delegate[0].remove(delegate[1], recursive=recursive)
            return
        if recursive and any(
            mount_path.startswith(f"{path.rstrip('/')}/") or mount_path == path for mount_path in self._mounts
        ):
            raise FileError("Resource busy")
        entry = self._entries.get(path)
        if entry is None:
            if not self.may_exist(path):
                raise NoSuchFile
            self._removed.add(path)
            return
        if entry.is_directory and not recursive:
            raise FileError("Is a directory")
        if any(self._entries[entry_path].read_only for entry_path in self.walk(path)) or path == "/":
            raise FileError("Read-only file system")
        for entry_path in sorted(self.walk(path), key=len, reverse=True):
            removed = self._entries.pop(entry_path)
            self._bytes -= len(removed.data or b"")
            self._links -= bool(removed.target)
            self._children.pop(entry_path, None)
            self._children[dirname(entry_path)].discard(basename(entry_path))
        if self.is_partial:
            self._removed.add(path)

    def change(self, path: str, **attributes: float) -> None:
        """Change the mode, the owner, the group or the time of a file."""
        path = self.resolve(path)
        if (delegate := self._writable_mount(path)) is not None:
            delegate[0].change(delegate[1], **attributes)
            return
        self._check_writable(path, entry := self.entry(path))
        self._set(path, replace(entry, **attributes))

    def change_mode(self, path: str, mode: int) -> None:
        self.change(path, mode=mode)

    def children(self, path: str) -> Iterable[str]:
        """Return the names in a directory, sorted."""
        path = self.resolve(path)
        if not self.entry(path).is_directory:
            raise FileError("Not a directory")
        return sorted(self._names(path))

    def _names(self, path: str) -> Iterable[str]:
        if self._mounts:
            if (mount := self._mounts.get(path)) is not None:
                return mount.files._names(mount.inner or "/")  # noqa: SLF001 - of the same class
            if (delegate := self._find_mount(path)) is not None:
                return delegate[0].files._names(delegate[1])  # noqa: SLF001 - of the same class
        return self._children.get(path, ())

    def file_system(self, path: str) -> str:
        """Return the type of the file system of a path; "" for the container's own."""
        self.entry(path)
        while path != "/":
            entry = self._entries.get(path)
            if entry is not None and entry.file_system:
                return entry.file_system
            path = dirname(path)
        return ""

    def walk(self, path: str) -> Iterator[str]:
        """Yield the path and all paths below it, each directory before its contents."""
        remaining = [path]
        while remaining:
            current = remaining.pop()
            yield current
            remaining += [join(current, name) for name in sorted(self._names(current), reverse=True)]

    def _is_below_file(self, path: str) -> bool:
        parent = dirname(path)
        while parent != "/":
            entry = self._entries.get(parent)
            if entry is not None:
                return not entry.is_directory
            parent = dirname(parent)
        return False

    def _make_parents(self, path: str, *, read_only: bool) -> None:
        missing = []
        parent = dirname(path)
        while parent not in self._entries:
            missing.append(parent)
            parent = dirname(parent)
        if missing and read_only:
            self._check_writable(missing[-1], None)
        for folder in reversed(missing):
            self._set(folder, FileEntry(mode=0o755))

    def _check_writable(self, path: str, old: FileEntry | None) -> None:
        parent = self._entries.get(dirname(path))
        if parent is None:
            if not self.is_partial:
                raise NoSuchFile
            self._make_parents(path, read_only=False)
        elif not parent.is_directory:
            raise FileError("Not a directory")
        elif parent.read_only or (old is not None and old.read_only):
            raise FileError("Read-only file system")

    def _set(self, path: str, entry: FileEntry) -> None:
        old = self._entries.get(path)
        size_change = len(entry.data or b"") - len(old.data or b"" if old else b"")
        if self._bytes + size_change > limits.MAX_FILE_BYTES or (
            old is None and len(self._entries) >= limits.MAX_FILES
        ):
            raise FileError("No space left on device")
        self._bytes += size_change
        self._links += bool(entry.target) - bool(old is not None and old.target)
        self._removed.discard(path)
        self._entries[path] = entry
        if entry.is_directory:
            self._children.setdefault(path, set())
        if path != "/":
            self._children.setdefault(dirname(path), set()).add(basename(path))
