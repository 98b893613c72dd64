"""The hints of endpoints: the zones and nodes whose clients should use them.

A service's `trafficDistribution` gives each ready endpoint its own zone, or node. The annotation for topology aware routing
shares the endpoints among the zones by the CPU of their nodes, and gives none where that would overload some. Pure.
Upstream: k8s.io/endpointslice, trafficdist and topologycache.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta, quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, LABEL_ZONE
from mockube.controller_manager.workloads.endpoint_slices import Changes, without_hints

ANNOTATION_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_DEPRECATED_MODE: Final = "service.kubernetes.io/topology-aware-hints"
_SAME_NODE: Final = "PreferSameNode"
_CLOSE: Final = {"PreferClose", "PreferSameZone", _SAME_NODE}
_CONTROL_PLANE: Final = {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
_OVERLOAD: Final = 0.2
HINTS_ENABLED: Final = "Topology Aware Hints has been enabled"
_DISABLED: Final = "Topology Aware Hints has been disabled"
_NO_NODE_INFO: Final = (
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
)
_NO_ZONE: Final = "One or more endpoints do not have a zone specified"
_NO_HINTS: Final = "No hints allocated for zones"

_Change = Callable[[ReadOnlyTree], ReadOnlyTree]
Ratios = Mapping[str, float]
"""The share of the CPU of all nodes that each zone has."""


class Hinted(NamedTuple):
    changes: Changes
    messages: tuple[str, ...] = ()
    """What is recorded about the service."""
    shared: bool = False
    """Whether the endpoints of the service are shared among zones."""


class _Allocation(NamedTuple):
    """How many endpoints a zone gets."""

    maximum: int
    desired: float


def is_shared_by_zone(service: ReadOnlyTree) -> bool:
    annotations = meta.annotations(service)
    return annotations.get(_DEPRECATED_MODE, annotations.get(ANNOTATION_TOPOLOGY_MODE)) in ("Auto", "auto")


def by_share(node: ReadOnlyTree) -> tuple[str, ...]:
    """Return the index value of a node that shares endpoints: its zone and CPU; "" where it lacks one of them."""
    labels = meta.labels(node)
    if labels.keys() & _CONTROL_PLANE or not conditions.is_true(node, CONDITION_READY):
        return ()
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    cpu = quantity.from_json(allocatable.get("cpu", "0")).scaled_value(quantity.MILLI)
    zone = labels.get(LABEL_ZONE)
    return (f"{cpu} {zone}" if zone and cpu else "",)


def zone_ratios(node_counts: Mapping[str, int]) -> Ratios | None:
    """Return the zones' parts of the CPU; None where a node lacks zone or CPU, or where there are not two zones."""
    if "" in node_counts:
        return None
    cpus: Counter[str] = Counter()
    for share, count in node_counts.items():
        cpu, _, zone = share.partition(" ")
        cpus[zone] += int(cpu) * count
    total = sum(cpus.values())
    return {zone: cpu / total for zone, cpu in cpus.items()} if len(cpus) > 1 else None


def is_overloaded(slices: Iterable[ReadOnlyTree], ratios: Ratios | None) -> bool:
    """Whether some zone has too few of the endpoints that are shared."""
    counts = _zones_of(
        endpoint for endpoint_slice in slices for endpoint in endpoint_slice.get("endpoints") or ()
    )
    total = sum(counts.values())
    if not total or ratios is None:
        return bool(total)
    return any(counts[zone] < _minimum(ratio * total) for zone, ratio in ratios.items())


def with_hints(
    service: ReadOnlyTree,
    address_type: str,
    changes: Changes,
    present: Sequence[ReadOnlyTree],
    ratios: Ratios | None,
    *,
    was_shared: bool,
) -> Hinted:
    """Return the changes with their hints, and slices that change because of their hints alone."""
    changed = {meta.name(endpoint_slice) for endpoint_slice in (*changes.update, *changes.delete)}
    unchanged = [endpoint_slice for endpoint_slice in present if meta.name(endpoint_slice) not in changed]
    if is_shared_by_zone(service):
        shared, problem = _share_zones(changes, unchanged, ratios)
        if shared is None:
            stripped = _with_endpoints(changes, unchanged, without_hints)
            return Hinted(stripped, (f"{problem}, addressType: {address_type}",))
        enabled = () if was_shared else (f"{HINTS_ENABLED}, addressType: {address_type}",)
        return Hinted(shared, enabled, shared=True)
    messages = (f"{_DISABLED}, addressType: {address_type}",) if was_shared else ()
    distribution = service["spec"].get("trafficDistribution")
    if distribution not in _CLOSE:
        return Hinted(_with_endpoints(changes, unchanged, without_hints), messages)

    def close(endpoint: ReadOnlyTree) -> ReadOnlyTree:
        return _with_own_place(endpoint, with_node=distribution == _SAME_NODE)

    return Hinted(_with_endpoints(changes, unchanged, close), messages)


def _with_endpoints(changes: Changes, unchanged: Sequence[ReadOnlyTree], change: _Change) -> Changes:
    """Return the changes with each endpoint changed, and the slices of which one then differs."""
    create = [_change_endpoints(endpoint_slice, change) for endpoint_slice in changes.create]
    update = [_change_endpoints(endpoint_slice, change) for endpoint_slice in changes.update]
    for endpoint_slice in unchanged:
        mapped = _change_endpoints(endpoint_slice, change)
        if mapped["endpoints"] != (endpoint_slice.get("endpoints") or []):
            update.append(mapped)
    return Changes(create, update, changes.delete)


def _change_endpoints(endpoint_slice: ReadOnlyTree, change: _Change) -> dict[str, Any]:
    return {
        **endpoint_slice,
        "endpoints": [change(endpoint) for endpoint in endpoint_slice.get("endpoints") or ()],
    }


