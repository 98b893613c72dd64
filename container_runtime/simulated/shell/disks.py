"""The file systems that are mounted in a container, as df and mount show them. Pure."""

from typing import NamedTuple

from .filesystem import FileSystem


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
    disks = [Disk("overlay", "overlay", "/", files.disk_size, files.used, files.is_protected("/x"))]
    for path, mount in sorted(files.mounts().items()):
        volume, read_only = mount.files, mount.read_only
        in_memory = files.file_system(path) == "tmpfs"
        if in_memory:
            disks.append(Disk("tmpfs", "tmpfs", path, volume.disk_size, volume.used, read_only))
        elif volume.capacity is not None:
            disks.append(Disk("/dev/sdb", "ext4", path, volume.capacity, volume.used, read_only))
        else:
            disks.append(Disk("/dev/vda1", "ext4", path, volume.disk_size, volume.used, read_only))
    return disks
