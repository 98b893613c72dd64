"""A mount namespace in which a container's process finds the pod's volumes at their own paths.

The container's folder becomes the root. Everything of this machine is bound into it, except below the folders on the way to a
mount path: these are the container's own, and contain what the machine's folders contain. Its /tmp is empty, as that of an image. With a
namespace of processes, /proc shows these. A process of root needs the right to mount; one of another user needs user namespaces. The
launcher imports this module as a script, so it imports nothing of mockube.
"""

import os
import posixpath
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, NamedTuple

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_LOCKED_FLAGS: Final = {os.ST_NOSUID: _MS_NOSUID, os.ST_NODEV: _MS_NODEV, os.ST_NOEXEC: _MS_NOEXEC}
"""The flags of a file system that a user namespace may not remove, and those of mount(2)."""
_OPTIONS: Final = {"nosuid": _MS_NOSUID, "nodev": _MS_NODEV, "noexec": _MS_NOEXEC}
"""The flags of mount(2) by option."""
TEMPORARY: Final = "/tmp"  # noqa: S108 - of a container
OWN_FOLDERS: Final = ("/", "/dev", TEMPORARY)
"""The folders that each container has for itself."""
_PROCESSES: Final = "/proc"
MAX_ENTRIES: Final = 4096
"""The number of entries of a folder that are bound one by one."""


class Bind(NamedTuple):
    """A file or folder of this machine, and the path at which the container sees it."""

    source: str
    path: str
    read_only: bool
    options: tuple[str, ...] = ()
    """Further options, such as `noexec`."""


class Mounts(NamedTuple):
    """The root and the mounts of a container, the outer ones first."""

    root: str
    binds: "tuple[Bind, ...]" = ()
    folders: "tuple[str, ...]" = ()
    """Further folders that the container has for itself."""

    def fields(self) -> tuple[object, ...]:
        """Return the arguments of `enter`, of built-in types."""
        return (self.root, [tuple(bind) for bind in self.binds], self.folders)

    def source_of(self, path: str) -> "str | None":
        """Return the path on this machine of a path below a mount; None if no mount hides the machine's own."""
        for bind in reversed(self.binds):
            if path == bind.path or path.startswith(f"{bind.path}/"):
                return bind.source + path[len(bind.path) :]
        return None


def enter(
    mount: Callable[..., None],
    root: str,
    pairs: "Iterable[tuple[str, str, bool, tuple[str, ...]]]",
    folders: "Iterable[str]",
    *,
    has_processes: bool,
) -> None:
    """Take the root and the mounts of `Mounts.fields`, in a mount namespace that is new; raise OSError if that is not possible.

    `mount` mounts a source at a target with flags and a kind. With `has_processes` the process is in a namespace of processes.
    """
    folder = os.getcwd()  # noqa: PTH109 - pathlib would be imported for this
    _Root(mount, root, [Bind(*pair) for pair in pairs], folders, has_processes=has_processes).make()
    take_root(root, folder)


def take_root(root: str, folder: str) -> None:
    """Make a folder the root, and go to a folder of this machine, or to the one that it is in the root."""
    os.chroot(root)
    os.chdir("/" + folder[len(root) :].lstrip("/") if _is_below(folder, root) else folder)


def show_processes(mount: Callable[..., None], root: str = "") -> None:
    """Let /proc show the processes of the namespace that this process is in, in a mount namespace that is new."""
    if not root:
        make_private(mount)
    mount("proc", root + _PROCESSES, _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, "proc")


def make_private(mount: Callable[..., None]) -> None:
    """Keep the mounts that follow from the mount namespace of this machine."""
    mount("none", "/", _MS_REC | _MS_PRIVATE)


def own_folders(mount_paths: Iterable[str], further: Iterable[str] = ()) -> "set[str]":
    """Return the folders on the way to mount paths, and those that each container has; not those in a volume."""
    mounted, all_own = set(mount_paths), {*OWN_FOLDERS, *further}
    all_own |= {parent for path in (*mounted, *further) for parent in _parents(path)}
    return {
        folder
        for folder in all_own
        if folder not in mounted and not any(map(mounted.__contains__, _parents(folder)))
    }


def _parents(path: str) -> "list[str]":
    parents = []
    while (parent := posixpath.dirname(path)) != path:
        path = parent
        parents.append(path)
    return parents


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


class _Root:
    """The root folder of a container, in which the machine's files are bound."""

    def __init__(
        self,
        mount: Callable[..., None],
        root: str,
        binds: "list[Bind]",
        folders: "Iterable[str]",
        *,
        has_processes: bool,
    ) -> None:
        self._mount = mount
        self._root = root
        self._binds = binds
        self._has_processes = has_processes
        self._hidden = {bind.path for bind in binds}
        self._own = own_folders(self._hidden, folders)

    def make(self) -> None:
        make_private(self._mount)
        for path in self._own:
            os.makedirs(self._root + path, exist_ok=True)  # noqa: PTH103
        if self._has_processes:
            os.makedirs(self._root + _PROCESSES, exist_ok=True)  # noqa: PTH103
            show_processes(self._mount, self._root)
        self._mirror("/")
        for bind in self._binds:
            self._bind(bind, self._root + bind.path)

    def _mirror(self, folder: str) -> None:
        """Bind what a folder of the machine contains into that of the container, one by one."""
        if folder == TEMPORARY or not os.path.isdir(folder):  # noqa: PTH112
            return
        names = os.listdir(folder)  # noqa: PTH208
        if len(names) > MAX_ENTRIES:
            raise OSError(f"{folder} has more than {MAX_ENTRIES} entries")
        for name in names:
            path = posixpath.join(folder, name)
            if path in self._own:
                self._mirror(path)
            elif path not in self._hidden and not (self._has_processes and path == _PROCESSES):
                # Programs of the machine remove files, and put folders in the place of files, at the same time.
                with suppress(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
                    self._bind_entry(path, self._root + path)

    def _bind_entry(self, path: str, target: str) -> None:
        if os.path.islink(path):  # noqa: PTH114
            os.symlink(os.readlink(path), target)  # noqa: PTH115, PTH211
        elif os.path.exists(path):  # noqa: PTH110
            self._bind(Bind(path, target, read_only=False), target)

    def _bind(self, bind: Bind, target: str) -> None:
        if os.path.isdir(bind.source):  # noqa: PTH112
            os.makedirs(target, exist_ok=True)  # noqa: PTH103
        elif not os.path.lexists(target):
            os.makedirs(posixpath.dirname(target), exist_ok=True)  # noqa: PTH103
            with suppress(FileExistsError), open(target, "x", encoding="ascii"):  # noqa: PTH123
                pass  # Another command of the container may run at the same time.
        self._mount(bind.source, target, _MS_BIND | _MS_REC)
        if bind.read_only or bind.options:
            present = os.statvfs(target).f_flag
            flags = _MS_RDONLY if bind.read_only else 0
            for bit, flag in _LOCKED_FLAGS.items():
                flags |= flag if present & bit else 0
            for option in bind.options:
                flags |= _OPTIONS[option]
            self._mount("none", target, _MS_BIND | _MS_REMOUNT | flags)
