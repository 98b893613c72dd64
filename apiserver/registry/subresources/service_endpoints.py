"""The EndpointSlices of a Service, and the addresses behind a port of it; before 1.37 the addresses are those of its Endpoints."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_SERVICE_NAME
from mockube.apiserver.registry.registry import Backend

_ENDPOINT_SLICES: Final = GroupResource("discovery.k8s.io", "endpointslices")

Rotate: TypeAlias = Callable[[Sequence[Any]], Sequence[Any]]
"""Returns a sequence that begins with a random item."""


class EndpointAddress(NamedTuple):
    ip: str
    port: int
    target: ReadOnlyTree
    """The reference to the pod that has the address."""


def slices_of_service(backend: Backend, namespace: str, name: str) -> Iterator[ReadOnlyTree]:
    """Yield the EndpointSlices of a Service from the watch cache. No others are decoded: labels are cached."""
    for stored in backend.list_cached(_ENDPOINT_SLICES, namespace):
        if stored.labels.get(LABEL_SERVICE_NAME) == name:
            yield stored.tree()


def addresses_of_slices(
    slices: Sequence[ReadOnlyTree], port: str, family: str, rotate: Rotate
) -> Iterator[EndpointAddress]:
    """Yield the ready addresses of a port by its name, in random order, those of an IP family first."""
    ordered = sorted(rotate(slices), key=lambda each: each.get("addressType") != family)
    for each in ordered:
        numbers = [
            endpoint_port["port"]
            for endpoint_port in each.get("ports") or ()
            if endpoint_port.get("name") == port and endpoint_port.get("port") is not None
        ]
        endpoints = [
            endpoint
            for endpoint in each.get("endpoints") or ()
            if (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("addresses")
        ]
        for number in numbers:
            for endpoint in rotate(endpoints):
                target = endpoint.get("targetRef") or {}
                yield EndpointAddress(endpoint["addresses"][0], number, target)


def addresses_of_subsets(
    subsets: Sequence[ReadOnlyTree], port: str, rotate: Rotate
) -> Iterator[EndpointAddress]:
    """Yield the addresses of a port of Endpoints by its name, in random order."""
    for subset in rotate(subsets):
        numbers = [
            endpoint_port["port"]
            for endpoint_port in subset.get("ports") or ()
            if (endpoint_port.get("name") or "") == port
        ]
        for address in rotate(subset.get("addresses") or ()) if numbers else ():
            yield EndpointAddress(address["ip"], numbers[0], address.get("targetRef") or {})
