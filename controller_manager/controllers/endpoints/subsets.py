"""Addresses and ports as Endpoints hold them: ports that lead to the same addresses share a subset.

Pure. Upstream: pkg/api/v1/endpoints and the truncation of pkg/controller/endpoint.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery.fnv import fnv1a
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.workloads import services
from mockube.controller_manager.workloads.templates import spew

_CAPACITY: Final = 1000
_READY: Final = "addresses"
_NOT_READY: Final = "notReadyAddresses"
_PORT: Final = "v1.EndpointPort"
_SUBSET: Final = "v1.EndpointSubset"


class _Port(NamedTuple):
    name: str
    port: int
    protocol: str
    app_protocol: str

    def tree(self) -> dict[str, Any]:
        named = {"name": self.name} if self.name else {}
        app = {"appProtocol": self.app_protocol} if self.app_protocol else {}
        return named | {"port": self.port, "protocol": self.protocol} | app


def subsets_of(service: ReadOnlyTree, pods: Iterable[PodView]) -> list[dict[str, Any]]:
    by_port: defaultdict[_Port | None, dict[tuple[str, str], bool]] = defaultdict(dict)
    addresses: dict[tuple[str, str], Mapping[str, Any]] = {}
    even_not_ready = services.publishes_not_ready(service)
    for pod in pods:
        address = _address(service, pod) if services.is_reachable(pod, even_deleting=even_not_ready) else None
        if address is None:
            continue
        identity = (address["ip"], pod.uid)
        addresses[identity] = address
        for port in _ports(service, pod):
            by_port[port][identity] = even_not_ready or pod.is_ready
    return _pack(by_port, addresses)


def _pack(
    by_port: Mapping[_Port | None, Mapping[tuple[str, str], bool]],
    by_identity: Mapping[tuple[str, str], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    ports_by_addresses: defaultdict[frozenset[tuple[tuple[str, str], bool]], list[_Port]] = defaultdict(list)
    for port, addresses in by_port.items():
        ports_by_addresses[frozenset(addresses.items())] += [port] if port else []
    subsets: list[dict[str, Any]] = []
    for group, ports in ports_by_addresses.items():
        ready = [by_identity[address] for address, is_ready in sorted(group) if is_ready]
        not_ready = [by_identity[address] for address, is_ready in sorted(group) if not is_ready]
        lists = {
            _READY: ready,
            _NOT_READY: not_ready,
            "ports": _by_hash((port.tree() for port in ports), _PORT),
        }
        subsets.append({name: value for name, value in lists.items() if value})
    return _by_hash(subsets, _SUBSET)


def _by_hash(trees: Iterable[dict[str, Any]], type_name: str) -> list[dict[str, Any]]:
    """In upstream's order: by the 128-bit FNV-1a hash of what go-spew prints of each."""
    items = [*trees]
    return (
        sorted(items, key=lambda tree: fnv1a(spew(tree, type_name).encode(), 128))
        if len(items) > 1
        else items
    )


def _address(service: ReadOnlyTree, pod: PodView) -> dict[str, Any] | None:
    """None where the pod has no address of the service's family."""
    wants_ipv6 = (service["spec"].get("ipFamilies") or ["IPv4"])[0] == "IPv6"
    ip = next(
        (address for address in services.addresses_of(pod) if services.is_ipv6(address) == wants_ipv6), None
    )
    if ip is None:
        return None
    hostname = services.hostname_of(pod, service)
    namespace, name = pod.key
    return {
        "ip": ip,
        **({"hostname": hostname} if hostname else {}),
        **({"nodeName": pod.node} if pod.node else {}),
        "targetRef": {"kind": "Pod", "namespace": namespace, "name": name, "uid": pod.uid},
    }


def _ports(service: ReadOnlyTree, pod: PodView) -> Iterator[_Port | None]:
    """A headless service may have no ports, and has addresses even so."""
    ports = service["spec"].get("ports") or ()
    if not ports and service["spec"].get("clusterIP") == services.HEADLESS:
        yield None
    for port in ports:
        number = services.find_port(pod, port)
        if number is not None:
            yield _Port(
                port.get("name", ""), number, port.get("protocol", "TCP"), port.get("appProtocol", "")
            )


def truncate_subsets(subsets: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """At most 1,000 addresses, ready ones first, each subset by its share; and whether any were left out."""
    ready = sum(len(subset.get(_READY, ())) for subset in subsets)
    not_ready = sum(len(subset.get(_NOT_READY, ())) for subset in subsets)
    if ready + not_ready <= _CAPACITY:
        return [*subsets], False
    if ready > _CAPACITY:
        ready_only = [
            {name: value for name, value in subset.items() if name != _NOT_READY} for subset in subsets
        ]
        return _cut(ready_only, _READY, ready, _CAPACITY), True
    return _cut(subsets, _NOT_READY, not_ready, _CAPACITY - ready), True


def _cut(subsets: Sequence[dict[str, Any]], field: str, total: int, limit: int) -> list[dict[str, Any]]:
    remaining = limit
    shortened = []
    for subset in subsets:
        addresses = subset.get(field, [])
        share = min(remaining, math.ceil(len(addresses) / total * limit))
        remaining -= min(share, len(addresses))
        cut = {name: value[:share] if name == field else value for name, value in subset.items()}
        shortened.append({name: value for name, value in cut.items() if value})
    return shortened