def _with_own_place(endpoint: ReadOnlyTree, *, with_node: bool) -> ReadOnlyTree:
    if not endpoint["conditions"].get("ready"):
        return endpoint
    hints: dict[str, Any] = {}
    if endpoint.get("zone"):
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if with_node and endpoint.get("nodeName"):
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return {**without_hints(endpoint), **({"hints": hints} if hints else {})}


# --- endpoints that are shared among zones


def _share_zones(
    changes: Changes, unchanged: Sequence[ReadOnlyTree], ratios: Ratios | None
) -> tuple[Changes | None, str]:
    """Return the changes; or why no endpoint has hints."""
    slices = [*changes.create, *changes.update, *unchanged]
    count = sum(
        1
        for endpoint_slice in slices
        for endpoint in endpoint_slice.get("endpoints") or ()
        if _is_ready(endpoint)
    )
    allocations = _allocations(ratios, count)
    if isinstance(allocations, str):
        return None, allocations
    counts, outdated = _present_hints(unchanged, allocations)
    update = [*changes.update, *outdated]
    free = [
        endpoint
        for endpoint_slice in (*changes.create, *update)
        for endpoint in endpoint_slice.get("endpoints") or ()
    ]
    ready = [endpoint for endpoint in free if _is_ready(endpoint)]
    if any(not endpoint.get("zone") for endpoint in ready):
        return None, _NO_ZONE
    counts.update(endpoint["zone"] for endpoint in ready)
    zones = _redistribute([endpoint["zone"] for endpoint in ready], *_exchanges(allocations, counts))
    if not counts:
        return None, _NO_HINTS
    chosen = iter(zones)

    def add_hint(endpoint: ReadOnlyTree) -> ReadOnlyTree:
        if not _is_ready(endpoint):
            return endpoint
        return {**endpoint, "hints": {"forZones": [{"name": next(chosen)}]}}

    create = [_change_endpoints(endpoint_slice, add_hint) for endpoint_slice in changes.create]
    updated = Changes(
        create, [_change_endpoints(endpoint_slice, add_hint) for endpoint_slice in update], changes.delete
    )
    return updated, ""


def _is_ready(endpoint: ReadOnlyTree) -> bool:
    return bool(endpoint["conditions"].get("ready"))


def _minimum(desired: float) -> int:
    return math.ceil(desired * (1 / (1 + _OVERLOAD)))


def _allocations(ratios: Ratios | None, count: int) -> dict[str, _Allocation] | str:
    """Return what each zone gets, or why nothing is shared."""
    if ratios is None:
        return _NO_NODE_INFO
    of = f"({count} endpoints, {len(ratios)} zones)"
    if len(ratios) > count:
        return f"Insufficient number of endpoints {of}"
    minima = {zone: _minimum(ratio * count) for zone, ratio in ratios.items()}
    spare = count - sum(minima.values())
    if spare < 0:
        limit = "without exceeding overload threshold"
        return f"Unable to allocate minimum required endpoints to each zone {limit} {of}"
    return {
        zone: _Allocation(minima[zone] + spare, max(ratio * count, minima[zone]))
        for zone, ratio in ratios.items()
    }


def _present_hints(
    unchanged: Sequence[ReadOnlyTree], allocations: Mapping[str, _Allocation]
) -> tuple[Counter[str], list[ReadOnlyTree]]:
    """Return how many endpoints slices give each zone already, and the slices that need other hints."""
    counts: Counter[str] = Counter()
    outdated: list[ReadOnlyTree] = []
    for endpoint_slice in unchanged:
        ready = [endpoint for endpoint in endpoint_slice.get("endpoints") or () if _is_ready(endpoint)]
        zones = _zones_of(ready)
        is_complete = all((endpoint.get("hints") or {}).get("forZones") for endpoint in ready)
        if is_complete and all(
            zone in allocations and counts[zone] + number <= allocations[zone].maximum
            for zone, number in zones.items()
        ):
            counts.update(zones)
        else:
            outdated.append(endpoint_slice)
    return counts, outdated


def _zones_of(endpoints: Iterable[ReadOnlyTree]) -> Counter[str]:
    hints = (endpoint.get("hints") or {} for endpoint in endpoints)
    return Counter(zone["name"] for each in hints for zone in each.get("forZones") or ())


def _exchanges(
    allocations: Mapping[str, _Allocation], counts: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """Return how many endpoints zones give to others, and how many zones receive."""
    surplus = {zone: counts.get(zone, 0) - allocation.desired for zone, allocation in allocations.items()}
    giving = {zone: number for zone, number in surplus.items() if number > 0}
    receiving = {zone: -number for zone, number in surplus.items() if number < 0}
    donations: Counter[str] = Counter()
    receptions: Counter[str] = Counter()
    while giving and receiving:
        giver, receiver = max(giving, key=giving.__getitem__), max(receiving, key=receiving.__getitem__)
        maximum, minimum = max(giving[giver], receiving[receiver]), min(giving[giver], receiving[receiver])
        if maximum < 1 or minimum < 1 / 2:
            break
        donations[giver] += 1
        giving[giver] -= 1
        receptions[receiver] += 1
        receiving[receiver] -= 1
    return donations, receptions


def _redistribute(zones: Sequence[str], donations: Counter[str], receptions: Counter[str]) -> list[str]:
    """Return the zone of each endpoint after the exchanges."""
    result = []
    for zone in zones:
        receiver = next((name for name, number in receptions.items() if number), None)
        if donations[zone] and receiver is not None:
            donations[zone] -= 1
            receptions[receiver] -= 1
            result.append(receiver)
        else:
            result.append(zone)
    return result
