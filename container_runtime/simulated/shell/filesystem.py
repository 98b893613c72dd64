"""The file system of a simulated container: a tree in memory, of bounded size, with owners and modes."""

# ruff: noqa: SLF001 - private members of other file systems, which are mounted, are of the same class

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from posixpath import basename, dirname, join, normpath
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mockube.container_runtime.disk_usage import DISK_BYTES

from . import limits
from .access import READ, ROOT, SEARCH, SET_GROUP, STICKY, WRITE, ContainerUser, is_allowed
from .node_disk import NodeDisk

MAX_LINKS: Final = 40
"""The maximum number of symbolic links in the resolution of a path."""
_DIRECTORY_SIZE: Final = 4096
_FEW_ZEROS: Final = 4096
"""Fewer zeros than these are data as others."""
PROC: Final = "/proc"
_ROOT_LINK: Final = "/root"
"""The link in the folder of a process in /proc that leads to its files."""
_EMPTY_FOLDERS: Final = ("/tmp/", "/run/secrets", "/var/run/secrets")  # noqa: S108 - of a simulated container
"""The beginnings of paths that images do not have: those of secrets exist only where something is mounted."""
_FOLDERS_OF_ROOT: Final = (
    "/bin/", "/boot/", "/lib/", "/lib64/", "/proc/", "/root/", "/sbin/", "/sys/", "/usr/bin/", "/usr/lib/", "/usr/local/bin/", "/usr/local/lib/",
    "/usr/sbin/", "/usr/share/",
)  # fmt: skip
"""Folders that are root's in every image, with all that is in them."""
_FOLDER_OF_ROOT: Final = frozenset(
    ["/", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/srv", "/usr", "/usr/local", "/var", "/var/cache", "/var/lib", "/var/log"]
)  # fmt: skip
"""Folders that are root's in every image, and may contain others that are not."""


MAX_PATH: Final = 4095
_MAX_NAME: Final = 255
"""The lengths of paths, and of the names in them, that Linux allows."""


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
    folders: tuple[str, ...] = ()
    """The folders that are there in any case."""
    listed: tuple[tuple[str, frozenset[str]], ...] = ()
    """Folders, each with a slash at its end, with the names of all that the image may have in it."""

    def lacks(self, path: str) -> bool:
        """Return whether a folder of the image that contains a path has other names only."""
        return any(
            path.startswith(folder) and path[len(folder) :].partition("/")[0] not in names
            for folder, names in self.listed
        )


class ProcessView(NamedTuple):
    """What /proc shows of a process of another container."""

    files: Mapping[str, FileEntry]
    """The files in its folder, such as `/cmdline`."""
    user: int
    root: "FileSystem | None"
    """The files that the process has; None if the user may not trace it."""


WriteProtection = tuple[tuple[str, bool], ...]
"""Paths, the longest first, with whether what is there can only be read; what is at no path can be written."""


class _Place(NamedTuple):
    """Where a path is: in the file system of the container, or in that of a mount."""

    files: "FileSystem"
    path: str
    read_only: bool


class FileSystem:
    """A file system.

    If `is_partial`, paths without an entry may be files of the unknown image: they are read as empty files. Paths in
    one of the `volumes` are known. Without `places`, the image may have files anywhere. What the `user` may not do fails.
    """

    def __init__(  # noqa: PLR0913 - what a container's files consist of
        self,
        files: Mapping[str, FileEntry] | None = None,
        *,
        is_partial: bool = False,
        volumes: tuple[str, ...] = (),
        places: ImagePlaces | None = None,
        mounts: Mapping[str, Mount] | None = None,
        user: ContainerUser = ROOT,
        protection: WriteProtection = (),
        capacity: int | None = None,
        root: FileEntry | None = None,
        on_change: Callable[[], None] | None = None,
    ) -> None:
        """`on_change` is called after each change of a file.

        `mounts` are shared with other file systems; paths below them are not in this one, but those of read-only `files`.
        """
        self._mounts = dict(sorted((mounts or {}).items(), key=lambda item: -len(item[0])))
        self._processes: Mapping[str, Mount] = {}
        """The folders in /proc of the processes of other containers, and before each the root to which its link `root` leads."""
        self._has_mounts = bool(self._mounts)
        self._volumes = tuple(f"{path.rstrip('/')}/" for path in volumes)
        self._user = user
        self._overrides = user.has("DAC_OVERRIDE")
        """Whether the user may use all files, as root may."""
        self._protection = protection
        self.capacity = capacity
        """The maximum bytes of all files, which include those that take no memory; None: those of the node's disk."""
        self._entries: MutableMapping[str, FileEntry] = {"/": root or FileEntry(mode=0o755)}
        self._children: dict[str, set[str]] = {"/": set()}
        self._bytes = 0
        self._zeros = 0
        self._links = set[str]()
        self._link_prefixes: tuple[str, ...] | None = ()
        """The paths of the links, for a fast look whether a path is below one; None after a change."""
        self._removed: set[str] = set()
        """The paths of the unknown image that were removed."""
        self._overlays: tuple[str, ...] = ()
        """The paths in mounts at which files of this file system are mounted."""
        self.is_partial = is_partial
        self.guesses = 0
        """How often it was asked for a path whose file may be the image's or the run-time's, and is not here."""
        self._places = places
        self._unknown_file: Callable[[str], Exception | None] = lambda _: None
        self.disk: NodeDisk | None = None
        """The disk that the files share with those of the node's other containers, unless they have a capacity of their own."""
        self._on_change: Callable[[], None] | None = None
        self._put_all(files or {})
        for folder in () if places is None else places.folders:
            # What a volume is mounted over is not the image's: nobody may know the contents of the volume yet.
            is_mounted = self._has_mounts and self._find_mount(folder) is not None
            if not is_mounted and self._lookup(folder) is None:
                is_temporary = f"{folder}/" in _EMPTY_FOLDERS
                self.put(folder, FileEntry(mode=0o1777) if is_temporary else self._guessed_folder(folder))
        self._on_change = on_change
        self._initial = self.used

    def _put_all(self, files: Mapping[str, FileEntry]) -> None:
        for path, entry in files.items():
            self.put(path, entry)
        if self._mounts:
            self._overlays = tuple(
                path
                for path, entry in files.items()
                if entry.read_only and path not in self._mounts and path.startswith(self._mount_prefixes)
            )

    @property
    def _mount_prefixes(self) -> tuple[str, ...]:
        return tuple(f"{path}/" for path in self._mounts)

    def _find_mount(self, path: str) -> tuple[Mount, str] | None:
        """Return the mount of a path, and the path in it; None if the path is in no mount."""
        for mount_path, mount in self._processes.items():
            if path == mount_path or path.startswith(f"{mount_path}/"):
                return mount, path[len(mount_path) :] or "/"
        for mount_path, mount in self._mounts.items():
            if path == mount_path or path.startswith(f"{mount_path}/"):
                if path in self._overlays:
                    return None
                return mount, (mount.inner + path[len(mount_path) :]) or "/"
        return None

    def _place(self, path: str) -> _Place:
        """Return where a path without symbolic links is."""
        mount_and_path = self._find_mount(path) if self._has_mounts else None
        if mount_and_path is None:
            return _Place(self, path, self._is_protected(path))
        mount, inner = mount_and_path
        place = mount.files._place(inner)
        return place._replace(read_only=True) if mount.read_only else place

    def _is_protected(self, path: str) -> bool:
        for protected, read_only in self._protection:
            if path == protected or path.startswith(f"{protected.rstrip('/')}/"):
                return read_only
        return False

    def is_protected(self, path: str) -> bool:
        """Return whether a path is in a file system that can only be read."""
        return self._place(self.resolve(path)).read_only

    def put(self, path: str, entry: FileEntry) -> None:
        """Set an entry, and create missing directories above it."""
        path = normpath(path)
        self._make_parents(path)
        self._set(path, entry)

    @property
    def size(self) -> int:
        """The number of bytes of all files together, as they are in memory."""
        return self._bytes

    @property
    def used(self) -> int:
        """The number of bytes of all files together, as a disk would have them."""
        return self._bytes + self._zeros

    @property
    def written(self) -> int:
        """The number of bytes by which all files together have grown since the file system was made."""
        return max(self.used - self._initial, 0)

    @property
    def in_memory(self) -> bool:
        return self._entries["/"].file_system == "tmpfs"

    @property
    def source(self) -> tuple[str, str]:
        """The device and the type of the file system: that of a container lies over its image."""
        return "overlay", "overlay"

    @property
    def known_folders(self) -> tuple[str, ...]:
        """The folders of which all files are known: volumes with the files of API objects."""
        return tuple(path.rstrip("/") for path in self._volumes)

    def mounts(self) -> Mapping[str, Mount]:
        """Return the mounts by path."""
        return self._mounts

    def show_processes(self, processes: Mapping[int, ProcessView]) -> None:
        """Show processes of other containers in /proc, by their ids."""
        folders: dict[str, Mount] = {}
        for pid, view in processes.items():
            path = f"{PROC}/{pid}"
            root = view.root if view.root is not None else _FORBIDDEN
            folders[f"{path}{_ROOT_LINK}"] = Mount(files=root)
            link = FileEntry(data=b"/", target="/", mode=0o777, user=view.user)
            folders[path] = Mount(
                files=FileSystem(
                    {**view.files, _ROOT_LINK: link}, root=FileEntry(mode=0o555, user=view.user)
                ),
                read_only=True,
            )
        for path in self._processes:
            self._children[PROC].discard(basename(path))
        self._processes, self._has_mounts = folders, bool(self._mounts or folders)
        for pid in processes:
            self._children.setdefault(PROC, set()).add(str(pid))

    def replace_mounted(self, old: "FileSystem", new: "FileSystem") -> None:
        """Mount another file system wherever one is mounted."""
        for path, mount in self._mounts.items():
            if mount.files is old:
                self._mounts[path] = replace(mount, files=new)

    def replace_read_only(self, files: Mapping[str, FileEntry]) -> None:
        """Replace all read-only entries, those of read-only mounts."""
        for path in [path for path, entry in self._entries.items() if entry.read_only]:
            self._delete(path)
        self._put_all(files)

    def replace_contents(self, entries: Mapping[str, FileEntry]) -> None:
        """Replace all files by others, without a change that is reported."""
        on_change, self._on_change = self._on_change, None
        for path in [path for path in self._entries if path != "/"]:
            self._delete(path)
        for path, entry in entries.items():
            self.put(path, entry)
        self._on_change = on_change

    def _delete(self, path: str) -> None:
        removed = self._entries.pop(path)
        self._bytes -= len(removed.data or b"")
        self._zeros -= removed.disk_zeros
        if removed.target:
            self._links.discard(path)
            self._link_prefixes = None
        self._children.pop(path, None)
        self._children.get(dirname(path), set()).discard(basename(path))
        if self._on_change is not None:
            self._on_change()

    def resolve(self, path: str) -> str:
        """Return a path without symbolic links; the last component need not exist."""
        _check_length(path)
        if not self._may_have_links(path):
            return path
        remaining = path.strip("/").split("/")[::-1]
        current, links = "/", 0
        while remaining:
            candidate = normpath(join(current, remaining.pop()))
            if self._processes and self._is_forbidden_root(candidate):
                raise AccessDenied
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

    def _may_have_links(self, path: str) -> bool:
        """Return whether a component of a path may be a link: volumes of API objects, which nearly every container has, are made of links."""
        if self._link_prefixes is None:
            self._link_prefixes = tuple(self._links)
        return path.startswith(self._link_prefixes) or any(
            mount.files._has_links and path.startswith(mount_path)
            for mounts in (self._mounts, self._processes)
            for mount_path, mount in mounts.items()
        )

    def _is_forbidden_root(self, path: str) -> bool:
        """Return whether a path is the root of a process that the user may not trace."""
        mount = self._processes.get(path)
        return mount is not None and mount.files is _FORBIDDEN

    @property
    def _has_links(self) -> bool:
        return bool(self._links)

    def resolve_parent(self, path: str) -> str:
        """Return a path whose directories, but not its last component, are without symbolic links."""
        _check_length(path)
        if not self._may_have_links(path):
            return path
        name = basename(path)
        return join(self.resolve(dirname(path)), name) if name else path

    def _lookup(self, path: str) -> FileEntry | None:
        if self._has_mounts and (delegate := self._find_mount(path)) is not None:
            return delegate[0].files._lookup(delegate[1])
        return self._entries.get(path)

    def entry(self, path: str) -> FileEntry:
        """Return the entry of a path; a symbolic link is followed."""
        return self._entry_without_links(self.resolve(path))

    def link_entry(self, path: str) -> FileEntry:
        """Return the entry of a path; the last component may be a symbolic link."""
        path = self.resolve_parent(path)
        if path.endswith(_ROOT_LINK) and path in self._processes:
            return self._processes[dirname(path)].files._entries[_ROOT_LINK]
        return self._entry_without_links(path)

    def _entry_without_links(self, path: str) -> FileEntry:
        """Return the entry of a path whose folders are without links; raise an error if the user may not search them."""
        if not self._overrides:
            self._require_search(path)
        return self._find_entry(path)

    def _find_entry(self, path: str) -> FileEntry:
        if self._has_mounts and (delegate := self._find_mount(path)) is not None:
            return delegate[0].files._find_entry(delegate[1])
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
        if path.startswith("/proc/") and path[6:7].isdigit() and not path.startswith("/proc/1/"):
            self._note_guess(path)
            return False  # Images have no processes; the first one is the container's own.
        self._note_guess(path)
        possible = None if self._places is None else self._places.possible
        if possible is not None and not f"{path}/".startswith(possible):
            return False
        if self._places is not None and self._places.lacks(path) and not self.is_mounted(path):
            return False
        if self._removed and any(
            path == removed or path.startswith(f"{removed}/") for removed in self._removed
        ):
            return False
        return not self._is_in_volume(path) and (not self._has_mounts or self._find_mount(path) is None)

    def _note_guess(self, path: str) -> None:
        self.guesses += not path.startswith("/dev/")

    def _may_have_folder(self, path: str) -> bool:
        """Return whether a folder without an entry may be in the image, or is above one that may be."""
        possible = None if self._places is None else self._places.possible
        is_above = possible is not None and any(place.startswith(f"{path}/") for place in possible)
        return is_above or self.may_exist(path)

    def is_expected(self, path: str) -> bool:
        """Return whether a path without an entry counts as one in the image: who tests a file does not know that it exists."""
        is_usual = self._places is None or f"{path}/".startswith(self._places.usual)
        return is_usual and self.may_exist(path)

    def _is_in_volume(self, path: str) -> bool:
        """Return whether a path is in a read-only volume, all of whose files are known."""
        assert path.startswith("/"), path  # A relative path has no folder that is known.
        parent = dirname(path)
        while parent not in self._entries:
            parent = dirname(parent)
        return self._entries[parent].read_only

    def exists(self, path: str) -> bool:
        """Return whether a path is that of an entry; a symbolic link is followed."""
        try:
            return self.has(self.resolve(path))
        except NameTooLong:
            return False

    def has(self, path: str) -> bool:
        """Return whether a path is that of an entry; the last component may be a symbolic link."""
        return self.knows(path)

    def hides(self, path: str) -> bool:
        """Return whether a volume hides what the image has at a path, and no program that is not simulated may have written there."""
        is_hidden = f"{path}/".startswith(self._volumes) or (
            self._has_mounts and self._find_mount(path) is not None
        )
        return is_hidden and self._unknown_file(path) is None

    def is_mounted(self, path: str) -> bool:
        """Return whether a path is in a volume."""
        volumes = () if self._places is None else self._places.volumes
        return path.startswith(volumes) or self._find_mount(path) is not None

    def knows(self, path: str) -> bool:
        """Return whether a path is that of an entry, also where an image may have others."""
        try:
            return self._lookup(self.resolve_parent(path)) is not None
        except NameTooLong:
            return False

    def refuse_unknown(self, error_of: Callable[[str], Exception | None]) -> None:
        """Have a read of a path without a file raise the error of the path, if what is not simulated may have written it."""
        self._unknown_file = error_of

    def read(self, path: str) -> bytes:
        entry = self.readable(path)
        assert entry.data is not None
        if entry.size > limits.MAX_FILE_BYTES:
            raise FileError("File too large")
        return entry.data + bytes(entry.zeros)

    def readable(self, path: str) -> FileEntry:
        """Return the entry of a file that the user may read."""
        try:
            entry = self.entry(path)
        except NoSuchFile as error:
            if (unknown := self._unknown_file(path)) is not None:
                raise unknown from error
            raise
        if entry.data is None:
            raise IsFolder
        if not self._may(entry, READ):
            raise AccessDenied
        return self.content(path)

    def content(self, path: str) -> FileEntry:
        """Return the entry of a file with its data, whatever the user's rights."""
        entry = self.entry(path)
        if entry.is_on_disk:
            place = self._place(self.resolve(path))
            return place.files._load(place.path, entry)
        if entry.is_unkept:
            raise FileError("File too large")
        return entry

    def _load(self, path: str, entry: FileEntry) -> FileEntry:
        """Return an entry whose data are in a folder of this machine with these data."""
        del path
        return entry

    def write(  # noqa: PLR0913 - what a file consists of
        self,
        path: str,
        data: bytes,
        *,
        append: bool = False,
        modified: float = 0.0,
        zeros: int = 0,
        mode: int = 0o644,
        is_sparse: bool = False,
    ) -> None:
        """Write a file, whose data are followed by `zeros`; a new one gets the mode, and belongs to the user."""
        path = self.resolve(path)
        place = self._place(path)
        old = place.files._entries.get(place.path)
        if old is not None and old.is_directory:
            raise FileError("Is a directory")
        self._check_writable(path, place, old)
        if old is None:
            place.files._set(
                place.path,
                FileEntry(
                    data=data,
                    zeros=zeros,
                    is_sparse=is_sparse,
                    mode=mode,
                    modified=modified,
                    user=self._user.user,
                    group=self._group_of_new(path),
                ),
            )
            return
        new = replace(old, data=data, zeros=zeros, is_sparse=is_sparse, modified=modified)
        if append:
            place.files._append(place.path, new)
        else:
            place.files._set(place.path, replace(new, is_unkept=False, is_on_disk=False))

    def _append(self, path: str, added: FileEntry) -> None:
        """Append the data and the zeros of an entry to a file."""
        old = self._entries[path]
        before, data, zeros, is_sparse = old.data or b"", added.data or b"", added.zeros, added.is_sparse
        if old.is_unkept:
            data, zeros = before, old.zeros + zeros + len(data)
        elif not data:
            data, zeros, is_sparse = before, old.zeros + zeros, old.is_sparse and not zeros
        else:
            data = before + bytes(_memory_for(old.zeros)) + data
        self._set(path, replace(added, data=data, zeros=zeros, is_sparse=is_sparse))

    def rename(self, path: str, target: str) -> bool:
        """Rename a file in one step where the file system can do that; return False if it has to be copied."""
        path, target = self.resolve_parent(path), self.resolve_parent(target)
        source_place, target_place = self._place(path), self._place(target)
        files = source_place.files
        if not files.is_folder or files is not target_place.files or target_place.read_only:
            return False
        self._check_writable(target, target_place, None)
        files._rename(source_place.path, target_place.path)
        return True

    is_folder = False
    """Whether the files are in a folder of this machine, with all of their data."""

    def keeps_data(self, path: str) -> bool:
        """Return whether a file at a path keeps all of its data, however large it is."""
        return self._place(self.resolve(path)).files.is_folder

    def _rename(self, path: str, target: str) -> None:
        raise NotImplementedError

    def free_bytes(self, path: str) -> int:
        """Return how many bytes can be written where a path is."""
        return self._place(self.resolve(path)).files._free()

    def _free(self) -> int:
        own = max(self.disk_size - self.used, 0)
        return own if self.disk is None or self.capacity is not None else min(own, self.disk.free())

    @property
    def disk_used(self) -> int:
        """The bytes that are in use on the disk that the files are on, also by others."""
        return self.disk_size - self._free()

    def _reserve(self, more: int) -> bool:
        """Return whether the disk of the node has space for more bytes, which count as used from now on."""
        return self.disk is None or self.capacity is not None or self.disk.reserve(more)

    @property
    def disk_size(self) -> int:
        if self.capacity is not None:
            return self.capacity
        return DISK_BYTES if self.disk is None else self.disk.size

    def link(self, path: str, target: str, *, modified: float = 0.0) -> None:
        """Create a symbolic link."""
        path = self.resolve_parent(path)
        place = self._place(path)
        if place.path in place.files._entries:
            raise FileError("File exists")
        self._check_writable(path, place, None)
        entry = FileEntry(
            data=target.encode(),
            target=target,
            mode=0o777,
            modified=modified,
            user=self._user.user,
            group=self._group_of_new(path),
        )
        place.files._set(place.path, entry)

    def make_directory(
        self, path: str, *, parents: bool = False, modified: float = 0.0, mode: int = 0o755
    ) -> None:
        path = self.resolve(path) if parents else self.resolve_parent(path)
        present = self._lookup(path)
        if present is not None:
            if parents and present.is_directory:
                return
            raise FileError("File exists")
        missing = [path]
        while parents and len(parent := dirname(missing[-1])) > 1 and self._lookup(parent) is None:
            if not self._guessed_folder(parent).is_guess or self._is_of_unknown_image(parent):
                self._make_parents(missing[-1])
                break
            missing.append(parent)
        if parents and missing == [path] and dirname(path) == "/" and self._is_of_unknown_image(path):
            self._set(path, self._guessed_folder(path))
            return
        for folder in reversed(missing):
            place = self._place(folder)
            self._check_writable(folder, place, None)
            entry = FileEntry(
                mode=mode | self._folder_entry(dirname(folder)).mode & SET_GROUP,
                modified=modified,
                user=self._user.user,
                group=self._group_of_new(folder),
            )
            place.files._set(place.path, entry)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        for _ in self.removing(path, recursive=recursive):
            pass

    def removing(self, path: str, *, recursive: bool) -> Iterator[None]:
        """Remove a file, or a folder with its contents, which may be many: in many steps."""
        path = self.resolve_parent(path)
        if recursive and any(
            mount_path.startswith(f"{path.rstrip('/')}/") or mount_path == path for mount_path in self._mounts
        ):
            raise FileError("Resource busy")
        place = self._place(path)
        files = place.files
        entry = files._entries.get(place.path)
        if entry is None:
            if files is not self or not self.may_exist(path):
                raise NoSuchFile
            self._check_removable(path, place, FileEntry(data=b"", is_guess=True))
            self._removed.add(path)
            return
        if entry.is_directory and not recursive:
            raise FileError("Is a directory")
        paths: list[str] = []
        for each in files._walk_all(place.path):
            if path == "/" or ((found := files._entries.get(each)) is not None and found.read_only):
                raise ReadOnly
            paths.append(each)
            yield
        self._check_removable(path, place, entry)
        yield from self._check_access_to_contents(path)
        yield from files._delete_all(reversed(paths))
        if self.is_partial:
            self._removed.add(path)

    def _delete_all(self, paths: Iterable[str]) -> Iterator[None]:
        for path in paths:
            if self._children.get(path):  # what another process has written meanwhile
                raise FileError("Directory not empty")
            if path in self._entries:
                self._delete(path)
            yield

    def require_removable(self, path: str) -> None:
        """Raise an error if the user may not remove a file from its folder."""
        path = self.resolve_parent(path)
        self._check_removable(path, self._place(path), self.link_entry(path))

    def change(self, path: str, **attributes: float) -> None:
        """Change the mode, the owner, the group or the time of a file, as its owner may."""
        path = self.resolve(path)
        entry = self.entry(path)
        place = self._place(path)
        if place.read_only or entry.read_only:
            raise ReadOnly
        self._check_change(entry, attributes)
        if self._lookup(path) is None:
            self._check_writable(path, place, None)
        place.files.set_attributes(place.path, replace(entry, **attributes))

    def set_attributes(self, path: str, entry: FileEntry) -> None:
        """Change the owner, the mode and the time of a file to those of an entry with the same data."""
        self._set(path, entry)

    def restore(self, path: str, entry: FileEntry) -> None:
        """Give a file that was moved the owner, the mode and the time that it had."""
        place = self._place(self.resolve_parent(path))
        present = place.files._entries[place.path]
        moved = replace(present, mode=entry.mode, user=entry.user, group=entry.group, modified=entry.modified)
        place.files.set_attributes(place.path, moved)

    def change_mode(self, path: str, mode: int) -> None:
        self.change(path, mode=mode)

    # --- rights

    def as_user(self, user: ContainerUser) -> "FileSystem":
        """Return the same files as another user sees them."""
        view = FileSystem.__new__(FileSystem)
        view.__dict__ = {**self.__dict__, "_user": user, "_overrides": user.has("DAC_OVERRIDE")}
        return view

    @property
    def user(self) -> ContainerUser:
        """The user whose rights count."""
        return self._user

    def _may(self, entry: FileEntry, rights: int) -> bool:
        return entry.is_guess or is_allowed(self._user, entry.user, entry.group, entry.mode, rights)

    def _require_search(self, path: str) -> None:
        parent = dirname(path)
        while len(parent) > 1:  # also that of a relative path ends
            entry = self._lookup(parent)
            if entry is not None and entry.is_directory and not self._may(entry, SEARCH):
                raise AccessDenied
            parent = dirname(parent)

    def _check_access_to_contents(self, path: str) -> Iterator[None]:
        """Raise an error if the user may not empty a folder, or one of its folders; in many steps."""
        if self._overrides:
            return
        for each in self._walk_all(path):
            entry = self._lookup(each)
            is_full_folder = entry is not None and entry.is_directory and any(self._names(each))
            if entry is not None and is_full_folder and not self._may(entry, WRITE | SEARCH):
                raise AccessDenied
            yield

    def _folder_entry(self, path: str) -> FileEntry:
        """Return the entry of a folder, also of one that the image may have."""
        return self._lookup(path) or self._guessed_folder(path)

    def _guessed_folder(self, path: str) -> FileEntry:
        is_of_root = path in _FOLDER_OF_ROOT or f"{path}/".startswith(_FOLDERS_OF_ROOT)
        mode = 0o700 if path == "/root" else 0o755
        return FileEntry(mode=mode, is_guess=not is_of_root)

    def _is_of_unknown_image(self, path: str) -> bool:
        """Return whether an image of which nobody knows the folders may have a folder that its user may write."""
        is_known_image = self._places is None or self._places.possible is not None
        return bool(self._user.user) and not is_known_image and not self._place(path).read_only

    def _group_of_new(self, path: str) -> int:
        """Return the group of a file that the user creates: that of a folder with the bit for it, or else the user's."""
        folder = self._folder_entry(dirname(path))
        return folder.group if folder.mode & SET_GROUP else self._user.group

    def _check_removable(self, path: str, place: _Place, entry: FileEntry) -> None:
        if place.read_only:
            raise ReadOnly
        if self._overrides and self._user.has("FOWNER"):
            return
        self._require_search(path)
        folder = self._folder_entry(dirname(path))
        if not self._may(folder, WRITE | SEARCH):
            raise AccessDenied
        is_owner = self._user.user in (folder.user, entry.user)
        if folder.mode & STICKY and not is_owner and not self._user.has("FOWNER"):
            raise OperationNotPermitted

    def _check_change(self, entry: FileEntry, attributes: Mapping[str, float]) -> None:
        identity = self._user
        if entry.is_guess:
            return
        is_owner = identity.user == entry.user
        group = attributes.get("group", entry.group)
        if not identity.has("CHOWN"):
            if attributes.get("user", entry.user) != entry.user:
                raise OperationNotPermitted
            if group != entry.group and not (is_owner and group in (identity.group, *identity.others)):
                raise OperationNotPermitted
        if is_owner or identity.has("FOWNER"):
            return
        if "mode" in attributes:
            raise OperationNotPermitted
        if set(attributes) == {"modified"} and not self._may(entry, WRITE):
            raise AccessDenied

    # --- folders

    def children(self, path: str) -> Iterable[str]:
        """Return the names in a directory, sorted."""
        path = self.resolve(path)
        entry = self.entry(path)
        if not entry.is_directory:
            raise FileError("Not a directory")
        if not self._may(entry, READ):
            raise AccessDenied
        return sorted(self._names(path))

    def _names(self, path: str) -> Iterable[str]:
        if self._has_mounts and (delegate := self._find_mount(path)) is not None:
            names = delegate[0].files._names(delegate[1])
            return {*names, *self._children.get(path, ())} if self._overlays else names
        if self.is_partial and not f"{path}/".startswith((*self._volumes, *_EMPTY_FOLDERS)):
            self._note_guess(path)
        return self._children.get(path, ())

    def file_system(self, path: str) -> str:
        """Return the type of the file system of a path; "" for the container's own."""
        self.entry(path)
        while len(path) > 1:
            entry = self._entries.get(path)
            if entry is not None and entry.file_system:
                return entry.file_system
            path = dirname(path)
        return ""

    def changed_entries(self) -> Iterator[tuple[str, FileEntry]]:
        """Yield the entries to keep beyond the process: all."""
        return self.entries("/")

    def entries(self, path: str) -> Iterator[tuple[str, FileEntry]]:
        """Yield a path and all paths below it with their entries, whatever the user's rights."""
        if self._lookup(path) is not None:
            for each in self._walk_all(path):
                if (entry := self._lookup(each)) is not None:
                    yield each, entry

    def own_entries(self, path: str) -> Iterator[tuple[str, FileEntry]]:
        """Yield the paths at a path and below it that are in no mount, with their entries."""
        prefix = f"{path.rstrip('/')}/"
        for each, entry in self._entries.items():
            if f"{each.rstrip('/')}/".startswith(prefix):
                yield each, entry

    def walk(self, path: str) -> Iterator[str]:
        """Yield the path and all paths below it, each directory before its contents, if the user may list them."""
        return self._walk_all(path, None if self._overrides else self.may_list)

    def _walk_all(self, path: str, may_list: Callable[[str], bool] | None = None) -> Iterator[str]:
        remaining = [path]
        while remaining:
            current = remaining.pop()
            yield current
            is_link = current != path and current.endswith(_ROOT_LINK) and current in self._processes
            if not is_link and (may_list is None or may_list(current)):
                folder = f"{current.rstrip('/')}/"
                remaining += [f"{folder}{name}" for name in sorted(self._names(current), reverse=True)]

    def require(self, path: str, rights: int) -> None:
        """Raise an error if the user lacks rights on a file or a folder."""
        if not self._may(self.entry(path), rights):
            raise AccessDenied

    def may_enter(self, path: str) -> bool:
        """Return whether the user may make a folder the current one."""
        return self._may(self.entry(path), SEARCH)

    def may_list(self, path: str) -> bool:
        """Return whether the user may see what is in a folder; also true for what is no folder."""
        entry = self._lookup(path)
        return entry is None or not entry.is_directory or self._may(entry, READ | SEARCH)

    def _is_below_file(self, path: str) -> bool:
        parent = dirname(path)
        while len(parent) > 1:  # also that of a relative path ends
            entry = self._entries.get(parent)
            if entry is not None:
                return not entry.is_directory
            parent = dirname(parent)
        return False

    def _make_parents(self, path: str) -> None:
        missing = []
        assert path.startswith("/"), path  # A relative path has no folder that is known.
        parent = dirname(path)
        while parent not in self._entries:
            missing.append(parent)
            parent = dirname(parent)
        for folder in reversed(missing):
            self._set(folder, self._guessed_folder(folder))

    def _check_writable(self, path: str, place: _Place, old: FileEntry | None) -> None:
        """Raise an error if the user may not write a file, or create it."""
        files = place.files
        parent = files._entries.get(dirname(place.path))
        if parent is None:
            if not (files.is_partial and files._may_have_folder(dirname(place.path))):
                raise NoSuchFile
            files._make_parents(place.path)
            parent = files._entries[dirname(place.path)]
        if not parent.is_directory:
            raise FileError("Not a directory")
        if old is None and dirname(path) == "/proc":
            raise NoSuchFile
        if place.read_only or parent.read_only or (old is not None and old.read_only):
            raise ReadOnly
        if not self._overrides:
            self._require_search(path)
            if not (self._may(parent, WRITE | SEARCH) if old is None else self._may(old, WRITE)):
                raise AccessDenied

    def _set(self, path: str, entry: FileEntry) -> None:
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
        if more > 0 and (self.used + more > self.disk_size or not self._reserve(more)):
            raise NoSpace
        self._bytes += more_bytes
        self._zeros += more_zeros
        if entry.target or (old is not None and old.target):
            (self._links.add if entry.target else self._links.discard)(path)
            self._link_prefixes = None
        self._removed.discard(path)
        self._entries[path] = entry
        if entry.is_directory:
            self._children.setdefault(path, set())
        if path != "/":
            self._children.setdefault(dirname(path), set()).add(basename(path))
        if self._on_change is not None:
            self._on_change()


_FORBIDDEN: Final = FileSystem()
"""The root of a process that a user may not trace."""


def _check_length(path: str) -> None:
    """Refuse what is no path for Linux, so that what walks through one takes bounded time."""
    if len(path) > _MAX_NAME and (len(path) > MAX_PATH or max(map(len, path.split("/"))) > _MAX_NAME):
        raise NameTooLong


def _memory_for(zeros: int) -> int:
    """Return the number of zero bytes before others, which take memory; raise an error if they are too many."""
    if zeros > limits.MAX_FILE_BYTES:
        raise FileError("File too large")
    return zeros
