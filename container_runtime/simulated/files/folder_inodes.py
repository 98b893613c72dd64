"""The contents of a volume in a folder of this machine: processes have the folder, simulated containers this view of it.

Nothing of it is in memory, so that a change by one side is there for the other at once. Of a large file only its size is read until its data
are asked for; larger ones than `limits.MAX_FILE_BYTES` are shown, moved, appended to, emptied and removed, but not read.

What the kernel does not allow is noted beside the folder: the owner of a file where this process is not root, rights without which it could
not use a file any more, and the bits by which a program gets the rights of its owner, which no file of this machine gets from a simulated
container.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from posixpath import join
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.access import SET_GROUP, STICKY
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError, NoSpace, NoSuchFile
from mockube.container_runtime.simulated.shell.vfs.inodes import InodeTable

from .machine_folder import IS_ROOT, MachineFolder

MAX_READ_AT_ONCE: Final = 64 << 10
"""The size of a file up to which its data are read with its entry."""
_MAX_COUNTED: Final = 20_000
"""The number of files whose sizes are added up."""


class _Noted(NamedTuple):
    """What a file has for simulated containers."""

    user: int
    group: int
    mode: int
    is_guess: bool


_Identity = tuple[int, int, int, int]
"""The inode, the owner, the group and the mode of a file of this machine."""


class FolderInodes(InodeTable):
    """The inodes of a volume in a folder of this machine."""

    is_folder = True

    def __init__(
        self, folder: MachineFolder, root: FileEntry, source: tuple[str, str] = ("overlay", "overlay")
    ) -> None:
        """`root` has the owner and the mode of the folder itself, which exists; `source` is that of the files that move into it."""
        super().__init__()
        self.folder = folder
        self.source = source
        self._type = root.file_system
        self._zeros_of: dict[str, int] = {}
        """The zeros at the ends of files that a simulated container has written, which are holes on this machine."""
        self.noted_mark: int | None = None
        """The fingerprint when the contents were noted for the last time."""
        self._noted: dict[str, tuple[_Identity, _Noted]] = {}
        """What files have that this machine does not give them, with what they have there: what a process changes counts."""
        self.entries = _Entries(self)
        self._apply("/", root)

    @property
    def has_links(self) -> bool:
        return True  # Nobody counts those that processes make.

    def may_have_links(self, path: str) -> bool:
        del path
        return True

    # --- reading

    def read_entry(self, path: str) -> FileEntry | None:
        """Return the entry of a path; None if there is none that this process may see."""
        try:
            status = self.folder.stat(path)
            return self._entry_of(path, status)
        except FileError:
            return None

    def _entry_of(self, path: str, status: os.stat_result) -> FileEntry:
        kind, data, size, target = status.st_mode, None, 0, ""
        if stat.S_ISLNK(kind):
            target = self.folder.target(path)
            data = os.fsencode(target)
        elif stat.S_ISREG(kind):
            size = status.st_size
            data = b""
            if size <= MAX_READ_AT_ONCE:
                # Without the right to read it, it is there nevertheless.
                with suppress(FileError):
                    data, size = self.folder.read(path, MAX_READ_AT_ONCE), 0
        elif not stat.S_ISDIR(kind):
            data = b""
        on_machine, noted = self._noted.get(path, (None, None))
        if noted is None or on_machine != _identity(status):
            noted = _Noted(status.st_uid, status.st_gid, stat.S_IMODE(kind), is_guess=False)
        is_special = data == b"" and not stat.S_ISREG(kind)
        return FileEntry(
            data=data,
            zeros=size,
            is_on_disk=bool(size) or is_special,
            is_unkept=size > limits.MAX_FILE_BYTES,
            target=target,
            mode=noted.mode,
            user=noted.user,
            group=noted.group,
            is_guess=noted.is_guess,
            file_system=self._type if path == "/" else "",
            modified=status.st_mtime,
        )

    def load(self, path: str, entry: FileEntry) -> FileEntry:
        if entry.is_unkept:
            raise FileError("File too large")
        data = self.folder.read(path, limits.MAX_FILE_BYTES)
        return replace(entry, data=data, zeros=0, is_on_disk=False)

    def names(self, path: str) -> frozenset[str]:
        try:
            return frozenset(self.folder.names(path))
        except FileError:
            return frozenset()

    @property
    def size(self) -> int:
        """No byte is in memory."""
        return 0

    @property
    def used(self) -> int:
        """The bytes of all files, but for those beyond a large number of files."""
        used = 0
        for path in islice(self.paths(), _MAX_COUNTED):
            with suppress(FileError):
                status = self.folder.stat(path)
                used += _bytes_on_disk(status, self._zeros_of.get(path, 0))
        return used

    @property
    def in_memory(self) -> bool:
        return self._type == "tmpfs"

    def free(self) -> int:
        if self.quota.capacity is not None:
            return super().free()
        return min(self.quota.size, self.folder.free_bytes())

    def fingerprint(self) -> int:
        """Return a number that changes with the files: of their paths, sizes and times."""
        marks = []
        for path in islice(self.paths(), _MAX_COUNTED):
            with suppress(FileError):
                status = self.folder.stat(path)
                marks.append((path, status.st_size, status.st_mtime_ns, status.st_mode))
        return hash(tuple(marks))

    # --- writing

    def set(self, path: str, entry: FileEntry) -> None:
        old = self.read_entry(path)
        is_folder = old is not None and old.is_directory and entry.is_directory
        if not is_folder:
            self._write(path, entry, old)
        self._apply(path, entry)
        self.report_change()

    def set_attributes(self, path: str, entry: FileEntry) -> None:
        # The data are not written again: a process may have changed them meanwhile.
        self._apply(path, entry)
        self.report_change()

    def _write(self, path: str, entry: FileEntry, old: FileEntry | None) -> None:
        if entry.is_unkept or entry.is_on_disk:  # Its data are not here: other ones would be a lie.
            raise FileError("File too large")
        if entry.is_directory:
            if old is None:
                self.folder.make_directory(path)
            return
        if entry.target:
            if old is not None:
                self.folder.remove(path)
            self.folder.link(path, entry.target)
            return
        self._require_space(entry.size - (0 if old is None else old.size))
        if old is not None and old.target:
            self.folder.remove(path)
        self.folder.write(path, entry.data or b"", entry.zeros)
        self._note_zeros(path, entry.disk_zeros)

    def append(self, path: str, added: FileEntry) -> None:
        self._require_space(added.size)
        self.folder.write(path, added.data or b"", added.zeros, append=True)
        self._note_zeros(path, self._zeros_of.get(path, 0) + added.disk_zeros)
        self.folder.change(path, user=-1, group=-1, mode=None, modified=added.modified)
        self.report_change()

    def _note_zeros(self, path: str, zeros: int) -> None:
        self._zeros_of.pop(path, None)
        if zeros:
            self._zeros_of[path] = zeros

    def _require_space(self, more: int) -> None:
        if more > 0 and self.quota.capacity is not None and self.used + more > self.quota.capacity:
            raise NoSpace

    def _apply(self, path: str, entry: FileEntry) -> None:
        """Give a file its owner and its mode as far as the kernel allows, and note the rest."""
        mode = None if entry.target else _mode_on_machine(entry)
        self.folder.change(path, user=entry.user, group=entry.group, mode=mode, modified=entry.modified)
        status = self.folder.stat(path)
        present = _Noted(status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode), is_guess=False)
        mode = present.mode if entry.target else entry.mode & 0o7777
        noted = _Noted(entry.user, entry.group, mode, entry.is_guess)
        self._noted.pop(path, None)
        if noted != present:
            self._noted[path] = _identity(status), noted

    def delete(self, path: str) -> None:
        self.folder.remove(path)
        self._noted.pop(path, None)
        self._zeros_of.pop(path, None)
        self.report_change()

    def rename(self, path: str, target: str) -> bool:
        self.folder.rename(path, target)
        below = f"{path}/"
        for noted in [each for each in self._noted if each == path or each.startswith(below)]:
            self._noted[target + noted[len(path) :]] = self._noted.pop(noted)
        self._note_zeros(target, self._zeros_of.pop(path, 0))
        self.report_change()
        return True

    # --- all files

    def fill(self, entries: Mapping[str, FileEntry]) -> tuple[str, ...]:
        """Write files that were in memory; return the paths of those whose data are nowhere."""
        lost = []
        for path, entry in sorted(entries.items()):
            if path == "/":
                continue
            if entry.is_unkept:
                lost.append(path)
            else:
                self.put(path, entry)
        return tuple(lost)

    def replace_contents(self, entries: Mapping[str, FileEntry]) -> None:
        on_change, self.on_change = self.on_change, None
        for path in sorted(self.entries, key=len, reverse=True):
            if path != "/":
                # A process may have removed it, or put something into it.
                with suppress(FileError):
                    self.delete(path)
        self.fill(entries)
        self.on_change = on_change

    def entries_with_data(self, limit: int) -> tuple[dict[str, FileEntry], tuple[str, ...]]:
        """Return all files up to `limit` bytes, the smallest ones first, and the paths of the others."""
        paths = islice(self.paths(), limits.MAX_FILES)
        found = {path: entry for path in paths if (entry := self.read_entry(path)) is not None}
        loaded, left_out = dict[str, FileEntry](), []
        for path, entry in sorted(found.items(), key=lambda item: (item[1].size, item[0])):
            limit -= 0 if entry.is_directory else entry.size
            try:
                if limit < 0:
                    raise NoSpace
                loaded[path] = self.load(path, entry) if entry.is_on_disk else entry
            except FileError:
                left_out.append(path)
        return {path: loaded[path] for path in found if path in loaded}, tuple(sorted(left_out))

    def path_on_machine(self, path: str) -> str | None:
        """Return the path on this machine of a file; None if there is none, or if a link leads to it."""
        try:
            status = self.folder.stat(path)
        except NoSuchFile:
            return None
        if stat.S_ISLNK(status.st_mode):
            return None
        return join(str(self.folder.path), path.lstrip("/")).rstrip("/")


def _identity(status: os.stat_result) -> _Identity:
    return status.st_ino, status.st_uid, status.st_gid, status.st_mode


def _bytes_on_disk(status: os.stat_result, zeros: int) -> int:
    """Return what a file takes that ends with zeros of a simulated container: a process may have made a large one that is mostly a hole."""
    if stat.S_ISDIR(status.st_mode):
        return 0
    size = status.st_size
    return size if size <= MAX_READ_AT_ONCE else min(size, status.st_blocks * 512 + zeros)


def _mode_on_machine(entry: FileEntry) -> int:
    """Return the mode of a file of this machine: no program gets the rights of its owner, and this process can use it."""
    mode = entry.mode & 0o777
    if entry.is_directory:
        mode |= entry.mode & (STICKY | SET_GROUP)
    if not IS_ROOT:
        mode |= 0o700 if entry.is_directory else 0o600
    return mode


class _Entries(Mapping[str, FileEntry]):
    """The entries of a file system by path, each of which is read when it is asked for."""

    def __init__(self, files: FolderInodes) -> None:
        self._files = files

    def __getitem__(self, path: str) -> FileEntry:
        entry = self._files.read_entry(path)
        if entry is None:
            raise KeyError(path)
        return entry

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._files.read_entry(path) is not None

    def __iter__(self) -> Iterator[str]:
        return self._files.paths()

    def __len__(self) -> int:
        return sum(1 for _ in self)
