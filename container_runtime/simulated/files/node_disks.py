"""The disks of nodes: which file systems are on each of them, and how much of it they use."""

from collections.abc import Callable, Iterable
from functools import partial
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from mockube.container_runtime.simulated.shell.node_disk import NodeDisk
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.mount_table import MountedFiles

from .writable import FilesOfPod


class NodeDisks:
    """The disks of the nodes whose containers have files in memory."""

    def __init__(
        self,
        node_files: Callable[[str], FileSystem | None],
        on_scarcity: Callable[[str], None],
    ) -> None:
        """`node_files` returns the folders of a node that containers have mounted.

        `on_scarcity` is called with the name of a node whose disk becomes scarce.
        """
        self._node_files, self._on_scarcity = node_files, on_scarcity
        self._disks: WeakValueDictionary[str, NodeDisk] = WeakValueDictionary()
        """By node: a disk exists as long as a file system is on it."""
        self._pods: WeakKeyDictionary[NodeDisk, WeakSet[FilesOfPod]] = WeakKeyDictionary()

    def place(self, node: str, size: int, pod: FilesOfPod, file_systems: Iterable[MountedFiles]) -> None:
        """Put file systems of a pod onto the disk of its node, unless they are in memory or have a size of their own."""
        disk = self._disks.get(node)
        if disk is None:
            count, report = partial(self.used, node), partial(self._on_scarcity, node)
            disk = self._disks[node] = NodeDisk(size, count, report)
        disk.size = size
        self._pods.setdefault(disk, WeakSet()).add(pod)
        for files in file_systems:
            if (
                files.inodes.quota.disk is not disk
                and files.inodes.quota.capacity is None
                and not files.inodes.in_memory
            ):
                files.inodes.quota.disk = disk
                disk.reserved += files.inodes.used

    def used(self, node: str) -> int:
        """Return the bytes that the containers of a node have written onto its disk."""
        files, disk = self._node_files(node), self._disks.get(node)
        usages = [] if disk is None else [pod.disk_usage() for pod in self._pods.get(disk, ())]
        used = sum(sum(usage.containers.values()) + sum(usage.volumes.values()) for usage in usages)
        return used + (0 if files is None else files.inodes.used)
