"""The space of a file system: a capacity of its own, or that of the node's disk, which it shares with others."""

from mockube.container_runtime.disk_usage import DISK_BYTES
from mockube.container_runtime.simulated.shell.node_disk import NodeDisk


class Quota:
    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        """The maximum bytes of all files, which include those that take no memory; None: those of the node's disk."""
        self.disk: NodeDisk | None = None
        """The disk that the files share with those of the node's other containers, unless they have a capacity of their own."""

    @property
    def size(self) -> int:
        if self.capacity is not None:
            return self.capacity
        return DISK_BYTES if self.disk is None else self.disk.size

    def free(self, used: int) -> int:
        """Return how many bytes a file system can write of which `used` are in use."""
        own = max(self.size - used, 0)
        return own if self.disk is None or self.capacity is not None else min(own, self.disk.free())

    def reserve(self, used: int, more: int) -> bool:
        """Return whether there is space for more bytes, which count as used on the node's disk from now on."""
        if used + more > self.size:
            return False
        return self.disk is None or self.capacity is not None or self.disk.reserve(more)
