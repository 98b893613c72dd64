"""The subsets of Endpoints: ports with the same addresses share a subset.

Upstream: pkg/api/v1/endpoints, and the truncation of pkg/controller/endpoint.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery.fnv import fnv1a
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.controller_manager.workloads import services
from mockube.controller_manager.workloads.services import ServicePort
from mockube.controller_manager.workloads.templates import spew

_MAX_ADDRESSES: Final = 1000
"""Upstream's maxCapacity (pkg/controller/endpoint/endpoints_controller.go)."""
_READY: Final = "addresses"
_NOT_READY: Final = "notReadyAddresses"
_PORT: Final = "v1.EndpointPort"
_SUBSET: Final = "v1.EndpointSubset"


_Identity = tuple[str, str]
"""The address and the uid of a pod."""
_Group = dict[_Identity, bool]
"""The pods with the same ports, and whether each is ready."""


def subsets_of(service: ReadOnlyTree, pods: Iterable[PodView]) -> list[dict[str, Any]]:
    groups: defaultdict[tuple[ServicePort, ...], _Group] = defaultdict(dict)
    addresses: dict[_Identity, Mapping[str, Any]] = {}
    publishes_not_ready = services.publishes_not_ready(service)
    pod_ports = services.PodPorts(service)
    for pod in pods:
        address = (
            _address(service, pod) if services.is_reachable(pod, even_deleting=publishes_not_ready) else None
        )
        if address is not None:
            identity = (address["ip"], pod.uid)
            addresses[identity] = address
            groups[pod_ports.of(pod)][identity] = publishes_not_ready or pod.is_ready
    return _sorted_by_hash((_subset(*each, addresses) for each in _group_ports(service, groups)), _SUBSET)


def _group_ports(
    service: ReadOnlyTree, groups: Mapping[tuple[ServicePort, ...], _Group]
) -> Iterator[tuple[Sequence[ServicePort], _Group]]:
    """Yield ports that have the same pods, with these pods."""
    if not service["spec"].get("ports"):
        if (
            service["spec"].get("clusterIP") == services.HEADLESS
        ):  # a headless service without ports has addresses
            yield from groups.items()
        return
    numbers_by_port: defaultdict[ServicePort, list[int]] = defaultdict(list)
    for number, ports in enumerate(groups):
        for port in dict.fromkeys(ports):
            numbers_by_port[port].append(number)
    equal_ports: defaultdict[tuple[int, ...], list[ServicePort]] = defaultdict(list)
    for port, numbers in numbers_by_port.items():
        equal_ports[tuple(numbers)].append(port)
    in_order = [*groups.values()]
    for key, shared_ports in equal_ports.items():
        yield shared_ports, {pod: ready for number in key for pod, ready in in_order[number].items()}


def _subset(
    ports: Iterable[ServicePort], group: _Group, addresses: Mapping[_Identity, Mapping[str, Any]]
) -> dict[str, Any]:
    pods = sorted(group.items())
    lists = {
        _READY: [addresses[identity] for identity, is_ready in pods if is_ready],
        _NOT_READY: [addresses[identity] for identity, is_ready in pods if not is_ready],
        "ports": _sorted_by_hash(map(_port_tree, ports), _PORT),
    }
    return {name: value for name, value in lists.items() if value}


def _port_tree(port: ServicePort) -> dict[str, Any]:
    named = {"name": port.name} if port.name else {}
    app = {"appProtocol": port.app_protocol} if port.app_protocol else {}
    return named | {"port": port.number, "protocol": port.protocol} | app


def _sorted_by_hash(trees: Iterable[dict[str, Any]], type_name: str) -> list[dict[str, Any]]:
    """Sort as upstream does: by the 128-bit FNV-1a hash of go-spew's text."""
    items = [*trees]
    return (
        sorted(items, key=lambda tree: fnv1a(spew(tree, type_name).encode(), 128))
        if len(items) > 1
        else items
    )


def _address(service: ReadOnlyTree, pod: PodView) -> dict[str, Any] | None:
    """Return the address of a pod; None if it has none of the service's IP family."""
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


def truncate_subsets(subsets: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """Return subsets with at most 1,000 addresses, ready ones first, and whether any address was removed.

    Each subset keeps its share of the addresses.
    """
    ready = sum(len(subset.get(_READY, ())) for subset in subsets)
    not_ready = sum(len(subset.get(_NOT_READY, ())) for subset in subsets)
    if ready + not_ready <= _MAX_ADDRESSES:
        return [*subsets], False
    if ready > _MAX_ADDRESSES:
        ready_only = [
            {name: value for name, value in subset.items() if name != _NOT_READY} for subset in subsets
        ]
        return _truncate_addresses(ready_only, _READY, ready, _MAX_ADDRESSES), True
    return _truncate_addresses(subsets, _NOT_READY, not_ready, _MAX_ADDRESSES - ready), True


def _truncate_addresses(
    subsets: Sequence[dict[str, Any]], field: str, total: int, limit: int
) -> list[dict[str, Any]]:
    remaining = limit
    truncated_subsets = []
    for subset in subsets:
        addresses = subset.get(field, [])
        share = min(remaining, math.ceil(len(addresses) / total * limit))
        remaining -= min(share, len(addresses))
        truncated = {name: value[:share] if name == field else value for name, value in subset.items()}
        truncated_subsets.append({name: value for name, value in truncated.items() if value})
    return truncated_subsets
