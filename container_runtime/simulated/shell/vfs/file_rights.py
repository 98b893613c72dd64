"""What a user may do with the files of a container: owners, modes, and file systems that can only be read."""

from collections.abc import Iterator, Mapping
from posixpath import dirname

from mockube.container_runtime.simulated.shell.access import (
    READ,
    SEARCH,
    SET_GROUP,
    STICKY,
    WRITE,
    ContainerUser,
    is_allowed,
)

from .file_entry import AccessDenied, FileEntry, FileError, NoSuchFile, OperationNotPermitted, ReadOnly
from .image_folders import guessed_folder
from .mount_table import MountedFiles, MountTable, Place
from .path_walk import walk_tree


class FileRights:
    """The rights of one user."""

    def __init__(self, user: ContainerUser, mounts: MountTable) -> None:
        self.user = user
        self.overrides = user.has("DAC_OVERRIDE")
        """Whether the user may use all files, as root may."""
        self._mounts = mounts

    def may(self, entry: FileEntry, rights: int) -> bool:
        """Return whether the user has rights on a file or a folder."""
        return entry.is_guess or is_allowed(self.user, entry.user, entry.group, entry.mode, rights)

    def require(self, entry: FileEntry, rights: int) -> None:
        """Raise an error if the user lacks rights on a file or a folder."""
        if not self.may(entry, rights):
            raise AccessDenied

    def require_search(self, path: str) -> None:
        """Raise an error if the user may not search the folders of a path without links."""
        parent = dirname(path)
        while len(parent) > 1:  # also that of a relative path ends
            entry = self._mounts.lookup(parent)
            if entry is not None and entry.is_directory and not self.may(entry, SEARCH):
                raise AccessDenied
            parent = dirname(parent)

    def may_list(self, path: str) -> bool:
        """Return whether the user may see what is in a folder; also true for what is no folder."""
        entry = self._mounts.lookup(path)
        return entry is None or not entry.is_directory or self.may(entry, READ | SEARCH)

    def group_of_new(self, path: str) -> int:
        """Return the group of a file that the user creates: that of a folder with the bit for it, or else the user's."""
        folder = self.folder(dirname(path))
        return folder.group if folder.mode & SET_GROUP else self.user.group

    def folder(self, path: str) -> FileEntry:
        """Return the entry of a folder, also of one that the image may have."""
        return self._mounts.lookup(path) or guessed_folder(path)

    def check_writable(self, path: str, place: Place, old: FileEntry | None) -> None:
        """Raise an error if the user may not write a file, or create it; a folder that the image may have is created."""
        inodes, unknown = place.files.inodes, place.files.unknown
        parent = inodes.entries.get(dirname(place.path))
        if parent is None:
            if not (unknown.is_partial and unknown.may_have_folder(dirname(place.path))):
                raise NoSuchFile
            inodes.make_parents(place.path)
            parent = inodes.entries[dirname(place.path)]
        if not parent.is_directory:
            raise FileError("Not a directory")
        if old is None and dirname(path) == "/proc":
            raise NoSuchFile
        if place.read_only or parent.read_only or (old is not None and old.read_only):
            raise ReadOnly
        if not self.overrides:
            self.require_search(path)
            if not (self.may(parent, WRITE | SEARCH) if old is None else self.may(old, WRITE)):
                raise AccessDenied

    def check_removable(self, path: str, place: Place, entry: FileEntry) -> None:
        """Raise an error if the user may not remove a file from its folder."""
        if place.read_only:
            raise ReadOnly
        if self.overrides and self.user.has("FOWNER"):
            return
        self.require_search(path)
        folder = self.folder(dirname(path))
        if not self.may(folder, WRITE | SEARCH):
            raise AccessDenied
        is_owner = self.user.user in (folder.user, entry.user)
        if folder.mode & STICKY and not is_owner and not self.user.has("FOWNER"):
            raise OperationNotPermitted

    def check_contents(self, files: MountedFiles, path: str) -> Iterator[None]:
        """Raise an error if the user may not empty a folder, or one of its folders; in many steps."""
        if self.overrides:
            return
        for each in walk_tree(files, path):
            entry = self._mounts.lookup(each)
            is_full_folder = entry is not None and entry.is_directory and any(files.names(each))
            if entry is not None and is_full_folder and not self.may(entry, WRITE | SEARCH):
                raise AccessDenied
            yield

    def check_change(self, entry: FileEntry, attributes: Mapping[str, float]) -> None:
        """Raise an error if the user may not change the mode, the owner, the group or the time of a file."""
        identity = self.user
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
        if set(attributes) == {"modified"} and not self.may(entry, WRITE):
            raise AccessDenied
