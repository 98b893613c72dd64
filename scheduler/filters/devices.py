"""Reject nodes without the devices for a pod's claims and extended resources. Upstream: plugins/dynamicresources."""

from collections.abc import Hashable
from functools import partial
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.device_claims import allocation, is_reserved_for, reserved_for
from mockube.client.component_helpers.node_selectors import selects
from mockube.client.resources import Key
from mockube.scheduler.devices.allocation import DeviceAllocationError
from mockube.scheduler.devices.claims import DeviceClaims, DeviceSnapshot
from mockube.scheduler.devices.fingerprints import AttributeNames, attribute_names
from mockube.scheduler.node_traits import NO_TRAITS, NeedsReference, NodePart, NodeTraits, traits_of_selector
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection

MAX_CONSUMERS: Final = 256
"""The pods for which a claim can be reserved: ResourceClaimReservedForMaxSize of k8s.io/api/resource/v1/types.go."""
_NOT_ALLOCATABLE: Final = Rejection(("cannot allocate all claims",), is_unresolvable=True)
_INVALID_POOLS: Final = Rejection(("invalid resource pools were encountered",), is_unresolvable=True)
NOT_ON_NODE: Final = Rejection(("resourceclaim not available on the node",), is_unresolvable=True)
_STALE: Final = Rejection(("cannot schedule extended resource claim",), is_unresolvable=True)
_IN_USE: Final = Rejection(("resourceclaim in use",), is_unresolvable=True)


def check_claims(pod: PodInfo, devices: DeviceSnapshot) -> Check | Rejection | None:
    """Return the check of nodes for a pod's claims and extended resources, or the rejection of all nodes."""
    claims = DeviceClaims.of(pod, devices)
    if claims.is_empty:
        return None
    for claim in claims.of_user:
        if len(reserved_for(claim)) >= MAX_CONSUMERS and not is_reserved_for(pod.view, claim):
            return _IN_USE
    for claim, requests in zip(claims.unallocated, claims.requests, strict=True):
        if meta.uid(claim) in devices.in_flight:
            return Rejection(
                (f"resource claim {Key.of(claim)} is in the process of being allocated",),
                is_unresolvable=True,
            )
        if isinstance(requests, str):
            return Rejection((requests,), is_unresolvable=True)
    return partial(_check_node, claims, devices)


def device_traits(pod: PodInfo, devices: DeviceSnapshot) -> NodeTraits:
    """Return what tells nodes apart for a pod's claims. Raises NeedsReference."""
    claims = DeviceClaims.of(pod, devices)
    if claims.extended_resources or not devices.is_of_single_nodes:
        raise NeedsReference
    traits = NO_TRAITS
    for claim in claims.of_user:
        allocated = allocation(claim)
        if allocated is not None and allocated.get("nodeSelector") is not None:
            traits = traits.join(traits_of_selector(allocated["nodeSelector"]))
    if not claims.unallocated:
        return traits
    alternatives = (
        alternative
        for requests in claims.requests
        if not isinstance(requests, str)
        for alternatives in requests
        for alternative in alternatives
    )
    names = attribute_names(alternatives, claims.unallocated)
    part = NodePart(("devices", names), partial(_device_part, names, devices))
    return traits.join(NodeTraits(parts=(part,)))


def _device_part(names: AttributeNames, devices: DeviceSnapshot, node: NodeInfo) -> Hashable:
    return devices.fingerprints.of(node.name, devices.slices(node.name), names, devices.in_use)


def _check_node(claims: DeviceClaims, devices: DeviceSnapshot, node: NodeInfo) -> Rejection | None:
    if claims.stale is not None:
        return _STALE
    rejection = _check_allocation(claims, devices, node) if claims.on(node, devices).claims else None
    if rejection is not None:
        return rejection
    return NOT_ON_NODE if unavailable_claims(claims, node) else None


def _check_allocation(claims: DeviceClaims, devices: DeviceSnapshot, node: NodeInfo) -> Rejection | None:
    """Return the rejection of a node without devices for claims; None if it has them."""
    try:
        search = claims.search(node, devices)
    except DeviceAllocationError as error:
        return Rejection((f'running "DynamicResources" filter plugin: {error}',), is_error=True)
    if search.chosen is not None:
        return None
    return _INVALID_POOLS if search.has_invalid_pools else _NOT_ALLOCATABLE


def _is_available(claim: ReadOnlyTree, node: NodeInfo) -> bool:
    """Return whether a node can use the devices of a claim, if it has any."""
    selector = (allocation(claim) or {}).get("nodeSelector")
    return selector is None or selects(selector, node.node)


def unavailable_claims(claims: DeviceClaims, node: NodeInfo) -> list[ReadOnlyTree]:
    return [claim for claim in claims.of_user if not _is_available(claim, node)]
