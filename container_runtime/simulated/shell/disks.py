"""The file systems that are mounted in a container, as df and mount show them. Pure."""

from typing import Final, NamedTuple

from .filesystem import FileSystem

SHARED_MEMORY_PATH: Final = "/dev/shm"  # noqa: S108 - of a simulated container
SHARED_MEMORY_BYTES: Final = 64 << 20
"""The size of a pod's shared memory, unless it mounts a volume there."""


class Disk(NamedTuple):
    source: str
    kind: str
    path: str
    size: int
    used: int
    is_read_only: bool = False


def is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def mounted_disks(files: FileSystem) -> list[Disk]:
    """Return the file systems of a container, those of volumes after the container's own."""
    disks = [Disk("overlay", "overlay", "/", files.disk_size, files.disk_used, files.is_protected("/x"))]
    for path, mount in sorted(files.mounts().items()):
        volume, read_only = mount.files, mount.read_only
        in_memory = volume.in_memory or files.file_system(path) == "tmpfs"
        if in_memory:
            is_shared = path == SHARED_MEMORY_PATH and volume.capacity == SHARED_MEMORY_BYTES
            source = "shm" if is_shared else "tmpfs"
            disks.append(Disk(source, "tmpfs", path, volume.disk_size, volume.used, read_only))
        elif volume.capacity is not None:
            disks.append(Disk("/dev/sdb", "ext4", path, volume.capacity, volume.used, read_only))
        else:
            disks.append(Disk("/dev/vda1", "ext4", path, volume.disk_size, volume.disk_used, read_only))
    return disks
