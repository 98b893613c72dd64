"""The disks of nodes: which file systems are on each of them, and how much of it they use."""

from collections.abc import Callable, Iterable
from functools import partial

from mockube.container_runtime.disk_usage import DiskUsage
from mockube.container_runtime.simulated.shell.filesystem import FileSystem
from mockube.container_runtime.simulated.shell.node_disk import NodeDisk


class NodeDisks:
    """The disks of the nodes whose containers have files in memory."""

    def __init__(
        self,
        usage_of: Callable[[str], DiskUsage | None],
        node_files: Callable[[str], FileSystem | None],
        on_scarcity: Callable[[str], None],
    ) -> None:
        """`usage_of` returns what the pod with a uid uses, `node_files` the folders of a node that containers have mounted.

        `on_scarcity` is called with the name of a node whose disk becomes scarce.
        """
        self._usage_of, self._node_files, self._on_scarcity = usage_of, node_files, on_scarcity
        self._disks: dict[str, NodeDisk] = {}
        self._pods: dict[str, set[str]] = {}
        """The uids of the pods with files, by node."""

    def place(self, node: str, size: int, uid: str, file_systems: Iterable[FileSystem]) -> None:
        """Put file systems of a pod onto the disk of its node, unless they are in memory or have a size of their own."""
        disk = self._disks.get(node)
        if disk is None:
            count, report = partial(self.used, node), partial(self._on_scarcity, node)
            disk = self._disks[node] = NodeDisk(size, count, report)
        disk.size = size
        self._pods.setdefault(node, set()).add(uid)
        for files in file_systems:
            if files.disk is not disk and files.capacity is None and not files.in_memory:
                files.disk = disk
                disk.reserved += files.used

    def used(self, node: str) -> int:
        """Return the bytes that the containers of a node have written onto its disk."""
        files = self._node_files(node)
        return sum(map(self._used_by, [*self._pods.get(node, ())])) + (0 if files is None else files.used)

    def _used_by(self, uid: str) -> int:
        usage = self._usage_of(uid)
        return 0 if usage is None else sum(usage.containers.values()) + sum(usage.volumes.values())

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone; a disk without pods is forgotten as well."""
        for node, uids in [*self._pods.items()]:
            uids.discard(uid)
            if not uids:
                del self._pods[node], self._disks[node]
