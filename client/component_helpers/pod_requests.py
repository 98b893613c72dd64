"""Compute a pod's resource requests, in integers (millicores of CPU, bytes, counts), and its host ports.

Pure. Upstream: component-helpers/resource, plugins/nodeports.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mockube.apimachinery import quantity
from mockube.apimachinery.pods import container_total
from mockube.apimachinery.tree import ReadOnlyTree

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
Amounts = Counter[str]
"""Amounts by resource; an absent resource counts as 0."""

DEFAULT_REQUESTS: Final = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""The requests that scoring assumes for a container without its own; upstream's."""


def amounts(quantities: Mapping[str, Any] | None) -> Amounts:
    return Counter({name: _amount(name, value) for name, value in (quantities or {}).items()})


def _amount(name: str, value: Any) -> int:
    return quantity.from_json(value).scaled_value(quantity.MILLI if name == CPU else 0)


def pod_requests(spec: ReadOnlyTree) -> Amounts:
    """Return a pod's requests: the sum of containers that run together, or that of an init container if it is larger.

    Pod-level resources replace those of containers.
    """
    total = _container_total(spec, _requests)
    total |= Counter(
        {name: value for name, value in amounts(_pod_level_requests(spec)).items() if name in total or value}
    )
    return total + amounts(spec.get("overhead"))


def nonzero_requests(spec: ReadOnlyTree) -> Amounts:
    """Return a pod's requests for scoring nodes, with defaults for containers without requests."""
    return _container_total(spec, _with_defaults) + amounts(spec.get("overhead"))


def _pod_level_requests(spec: ReadOnlyTree) -> Mapping[str, Any]:
    return (spec.get("resources") or {}).get("requests") or {}


def _container_total(spec: ReadOnlyTree, requests: Callable[[ReadOnlyTree], Amounts]) -> Amounts:
    total = container_total(spec, lambda container, _: requests(container))
    return +Counter(total)  # an absent resource counts as 0


def _requests(container: ReadOnlyTree) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _with_defaults(container: ReadOnlyTree) -> Amounts:
    requested = _requests(container)
    specified = (container.get("resources") or {}).get("requests") or {}
    return requested + Counter(
        {name: value for name, value in DEFAULT_REQUESTS.items() if name not in specified}
    )


class HostPort(NamedTuple):
    ip: str
    protocol: str
    port: int

    def conflicts(self, other: "HostPort") -> bool:
        any_address = "0.0.0.0"  # noqa: S104 - a value to compare, not to bind
        same_address = self.ip == other.ip or any_address in (self.ip, other.ip)
        return self[1:] == other[1:] and same_address


def host_ports(spec: ReadOnlyTree) -> list[HostPort]:
    sidecars = [
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    ]
    return [
        HostPort(port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"])  # noqa: S104 - as above
        for container in (*(spec.get("containers") or ()), *sidecars)
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]
