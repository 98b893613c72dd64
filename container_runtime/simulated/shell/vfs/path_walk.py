"""The walk along a path, from link to link, and over all paths below a folder."""

from collections.abc import Callable, Iterator, Mapping
from posixpath import basename, dirname, join, normpath
from typing import Final

from .file_entry import AccessDenied, FileEntry, FileError, NameTooLong
from .mount_table import ROOT_LINK, MountedFiles, MountTable

MAX_LINKS: Final = 40
"""The maximum number of symbolic links in the resolution of a path."""
MAX_PATH: Final = 4095
_MAX_NAME: Final = 255
"""The lengths of paths, and of the names in them, that Linux allows."""


def resolve(mounts: MountTable, path: str) -> str:
    """Return a path without symbolic links; the last component need not exist."""
    _check_length(path)
    if not mounts.may_have_links(path):
        return path
    remaining = path.strip("/").split("/")[::-1]
    current, links = "/", 0
    while remaining:
        candidate = normpath(join(current, remaining.pop()))
        if mounts.processes and mounts.is_forbidden(candidate):
            raise AccessDenied
        entry = mounts.lookup(candidate)
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


def resolve_parent(mounts: MountTable, path: str) -> str:
    """Return a path whose directories, but not its last component, are without symbolic links."""
    _check_length(path)
    if not mounts.may_have_links(path):
        return path
    name = basename(path)
    return join(resolve(mounts, dirname(path)), name) if name else path


def walk_tree(files: MountedFiles, path: str, may_list: Callable[[str], bool] | None = None) -> Iterator[str]:
    """Yield the path and all paths below it, each directory before its contents, which `may_list` allows to list."""
    remaining = [path]
    processes = files.mounts.processes
    while remaining:
        current = remaining.pop()
        yield current
        is_link = current != path and current.endswith(ROOT_LINK) and current in processes
        if not is_link and (may_list is None or may_list(current)):
            folder = f"{current.rstrip('/')}/"
            remaining += [f"{folder}{name}" for name in sorted(files.names(current), reverse=True)]


def tree_entries(files: MountedFiles, path: str) -> Iterator[tuple[str, FileEntry]]:
    """Yield a path and all paths below it with their entries, whatever the user's rights."""
    if files.mounts.lookup(path) is not None:
        for each in walk_tree(files, path):
            if (entry := files.mounts.lookup(each)) is not None:
                yield each, entry


def is_below_file(entries: Mapping[str, FileEntry], path: str) -> bool:
    """Return whether the nearest path above a path that has an entry is no folder."""
    parent = dirname(path)
    while len(parent) > 1:  # also that of a relative path ends
        entry = entries.get(parent)
        if entry is not None:
            return not entry.is_directory
        parent = dirname(parent)
    return False


def _check_length(path: str) -> None:
    """Refuse what is no path for Linux, so that what walks through one takes bounded time."""
    if len(path) > _MAX_NAME and (len(path) > MAX_PATH or max(map(len, path.split("/"))) > _MAX_NAME):
        raise NameTooLong
