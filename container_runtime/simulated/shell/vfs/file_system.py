"""The calls by which the programs of a container use its files."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from posixpath import dirname

from msgspec.structs import replace

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.access import READ, ROOT, SET_GROUP, ContainerUser

from .file_entry import FileEntry, FileError, IsFolder, NameTooLong, NoSuchFile, ReadOnly
from .file_rights import FileRights
from .image_folders import EMPTY_FOLDERS, ImagePlaces, guessed_folder
from .inodes import Inodes, InodeTable
from .mount_table import Mount, MountTable, Place, WriteProtection
from .path_walk import is_below_file, resolve, resolve_parent, walk_tree
from .unknown_files import UnknownFiles


class FileSystem:
    """The files of a container, or of a volume, as one user sees them."""

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
        inodes: InodeTable | None = None,
    ) -> None:
        """`on_change` is called after each change of a file; `inodes` are those of a volume that has them already.

        `mounts` are shared with other file systems; paths below them are not in this one, but those of read-only `files`.
        """
        self.inodes = Inodes(root, capacity) if inodes is None else inodes
        self.mounts = MountTable(self.inodes, mounts or {}, protection)
        self.rights = FileRights(user, self.mounts)
        self.unknown = UnknownFiles(self.mounts, is_partial=is_partial, volumes=volumes, places=places)
        self.mounts.put_all(files or {})
        for folder in () if places is None else places.folders:
            # What a volume is mounted over is not the image's: nobody may know the contents of the volume yet.
            is_mounted = self.mounts.has_mounts and self.mounts.find(folder) is not None
            if not is_mounted and self.mounts.lookup(folder) is None:
                is_temporary = f"{folder}/" in EMPTY_FOLDERS
                self.inodes.put(folder, FileEntry(mode=0o1777) if is_temporary else guessed_folder(folder))
        if inodes is None:
            self.inodes.report_changes(on_change)
            self.inodes.initial = self.inodes.used

    def view(
        self,
        *,
        user: ContainerUser | None = None,
        unknown: UnknownFiles | None = None,
        mounts: MountTable | None = None,
    ) -> "FileSystem":
        """Return the same files as another user sees them, or with other unknown ones or other mounts."""
        view = FileSystem.__new__(FileSystem)
        view.inodes = self.inodes
        view.mounts = self.mounts if mounts is None else mounts
        view.rights = self.rights if user is None else FileRights(user, self.mounts)
        view.unknown = self.unknown if unknown is None else unknown
        return view

    # --- paths

    def resolve(self, path: str) -> str:
        """Return a path without symbolic links; the last component need not exist."""
        return resolve(self.mounts, path)

    def place(self, path: str) -> Place:
        """Return where a path without symbolic links is."""
        found = self.mounts.find(path) if self.mounts.has_mounts else None
        if found is None:
            return Place(self, path, self.mounts.is_protected(path))
        mount, inner = found
        place = mount.files.place(inner)
        return place._replace(read_only=True) if mount.read_only else place

    def exists(self, path: str) -> bool:
        """Return whether a path is that of an entry; a symbolic link is followed."""
        try:
            return self.has(resolve(self.mounts, path))
        except NameTooLong:
            return False

    def has(self, path: str) -> bool:
        """Return whether a path is that of an entry; the last component may be a symbolic link."""
        return self.knows(path) or self.unknown.is_present(path)

    def knows(self, path: str) -> bool:
        """Return whether a path is that of an entry, also where an image may have others."""
        try:
            return self.mounts.lookup(resolve_parent(self.mounts, path)) is not None
        except NameTooLong:
            return False

    def entry(self, path: str) -> FileEntry:
        """Return the entry of a path; a symbolic link is followed."""
        path = resolve(self.mounts, path)
        if not self.rights.overrides:
            self.rights.require_search(path)
        return self.find_entry(path)

    def link_entry(self, path: str) -> FileEntry:
        """Return the entry of a path; the last component may be a symbolic link."""
        path = resolve_parent(self.mounts, path)
        if (link := self.mounts.process_link(path)) is not None:
            return link
        if not self.rights.overrides:
            self.rights.require_search(path)
        return self.find_entry(path)

    def find_entry(self, path: str) -> FileEntry:
        """Return the entry of a path without links, whatever the user's rights; a file that the image may have is empty."""
        if self.mounts.has_mounts and (found := self.mounts.find(path)) is not None:
            return found[0].files.find_entry(found[1])
        entry = self.inodes.entries.get(path)
        if entry is None:
            if is_below_file(self.inodes.entries, path):
                raise FileError("Not a directory")
            if self.unknown.may_exist(path):
                return FileEntry(data=b"")
            raise NoSuchFile
        return entry

    # --- contents of files

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
            if (unknown := self.unknown.error_of(path)) is not None:
                raise unknown from error
            raise
        if entry.data is None:
            raise IsFolder
        self.rights.require(entry, READ)
        return self.content(path)

    def content(self, path: str) -> FileEntry:
        """Return the entry of a file with its data, whatever the user's rights."""
        entry = self.entry(path)
        if entry.is_on_disk:
            place = self.place(resolve(self.mounts, path))
            return place.files.inodes.load(place.path, entry)
        if entry.is_unkept:
            raise FileError("File too large")
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
        path = resolve(self.mounts, path)
        place = self.place(path)
        inodes = place.files.inodes
        old = inodes.entries.get(place.path)
        if old is not None and old.is_directory:
            raise FileError("Is a directory")
        self.rights.check_writable(path, place, old)
        if old is None:
            entry = FileEntry(
                data=data,
                zeros=zeros,
                is_sparse=is_sparse,
                mode=mode,
                modified=modified,
                user=self.rights.user.user,
                group=self.rights.group_of_new(path),
            )
            inodes.set(place.path, entry)
            return
        new = replace(old, data=data, zeros=zeros, is_sparse=is_sparse, modified=modified)
        if append:
            inodes.append(place.path, new)
        else:
            inodes.set(place.path, replace(new, is_unkept=False, is_on_disk=False))

    def change(self, path: str, **attributes: float) -> None:
        """Change the mode, the owner, the group or the time of a file, as its owner may."""
        path = resolve(self.mounts, path)
        entry = self.entry(path)
        place = self.place(path)
        if place.read_only or entry.read_only:
            raise ReadOnly
        self.rights.check_change(entry, attributes)
        if self.mounts.lookup(path) is None:
            self.rights.check_writable(path, place, None)
        place.files.inodes.set_attributes(place.path, replace(entry, **attributes))

    def restore(self, path: str, entry: FileEntry) -> None:
        """Give a file that was moved the owner, the mode and the time that it had."""
        place = self.place(resolve_parent(self.mounts, path))
        inodes = place.files.inodes
        present = inodes.entries[place.path]
        moved = replace(present, mode=entry.mode, user=entry.user, group=entry.group, modified=entry.modified)
        inodes.set_attributes(place.path, moved)

    # --- names in folders

    def link(self, path: str, target: str, *, modified: float = 0.0) -> None:
        """Create a symbolic link."""
        path = resolve_parent(self.mounts, path)
        place = self.place(path)
        if place.path in place.files.inodes.entries:
            raise FileError("File exists")
        self.rights.check_writable(path, place, None)
        entry = FileEntry(
            data=target.encode(),
            target=target,
            mode=0o777,
            modified=modified,
            user=self.rights.user.user,
            group=self.rights.group_of_new(path),
        )
        place.files.inodes.set(place.path, entry)

    def make_directory(
        self, path: str, *, parents: bool = False, modified: float = 0.0, mode: int = 0o755
    ) -> None:
        path = resolve(self.mounts, path) if parents else resolve_parent(self.mounts, path)
        present = self.mounts.lookup(path)
        if present is not None:
            if parents and present.is_directory:
                return
            raise FileError("File exists")
        missing = [path]
        while parents and len(parent := dirname(missing[-1])) > 1 and self.mounts.lookup(parent) is None:
            if not guessed_folder(parent).is_guess or _is_of_unknown_image(self, parent):
                self.inodes.make_parents(missing[-1])
                break
            missing.append(parent)
        if parents and missing == [path] and dirname(path) == "/" and _is_of_unknown_image(self, path):
            self.inodes.set(path, guessed_folder(path))
            return
        for folder in reversed(missing):
            place = self.place(folder)
            self.rights.check_writable(folder, place, None)
            entry = FileEntry(
                mode=mode | self.rights.folder(dirname(folder)).mode & SET_GROUP,
                modified=modified,
                user=self.rights.user.user,
                group=self.rights.group_of_new(folder),
            )
            place.files.inodes.set(place.path, entry)

    def rename(self, path: str, target: str) -> bool:
        """Rename a file in one step where the file system can do that; return False if it has to be copied."""
        path, target = resolve_parent(self.mounts, path), resolve_parent(self.mounts, target)
        source_place, target_place = self.place(path), self.place(target)
        inodes = source_place.files.inodes
        if not inodes.is_folder or inodes is not target_place.files.inodes or target_place.read_only:
            return False
        self.rights.check_writable(target, target_place, None)
        return inodes.rename(source_place.path, target_place.path)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        for _ in self.removing(path, recursive=recursive):
            pass

    def removing(self, path: str, *, recursive: bool) -> Iterator[None]:
        """Remove a file, or a folder with its contents, which may be many: in many steps."""
        path = resolve_parent(self.mounts, path)
        if recursive and self.mounts.is_busy(path):
            raise FileError("Resource busy")
        place = self.place(path)
        inodes = place.files.inodes
        entry = inodes.entries.get(place.path)
        if entry is None:
            if inodes is not self.inodes or not self.unknown.may_exist(path):
                raise NoSuchFile
            self.rights.check_removable(path, place, FileEntry(data=b"", is_guess=True))
            self.inodes.whiteouts.add(path)
            return
        if entry.is_directory and not recursive:
            raise FileError("Is a directory")
        paths: list[str] = []
        for each in walk_tree(place.files, place.path):
            if path == "/" or ((found := inodes.entries.get(each)) is not None and found.read_only):
                raise ReadOnly
            paths.append(each)
            yield
        self.rights.check_removable(path, place, entry)
        yield from self.rights.check_contents(self, path)
        yield from inodes.delete_all(reversed(paths))
        if self.unknown.is_partial:
            self.inodes.whiteouts.add(path)

    def require_removable(self, path: str) -> None:
        """Raise an error if the user may not remove a file from its folder."""
        path = resolve_parent(self.mounts, path)
        self.rights.check_removable(path, self.place(path), self.link_entry(path))

    # --- folders

    def children(self, path: str) -> Iterable[str]:
        """Return the names in a directory, sorted."""
        path = resolve(self.mounts, path)
        entry = self.entry(path)
        if not entry.is_directory:
            raise FileError("Not a directory")
        self.rights.require(entry, READ)
        return sorted(self.names(path))

    def names(self, path: str) -> Collection[str]:
        """Return the names in a directory without links, whatever the user's rights."""
        self.unknown.check_listing(path)
        if self.mounts.has_mounts and (found := self.mounts.find(path)) is not None:
            names = found[0].files.names(found[1])
            return {*names, *self.inodes.names(path)} if self.mounts.overlays else names
        self.unknown.note_listing(path)
        return self.inodes.names(path)

    def walk(self, path: str) -> Iterator[str]:
        """Yield the path and all paths below it, each directory before its contents, if the user may list them."""
        return walk_tree(self, path, None if self.rights.overrides else self.rights.may_list)


def _is_of_unknown_image(files: FileSystem, path: str) -> bool:
    """Return whether an image of which nobody knows the folders may have a folder that its user may write."""
    is_root = not files.rights.user.user
    return not is_root and not files.unknown.has_known_places and not files.place(path).read_only
