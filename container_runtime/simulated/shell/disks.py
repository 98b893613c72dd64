"""The file systems that are mounted in a container, as df and mount show them. Pure."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from .vfs.file_system import FileSystem
from .vfs.path_walk import tree_entries

SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 - of a simulated container
SHARED_MEMORY_BYTES: Final = 64 << 20
"""The size of a pod's shared memory, unless it mounts a volume there."""
_PAGE: Final = 4096


class Disk(NamedTuple):
    source: str
    kind: str
    path: str
    size: int
    used: int
    is_read_only: bool = False


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def mounted_disks(files: FileSystem, memory: int) -> list[Disk]:
    """Return the file systems of a container, those of volumes after the container's own; `memory` is that of the node."""
    disks = [
        Disk(
            *files.inodes.source,
            "/",
            files.inodes.quota.size,
            files.inodes.disk_used,
            files.place(files.resolve("/x")).read_only,
        )
    ]
    for path, mount in sorted(files.mounts.by_path.items()):
        volume, read_only = mount.files, mount.read_only
        in_memory = volume.inodes.in_memory or _type_of(files, path) == "tmpfs"
        if in_memory:
            is_shared = path == SHARED_MEMORY_PATH and volume.inodes.quota.capacity == SHARED_MEMORY_BYTES
            source = "shm" if is_shared else "tmpfs"
            disks.append(Disk(source, "tmpfs", path, volume.inodes.quota.size, volume.inodes.used, read_only))
        elif volume.inodes.quota.capacity is not None:
            disks.append(
                Disk("/dev/sdb", "ext4", path, volume.inodes.quota.capacity, volume.inodes.used, read_only)
            )
        else:
            disks.append(
                Disk("/dev/vda1", "ext4", path, volume.inodes.quota.size, volume.inodes.disk_used, read_only)
            )
    return [*disks, *_disks_of_objects(files, memory)]


def _type_of(files: FileSystem, path: str) -> str:
    """Return the type of the file system at a path, whose folders the user may search."""
    files.entry(path)
    return files.mounts.file_system_type(path)


def _disks_of_objects(files: FileSystem, memory: int) -> Iterator[Disk]:
    """Yield the volumes whose files come from API objects: a kubelet puts those of ConfigMaps on its disk, and the others into memory."""
    for path in files.unknown.known_folders:
        if not files.exists(path) or not files.entry(path).read_only:
            continue
        if _type_of(files, path) == "tmpfs":
            data = (entry.data for _, entry in tree_entries(files, path) if entry.data and not entry.target)
            used = sum(-(-len(each) // _PAGE) * _PAGE for each in data)
            yield Disk("tmpfs", "tmpfs", path, memory, used, is_read_only=True)
        else:
            yield Disk(
                "/dev/vda1", "ext4", path, files.inodes.quota.size, files.inodes.disk_used, is_read_only=True
            )
