"""The fsGroup of a pod: to whom a kubelet gives what is in a volume when it mounts it for the pod. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.simulated.shell.access import SET_GROUP
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.mount_table import MountedFiles
from mockube.container_runtime.simulated.shell.vfs.path_walk import tree_entries

_FILE: Final = 0o660
_FOLDER: Final = 0o770 | SET_GROUP
_NOT_GIVEN: Final = ("hostPath", "nfs")
"""The sources of PersistentVolumes that a kubelet leaves as they are."""


class FsGroup(NamedTuple):
    """The group of a volume's contents."""

    number: int
    checks_root: bool
    """Whether the contents stay as they are if the folder of the volume has the group and the rights already."""


def fs_group_of(pod: ReadOnlyTree, volume: ReadOnlyTree, persistent_volume: ReadOnlyTree) -> FsGroup | None:
    """Return the group that a claim's contents get when a pod mounts it; None if they stay as they are."""
    context = pod["spec"].get("securityContext") or {}
    number = context.get("fsGroup")
    spec = persistent_volume.get("spec") or {}
    if number is None or any(source in spec for source in _NOT_GIVEN):
        return None
    if (volume.get("persistentVolumeClaim") or {}).get("readOnly"):
        return None
    return FsGroup(number, context.get("fsGroupChangePolicy") == "OnRootMismatch")


def give(files: MountedFiles, folder: str, group: FsGroup) -> None:
    """Give all that is in a folder to a group."""
    entries: Mapping[str, FileEntry] = dict(tree_entries(files, folder))
    root = entries.get(folder)
    if root is None or (group.checks_root and _with_group(root, group.number) == root):
        return
    for path, entry in entries.items():
        if (changed := _with_group(entry, group.number)) != entry:
            files.inodes.set_attributes(path, changed)


def _with_group(entry: FileEntry, group: int) -> FileEntry:
    """Return a file as one of the group; the mode of a symbolic link stays."""
    rights = 0 if entry.target else _FOLDER if entry.is_directory else _FILE
    return replace(entry, group=group, mode=entry.mode | rights)
