"""What a kubelet corrects in the status of its node after another client has changed it. Pure.

A resource that a client adds to the capacity, such as `example.com/dongle`, is an extended resource: it becomes allocatable,
and ends with the capacity. Of its machine's own resources, a simulated node has what its status says: a client may make it
smaller, but no resource has more to allocate than the capacity without the reservation of the node.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.resource_names import is_extended
from mockube.apimachinery.tree import ReadOnlyTree

from .node_objects import version_info
from .node_pools.pool import NodePool

_NOTHING: Final = Quantity(0)

Reservations = Mapping[str, Quantity]
"""The part of each resource's capacity that pods do not get."""


def reservations(capacity: Mapping[str, Any], allocatable: Mapping[str, Any]) -> Reservations:
    """Return what each resource's allocatable amount lacks of its capacity."""
    differing = (
        (name, allocatable.get(name)) for name in capacity if allocatable.get(name) != capacity[name]
    )
    reserved = {
        name: quantity.from_json(capacity[name]) - quantity.from_json(amount)
        for name, amount in differing
        if amount is not None
    }
    return {name: amount for name, amount in reserved.items() if amount > _NOTHING}


def correction(
    node: ReadOnlyTree, pool: NodePool | None, reserved: Reservations, *, address: str, version: str
) -> dict[str, Any] | None:
    """Return the merge patch of a status that a client has changed; None if there is nothing to correct.

    `pool` is that for which the node was created, if any; `address` is the one that the node has without a status; `version` is that
    of the kubelet, "" if it is not corrected.
    """
    status = node.get("status") or {}
    present_capacity = status.get("capacity") or {}
    missing = {} if pool is None else {k: v for k, v in pool.capacity.items() if k not in present_capacity}
    allocatable = dict(
        _allocatable_changes({**present_capacity, **missing}, status.get("allocatable") or {}, reserved)
    )
    addresses = (
        []
        if status.get("addresses")
        else [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": node["metadata"]["name"]},
        ]
    )
    present_version = (status.get("nodeInfo") or {}).get("kubeletVersion")
    changes = {
        "capacity": missing,
        "allocatable": allocatable,
        "addresses": addresses,
        "nodeInfo": version_info(version) if version and version != present_version else {},
    }
    changes = {name: change for name, change in changes.items() if change}
    return {"status": changes} if changes else None


def _allocatable_changes(
    capacity: Mapping[str, Any], allocatable: Mapping[str, Any], reserved: Reservations
) -> Iterator[tuple[str, str | None]]:
    """Yield the amounts that change, and None for extended resources that the capacity does not have any more."""
    for name, amount in capacity.items():
        present = allocatable.get(name)
        if present == amount and name not in reserved:
            continue
        limit = max(_NOTHING, quantity.from_json(amount) - reserved.get(name, _NOTHING))
        if present is None or _is_corrected(name, quantity.from_json(present), limit):
            yield name, str(limit)
    for name in allocatable:
        if name not in capacity and is_extended(name):
            yield name, None


def _is_corrected(name: str, present: Quantity, limit: Quantity) -> bool:
    return present != limit if is_extended(name) else limit < present
