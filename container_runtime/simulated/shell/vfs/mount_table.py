"""The mounts of a container: which file system holds a path, and where it can only be read."""

from collections.abc import Collection, Mapping, Sequence
from posixpath import basename, dirname
from typing import Final, NamedTuple, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from .file_entry import FileEntry
from .inodes import Inodes, InodeTable

PROC: Final = "/proc"
ROOT_LINK: Final = "/root"
"""The link in the folder of a process in /proc that leads to its files."""

WriteProtection: TypeAlias = tuple[tuple[str, bool], ...]
"""Paths, the longest first, with whether what is there can only be read; what is at no path can be written."""


class PossibleFolders(Protocol):
    """What a file system may have beside its entries."""

    is_partial: bool

    def may_have_folder(self, path: str, /) -> bool: ...


class MountedFiles(Protocol):
    """A file system at a path of another one."""

    @property
    def inodes(self) -> InodeTable: ...

    @property
    def mounts(self) -> "MountTable": ...

    @property
    def unknown(self) -> PossibleFolders: ...

    def place(self, path: str, /) -> "Place": ...

    def find_entry(self, path: str, /) -> FileEntry: ...

    def names(self, path: str, /) -> Collection[str]: ...


class Place(NamedTuple):
    """Where a path is: in the file system of the container, or in that of a mount."""

    files: MountedFiles
    path: str
    read_only: bool


class Mount(Struct, frozen=True, kw_only=True):
    """A mount of another file system, or of a part of it, which several containers may share."""

    files: MountedFiles
    inner: str = ""
    """The path of the part: empty for the whole, or a path with a leading slash."""
    read_only: bool = False
    is_forbidden: bool = False
    """Whether the user may not enter it: the root of a process that the user may not trace."""


class MountTable:
    """The mounts over one table of inodes."""

    def __init__(
        self, inodes: InodeTable, mounts: Mapping[str, Mount], protection: WriteProtection = ()
    ) -> None:
        self.inodes = inodes
        """Those of the file system at /."""
        self.by_path = dict(sorted(mounts.items(), key=lambda item: -len(item[0])))
        self.processes: Mapping[str, Mount] = {}
        """The folders in /proc of the processes of other containers, and before each the root to which its link `root` leads."""
        self.has_mounts = bool(self.by_path)
        self.overlays: tuple[str, ...] = ()
        """The paths in mounts at which files of this file system are mounted."""
        self._protection = protection

    def find(self, path: str) -> tuple[Mount, str] | None:
        """Return the mount of a path, and the path in it; None if the path is in no mount."""
        for mount_path, mount in self.processes.items():
            if path == mount_path or path.startswith(f"{mount_path}/"):
                return mount, path[len(mount_path) :] or "/"
        for mount_path, mount in self.by_path.items():
            if path == mount_path or path.startswith(f"{mount_path}/"):
                if path in self.overlays:
                    return None
                return mount, (mount.inner + path[len(mount_path) :]) or "/"
        return None

    def lookup(self, path: str) -> FileEntry | None:
        """Return the entry of a path whose folders are without links, whatever the user's rights; None if there is none."""
        if self.has_mounts and (found := self.find(path)) is not None:
            return found[0].files.mounts.lookup(found[1])
        return self.inodes.entries.get(path)

    def is_protected(self, path: str) -> bool:
        """Return whether a path that is in no mount can only be read."""
        for protected, read_only in self._protection:
            if path == protected or path.startswith(f"{protected.rstrip('/')}/"):
                return read_only
        return False

    def is_busy(self, path: str) -> bool:
        """Return whether something is mounted at a path, or below it."""
        below = f"{path.rstrip('/')}/"
        return any(mount_path.startswith(below) or mount_path == path for mount_path in self.by_path)

    def may_have_links(self, path: str) -> bool:
        """Return whether a component of a path may be a link: volumes of API objects, which nearly every container has, are made of links."""
        return self.inodes.may_have_links(path) or any(
            mount.files.inodes.has_links and path.startswith(mount_path)
            for mounts in (self.by_path, self.processes)
            for mount_path, mount in mounts.items()
        )

    def is_forbidden(self, path: str) -> bool:
        """Return whether a path is the root of a process that the user may not trace."""
        mount = self.processes.get(path)
        return mount is not None and mount.is_forbidden

    def process_link(self, path: str) -> FileEntry | None:
        """Return the link in the folder of a process that leads to its files; None if a path is not that of such a link."""
        if not path.endswith(ROOT_LINK) or path not in self.processes:
            return None
        return self.processes[dirname(path)].files.inodes.entries[ROOT_LINK]

    def file_system_type(self, path: str) -> str:
        """Return the type of the file system that a path is in; "" for the container's own."""
        while len(path) > 1:
            entry = self.inodes.entries.get(path)
            if entry is not None and entry.file_system:
                return entry.file_system
            path = dirname(path)
        return ""

    # --- changes

    def put_all(self, files: Mapping[str, FileEntry]) -> None:
        """Set entries; those of read-only files in a mount are mounted over it."""
        for path, entry in files.items():
            self.inodes.put(path, entry)
        if self.by_path:
            prefixes = tuple(f"{path}/" for path in self.by_path)
            self.overlays = tuple(
                path
                for path, entry in files.items()
                if entry.read_only and path not in self.by_path and path.startswith(prefixes)
            )

    def replace_read_only(self, files: Mapping[str, FileEntry]) -> None:
        """Replace all read-only entries, those of read-only mounts."""
        for path in [path for path, entry in self.inodes.entries.items() if entry.read_only]:
            self.inodes.delete(path)
        self.put_all(files)

    def replace(self, old: MountedFiles, new: MountedFiles) -> None:
        """Mount another file system wherever one is mounted."""
        for path, mount in self.by_path.items():
            if mount.files is old:
                self.by_path[path] = replace(mount, files=new)

    def mount_processes(self, folders: Mapping[str, Mount], pids: Sequence[int]) -> None:
        """Mount the folders of processes in /proc, instead of those that are there."""
        assert isinstance(self.inodes, Inodes), "only a container has /proc"
        self.inodes.show(PROC, map(str, pids), instead_of=map(basename, self.processes))
        self.processes, self.has_mounts = folders, bool(self.by_path or folders)
