"""The pods that a kubelet evicts because its node lacks memory: their order and the message.

Pure. Upstream: pkg/kubelet/eviction.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from mockube.apimachinery.pods import every_container
from mockube.apimachinery.quantity import Format, Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.pod_requests import MEMORY, amounts, pod_requests

THRESHOLD: Final = 100 << 20
"""The bytes of memory that must be available: the default of `memory.available`."""


class PodMemory(Struct, frozen=True, kw_only=True):
    """A pod, and what its containers use in bytes, by name."""

    pod: ReadOnlyTree
    used: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.used.values())

    def rank(self) -> tuple[bool, int, int]:
        """Return the key of the order of evictions: pods above their requests first, then by priority, then by the excess."""
        excess = self.total - pod_requests(self.pod["spec"])[MEMORY]
        return excess <= 0, self.pod["spec"].get("priority") or 0, -excess


def pods_in_order(pods: Iterable[PodMemory]) -> list[PodMemory]:
    """Return pods in the order in which they are evicted."""
    return sorted(pods, key=PodMemory.rank)


def eviction_message(pod: PodMemory, available: int) -> str:
    quantities = f"Threshold quantity: {_bytes(THRESHOLD)}, available: {_kibibytes(available)}. "
    parts = [f"The node was low on resource: {MEMORY}. {quantities}"]
    for container in every_container(pod.pod["spec"]):
        requests = (container.get("resources") or {}).get("requests")
        used, request = pod.used.get(container["name"], 0), amounts(requests)[MEMORY]
        if used > request:
            request_text = (requests or {}).get(MEMORY, "0")
            parts.append(
                f"Container {container['name']} was using {_kibibytes(used)}, request is {request_text}, "
                f"has larger consumption of {MEMORY}. "
            )
    return "".join(parts)


def _bytes(amount: int) -> str:
    return str(Quantity(amount, Format.BINARY_SI))


def _kibibytes(amount: int) -> str:
    return f"{max(amount, 0) // 1024}Ki"
