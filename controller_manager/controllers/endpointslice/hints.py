"""The hints of endpoints: the zones and nodes whose clients should use them.

With `trafficDistribution` of the service, the hint of a ready endpoint is its own zone or node. With the annotation for
topology aware routing, endpoints are allocated to zones by the CPU of their nodes, unless that overloads a zone.
Upstream: k8s.io/endpointslice, trafficdist and topologycache.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import conditions, meta, quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_READY, LABEL_ZONE
from mockube.client.cache.store import ALL, Lister
from mockube.controller_manager.workloads.endpoint_slices import SliceChanges, without_hints

ANNOTATION_TOPOLOGY_MODE: Final = "service.kubernetes.io/topology-mode"
_DEPRECATED_MODE: Final = "service.kubernetes.io/topology-aware-hints"
_SAME_NODE: Final = "PreferSameNode"
_PREFER_CLOSE: Final = {"PreferClose", "PreferSameZone", _SAME_NODE}
_CONTROL_PLANE: Final = {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
_OVERLOAD_THRESHOLD: Final = 0.2
HINTS_ENABLED: Final = "Topology Aware Hints has been enabled"
_DISABLED: Final = "Topology Aware Hints has been disabled"
_NO_NODE_INFO: Final = (
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
)
_NO_ZONE: Final = "One or more endpoints do not have a zone specified"
_NO_HINTS: Final = "No hints allocated for zones"

_Change = Callable[[ReadOnlyTree], ReadOnlyTree]
BY_ZONE_AND_CPU: Final = "zone and CPU"
"""The tally of nodes by zone and CPU."""

Ratios = Mapping[str, float]
"""The ratio of each zone's CPU to that of all nodes."""


class HintedChanges(NamedTuple):
    """SliceChanges of slices, with hints."""

    changes: SliceChanges
    messages: tuple[str, ...] = ()
    """The messages of Events about the service."""
    is_allocated_to_zones: bool = False
    """Whether the endpoints of the service are allocated to zones."""


class _Allocation(NamedTuple):
    """The numbers of endpoints of a zone: the maximum, and the desired one."""

    maximum: int
    desired: float


def uses_topology_mode(service: ReadOnlyTree) -> bool:
    annotations = meta.annotations(service)
    return annotations.get(_DEPRECATED_MODE, annotations.get(ANNOTATION_TOPOLOGY_MODE)) in ("Auto", "auto")


def zone_and_cpu(node: ReadOnlyTree) -> tuple[str, tuple[str, int] | None] | None:
    """Return the zone and the CPU of a node that counts for the allocation, for the tally; None if it lacks one of them."""
    labels = meta.labels(node)
    if labels.keys() & _CONTROL_PLANE or not conditions.is_true(node, CONDITION_READY):
        return None
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    cpu = quantity.from_json(allocatable.get("cpu", "0")).scaled_value(quantity.MILLI)
    zone = labels.get(LABEL_ZONE)
    return ALL, (zone, cpu) if zone and cpu else None


def zone_ratios(nodes: Lister[ReadOnlyTree]) -> Ratios | None:
    """Return the zones' ratios of CPU; None if a node lacks zone or CPU, or if there are fewer than two zones."""
    counts = nodes.class_counts(BY_ZONE_AND_CPU, ALL)
    if None in counts:
        return None
    cpus: Counter[str] = Counter()
    for (zone, cpu), count in counts.items():
        cpus[zone] += cpu * count
    total = sum(cpus.values())
    return {zone: cpu / total for zone, cpu in cpus.items()} if len(cpus) > 1 else None


def is_overloaded(slices: Iterable[ReadOnlyTree], ratios: Ratios | None) -> bool:
    """Return whether a zone has too few of the allocated endpoints."""
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
    changes: SliceChanges,
    present: Sequence[ReadOnlyTree],
    ratios: Ratios | None,
    *,
    was_allocated_to_zones: bool,
) -> HintedChanges:
    """Return the changes with hints, and with slices of which only the hints change."""
    changed = {meta.name(endpoint_slice) for endpoint_slice in (*changes.update, *changes.delete)}
    unchanged = [endpoint_slice for endpoint_slice in present if meta.name(endpoint_slice) not in changed]
    if uses_topology_mode(service):
        allocated, problem = _allocate_to_zones(changes, unchanged, ratios)
        if allocated is None:
            stripped = _with_endpoints(changes, unchanged, without_hints)
            return HintedChanges(stripped, (f"{problem}, addressType: {address_type}",))
        enabled = () if was_allocated_to_zones else (f"{HINTS_ENABLED}, addressType: {address_type}",)
        return HintedChanges(allocated, enabled, is_allocated_to_zones=True)
    messages = (f"{_DISABLED}, addressType: {address_type}",) if was_allocated_to_zones else ()
    distribution = service["spec"].get("trafficDistribution")
    if distribution not in _PREFER_CLOSE:
        return HintedChanges(_with_endpoints(changes, unchanged, without_hints), messages)

    def add_own_zone(endpoint: ReadOnlyTree) -> ReadOnlyTree:
        return _with_own_zone(endpoint, with_node=distribution == _SAME_NODE)

    return HintedChanges(_with_endpoints(changes, unchanged, add_own_zone), messages)


def _with_endpoints(
    changes: SliceChanges, unchanged: Sequence[ReadOnlyTree], change: _Change
) -> SliceChanges:
    """Apply a change to all endpoints; add unchanged slices that differ afterwards."""
    create = [_change_endpoints(endpoint_slice, change) for endpoint_slice in changes.create]
    update = [_change_endpoints(endpoint_slice, change) for endpoint_slice in changes.update]
    for endpoint_slice in unchanged:
        mapped = _change_endpoints(endpoint_slice, change)
        if mapped["endpoints"] != (endpoint_slice.get("endpoints") or []):
            update.append(mapped)
    return SliceChanges(create, update, changes.delete)


