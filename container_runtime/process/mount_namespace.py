"""A mount namespace in which a container's process finds the pod's volumes at their own paths.

The container's folder becomes the root. Everything of this machine is bound into it, except below the folders on the way to a
mount path: these are the container's own, and contain what the machine's folders contain. A process of root needs the
right to mount; one of another user needs user namespaces. The launcher imports this module as a script, so it imports nothing of
mockube.
"""

import ctypes
import os
import posixpath
from ast import literal_eval
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_LOCKED_FLAGS: Final = {os.ST_NOSUID: 2, os.ST_NODEV: 4, os.ST_NOEXEC: 8}
"""The flags of a file system that a user namespace may not remove, and those of mount(2)."""
_OPTIONS: Final = {"nosuid": 2, "nodev": 4, "noexec": 8}
"""The flags of mount(2) by option."""
OWN_FOLDERS: Final = ("/", "/dev", "/tmp")  # noqa: S108 - of a container
"""The folders that each container has for itself."""
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

    def text(self) -> str:
        return repr((self.root, [tuple(bind) for bind in self.binds], self.folders))

    def source_of(self, path: str) -> "str | None":
        """Return the path on this machine of a path below a mount; None if no mount hides the machine's own."""
        for bind in reversed(self.binds):
            if path == bind.path or path.startswith(f"{bind.path}/"):
                return bind.source + path[len(bind.path) :]
        return None


def enter(text: str) -> None:
    """Enter a new mount namespace with the mounts of `Mounts.text`; raise OSError if that is not possible."""
    root, pairs, folders = literal_eval(text)
    binds = [Bind(*pair) for pair in pairs]
    folder = os.getcwd()  # noqa: PTH109 - pathlib would be imported for this
    _unshare()
    _mount("none", "/", _MS_REC | _MS_PRIVATE)
    hidden = {bind.path: bind for bind in binds}
    own = own_folders(hidden, folders)
    for path in own:
        os.makedirs(root + path, exist_ok=True)  # noqa: PTH103
    _mirror("/", root, own, hidden)
    for bind in binds:
        _bind(bind, root + bind.path)
    os.chroot(root)
    os.chdir("/" + folder[len(root) :].lstrip("/") if _is_below(folder, root) else folder)


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


def _unshare() -> None:
    user, group = os.geteuid(), os.getegid()
    _check(_LIBC.unshare(_CLONE_NEWNS if user == 0 else _CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
    if user:
        for name, line in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(line)


def _mirror(folder: str, root: str, own: "set[str]", hidden: Mapping[str, Bind]) -> None:
    """Bind what a folder of the machine contains into that of the container, one by one."""
    if not os.path.isdir(folder):  # noqa: PTH112
        return
    names = os.listdir(folder)  # noqa: PTH208
    if len(names) > MAX_ENTRIES:
        raise OSError(f"{folder} has more than {MAX_ENTRIES} entries")
    for name in names:
        path = posixpath.join(folder, name)
        if path in own:
            _mirror(path, root, own, hidden)
        elif path not in hidden:
            # Programs of the machine remove files, and put folders in the place of files, at the same time.
            with suppress(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
                _bind_entry(path, root + path)


def _bind_entry(path: str, target: str) -> None:
    if os.path.islink(path):  # noqa: PTH114
        os.symlink(os.readlink(path), target)  # noqa: PTH115, PTH211
    elif os.path.exists(path):  # noqa: PTH110
        _bind(Bind(path, target, read_only=False), target)


def _bind(bind: Bind, target: str) -> None:
    if os.path.isdir(bind.source):  # noqa: PTH112
        os.makedirs(target, exist_ok=True)  # noqa: PTH103
    elif not os.path.lexists(target):
        os.makedirs(posixpath.dirname(target), exist_ok=True)  # noqa: PTH103
        with suppress(FileExistsError), open(target, "x", encoding="ascii"):  # noqa: PTH123
            pass  # Another command of the container may run at the same time.
    _mount(bind.source, target, _MS_BIND | _MS_REC)
    if bind.read_only or bind.options:
        present = os.statvfs(target).f_flag
        flags = _MS_RDONLY if bind.read_only else 0
        for bit, flag in _LOCKED_FLAGS.items():
            flags |= flag if present & bit else 0
        for option in bind.options:
            flags |= _OPTIONS[option]
        _mount("none", target, _MS_BIND | _MS_REMOUNT | flags)


def _mount(source: str, target: str, flags: int) -> None:
    _check(
        _LIBC.mount(source.encode(), target.encode(), None, ctypes.c_ulong(flags), None), f"mount {target}"
    )


def _check(result: int, action: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")


_LIBC = ctypes.CDLL(None, use_errno=True)
