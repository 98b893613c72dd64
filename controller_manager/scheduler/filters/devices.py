"""Reject nodes without the devices that a pod claims. Upstream: plugins/dynamicresources."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.scheduler.devices.allocation import DeviceAllocationError, RequestAlternative
from mockube.controller_manager.scheduler.devices.claims import (
    DeviceSnapshot,
    allocator_of,
    claims_of,
    requests_of,
)
from mockube.controller_manager.scheduler.filters.filter import Check, Rejection
from mockube.controller_manager.scheduler.nodeinfo import NodeInfo
from mockube.controller_manager.scheduler.podinfo import PodInfo
from mockube.controller_manager.workloads.device_claims import allocation, is_reserved_for, reserved_for
from mockube.controller_manager.workloads.node_selectors import selects

MAX_CONSUMERS: Final = 256
_NOT_ALLOCATABLE: Final = Rejection(("cannot allocate all claims",), is_unresolvable=True)
_INVALID_POOLS: Final = Rejection(("invalid resource pools were encountered",), is_unresolvable=True)
_NOT_ON_NODE: Final = Rejection(("resourceclaim not available on the node",), is_unresolvable=True)
_IN_USE: Final = Rejection(("resourceclaim in use",), is_unresolvable=True)


def check_claims(pod: PodInfo, devices: DeviceSnapshot) -> Check | Rejection:
    """Return the check of nodes for a pod's claims, or the rejection of all nodes."""
    claims = claims_of(pod.view, devices.claims)
    for claim in claims:
        if len(reserved_for(claim)) >= MAX_CONSUMERS and not is_reserved_for(pod.view, claim):
            return _IN_USE
    unallocated = [claim for claim in claims if allocation(claim) is None]
    for claim in unallocated:
        if meta.uid(claim) in devices.in_flight:
            return Rejection(
                (f"resource claim {Key.of(claim)} is in the process of being allocated",),
                is_unresolvable=True,
            )
    requests = []
    for claim in unallocated:
        alternatives = requests_of(claim, devices.classes)
        if isinstance(alternatives, str):
            return Rejection((alternatives,), is_unresolvable=True)
        requests.append(alternatives)
    return _check_of(claims, unallocated, requests, devices)


def _check_of(
    claims: Sequence[ReadOnlyTree],
    unallocated: Sequence[ReadOnlyTree],
    requests: Sequence[Sequence[Sequence[RequestAlternative]]],
    devices: DeviceSnapshot,
) -> Check:
    def check(node: NodeInfo) -> Rejection | None:
        for claim in claims:
            selector = (allocation(claim) or {}).get("nodeSelector")
            if selector is not None and not selects(selector, node.node):
                return _NOT_ON_NODE
        if not unallocated:
            return None
        allocator = allocator_of(unallocated, requests, node.node, devices)
        try:
            is_allocatable = allocator.run()
        except DeviceAllocationError as error:
            return Rejection((f'running "DynamicResources" filter plugin: {error}',), is_error=True)
        if is_allocatable:
            return None
        return _NOT_ALLOCATABLE if all(pool.is_valid for pool in allocator.pools) else _INVALID_POOLS

    return check
