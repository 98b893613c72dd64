"""The processes of other containers in /proc, as a container that shares its process namespace sees them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from .file_entry import FileEntry
from .file_system import FileSystem
from .mount_table import PROC, ROOT_LINK, Mount


class ProcessView(NamedTuple):
    """What /proc shows of a process of another container."""

    files: Mapping[str, FileEntry]
    """The files in its folder, such as `/cmdline`."""
    user: int
    root: FileSystem | None
    """The files that the process has; None if the user may not trace it."""


def show_processes(files: FileSystem, processes: Mapping[int, ProcessView]) -> None:
    """Show processes of other containers in /proc, by their ids."""
    folders: dict[str, Mount] = {}
    for pid, view in processes.items():
        path = f"{PROC}/{pid}"
        folders[f"{path}{ROOT_LINK}"] = _FORBIDDEN if view.root is None else Mount(files=view.root)
        link = FileEntry(data=b"/", target="/", mode=0o777, user=view.user)
        folder = {**view.files, ROOT_LINK: link}
        process_files = FileSystem(folder, root=FileEntry(mode=0o555, user=view.user))
        folders[path] = Mount(files=process_files, read_only=True)
    files.mounts.mount_processes(folders, tuple(processes))


_FORBIDDEN: Final = Mount(files=FileSystem(), is_forbidden=True)