def _change_endpoints(endpoint_slice: ReadOnlyTree, change: _Change) -> dict[str, Any]:
    return {
        **endpoint_slice,
        "endpoints": [change(endpoint) for endpoint in endpoint_slice.get("endpoints") or ()],
    }


def _with_own_zone(endpoint: ReadOnlyTree, *, with_node: bool) -> ReadOnlyTree:
    if not endpoint["conditions"].get("ready"):
        return endpoint
    hints: dict[str, Any] = {}
    if endpoint.get("zone"):
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if with_node and endpoint.get("nodeName"):
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return {**without_hints(endpoint), **({"hints": hints} if hints else {})}


# --- allocation of endpoints to zones


def _allocate_to_zones(
    changes: SliceChanges, unchanged: Sequence[ReadOnlyTree], ratios: Ratios | None
) -> tuple[SliceChanges | None, str]:
    """Return the changes with hints; or None, and the reason why no endpoint gets hints."""
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
    changed_endpoints = [
        endpoint
        for endpoint_slice in (*changes.create, *update)
        for endpoint in endpoint_slice.get("endpoints") or ()
    ]
    ready = [endpoint for endpoint in changed_endpoints if _is_ready(endpoint)]
    if any(not endpoint.get("zone") for endpoint in ready):
        return None, _NO_ZONE
    counts.update(endpoint["zone"] for endpoint in ready)
    zones = _redistribute(
        [endpoint["zone"] for endpoint in ready], *_giving_and_receiving_zones(allocations, counts)
    )
    if not counts:
        return None, _NO_HINTS
    assigned_zones = iter(zones)

    def add_hint(endpoint: ReadOnlyTree) -> ReadOnlyTree:
        if not _is_ready(endpoint):
            return endpoint
        return {**endpoint, "hints": {"forZones": [{"name": next(assigned_zones)}]}}

    create = [_change_endpoints(endpoint_slice, add_hint) for endpoint_slice in changes.create]
    updated = SliceChanges(
        create, [_change_endpoints(endpoint_slice, add_hint) for endpoint_slice in update], changes.delete
    )
    return updated, ""


def _is_ready(endpoint: ReadOnlyTree) -> bool:
    return bool(endpoint["conditions"].get("ready"))


def _minimum(desired: float) -> int:
    return math.ceil(desired * (1 / (1 + _OVERLOAD_THRESHOLD)))


def _allocations(ratios: Ratios | None, count: int) -> dict[str, _Allocation] | str:
    """Return the allocation of each zone, or the reason why there is none."""
    if ratios is None:
        return _NO_NODE_INFO
    counts = f"({count} endpoints, {len(ratios)} zones)"
    if len(ratios) > count:
        return f"Insufficient number of endpoints {counts}"
    minima = {zone: _minimum(ratio * count) for zone, ratio in ratios.items()}
    surplus = count - sum(minima.values())
    if surplus < 0:
        limit = "without exceeding overload threshold"
        return f"Unable to allocate minimum required endpoints to each zone {limit} {counts}"
    return {
        zone: _Allocation(minima[zone] + surplus, max(ratio * count, minima[zone]))
        for zone, ratio in ratios.items()
    }


def _present_hints(
    unchanged: Sequence[ReadOnlyTree], allocations: Mapping[str, _Allocation]
) -> tuple[Counter[str], list[ReadOnlyTree]]:
    """Return the number of endpoints that are allocated to each zone already, and the slices that need other hints."""
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


def _giving_and_receiving_zones(
    allocations: Mapping[str, _Allocation], counts: Mapping[str, int]
) -> tuple[Counter[str], Counter[str]]:
    """Return the number of endpoints that zones give to others, and the number that zones receive."""
    surplus = {zone: counts.get(zone, 0) - allocation.desired for zone, allocation in allocations.items()}
    surplus_by_zone = {zone: number for zone, number in surplus.items() if number > 0}
    deficit_by_zone = {zone: -number for zone, number in surplus.items() if number < 0}
    giving_counts: Counter[str] = Counter()
    receiving_counts: Counter[str] = Counter()
    while surplus_by_zone and deficit_by_zone:
        giver, receiver = (
            max(surplus_by_zone, key=surplus_by_zone.__getitem__),
            max(deficit_by_zone, key=deficit_by_zone.__getitem__),
        )
        maximum, minimum = (
            max(surplus_by_zone[giver], deficit_by_zone[receiver]),
            min(surplus_by_zone[giver], deficit_by_zone[receiver]),
        )
        if maximum < 1 or minimum < 1 / 2:
            break
        giving_counts[giver] += 1
        surplus_by_zone[giver] -= 1
        receiving_counts[receiver] += 1
        deficit_by_zone[receiver] -= 1
    return giving_counts, receiving_counts


def _redistribute(
    zones: Sequence[str], giving_counts: Counter[str], receiving_counts: Counter[str]
) -> list[str]:
    """Return the zone of each endpoint after zones have given endpoints to others."""
    result = []
    for zone in zones:
        receiver = next((name for name, number in receiving_counts.items() if number), None)
        if giving_counts[zone] and receiver is not None:
            giving_counts[zone] -= 1
            receiving_counts[receiver] -= 1
            result.append(receiver)
        else:
            result.append(zone)
    return result
