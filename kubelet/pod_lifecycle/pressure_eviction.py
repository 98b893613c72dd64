"""The pods that a kubelet evicts because its node lacks memory or disk: their order and the message.

Pure. Upstream: pkg/kubelet/eviction.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.quantity import Format, Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.pod_requests import amounts, pod_requests

MEMORY_THRESHOLD: Final = 100 << 20
"""The bytes of memory that must be available: the default of `memory.available`."""
NODE_DISK_THRESHOLD: Final = 10
IMAGE_DISK_THRESHOLD: Final = 15
"""The percentages of the disk that must be available: the defaults of `nodefs.available` and `imagefs.available`. A node has one disk."""


class PodUsage(Struct, frozen=True, kw_only=True):
    """A pod, and what it uses of a resource in bytes."""

    pod: ReadOnlyTree
    resource: str
    used: Mapping[str, int]
    """By the names of its containers."""
    in_volumes: int = 0

    @property
    def total(self) -> int:
        return sum(self.used.values()) + self.in_volumes

    def rank(self) -> tuple[bool, int, int]:
        """Return the key of the order of evictions: pods above their requests first, then by priority, then by the excess."""
        excess = self.total - pod_requests(self.pod["spec"])[self.resource]
        return excess <= 0, self.pod["spec"].get("priority") or 0, -excess


class Observation(Struct, frozen=True, kw_only=True):
    """What is left of a resource of a node, and what its pods use of it."""

    available: int
    threshold: int
    """No less than this must be available."""
    pods: tuple[PodUsage, ...] = ()

    @property
    def is_short(self) -> bool:
        return self.available < self.threshold


def disk_threshold(available: int, size: int) -> int:
    """Return the bytes that must be available on a disk: the lower threshold if less than that is, or else the higher one."""
    lower, higher = (size * percent // 100 for percent in (NODE_DISK_THRESHOLD, IMAGE_DISK_THRESHOLD))
    return lower if available < lower else higher


def pods_in_order(pods: Iterable[PodUsage]) -> list[PodUsage]:
    """Return pods in the order in which they are evicted."""
    return sorted(pods, key=PodUsage.rank)


def eviction_message(pod: PodUsage, threshold: int, available: int) -> str:
    resource = pod.resource
    quantities = f"Threshold quantity: {_bytes(threshold)}, available: {_kibibytes(available)}. "
    parts = [f"The node was low on resource: {resource}. {quantities}"]
    for container in every_container(pod.pod["spec"]):
        requests = (container.get("resources") or {}).get("requests")
        used, request = pod.used.get(container["name"], 0), amounts(requests)[resource]
        if used > request:
            request_text = (requests or {}).get(resource, "0")
            parts.append(
                f"Container {container['name']} was using {_kibibytes(used)}, request is {request_text}, "
                f"has larger consumption of {resource}. "
            )
    return "".join(parts)


def _bytes(amount: int) -> str:
    return str(Quantity(amount, Format.BINARY_SI))


def _kibibytes(amount: int) -> str:
    return f"{max(amount, 0) // 1024}Ki"
