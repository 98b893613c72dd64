"""The shape of a node, which its pool sets, and the patches of a node whose pool has changed. Pure.

An annotation of the node records its shape, so that a change of the pool is seen at the next start, and so that what the pool
no longer sets is removed. What a user has changed is kept until the pool changes. The nodes of a pool without settings have
no annotation.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.tree import ReadOnlyTree

from .node_pools.pool import DEFAULT_CAPACITY, NodePool, NodePools, node_name

SHAPE: Final = "mockube.dev/node-shape"
_DIGEST_BYTES: Final = 8


class NodeShape(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a shape: the names of what the pool has set, and a digest of their values."""

    digest: str = ""
    labels: tuple[str, ...] = ()
    annotations: tuple[str, ...] = ()
    taints: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    unschedulable: bool = False


class ShapedNode(NamedTuple):
    """A node that a pool has."""

    pool: NodePool
    name: str
    zone: str
    shape: str
    """The record of its shape."""


def shaped_nodes(pools: NodePools) -> Iterator[ShapedNode]:
    """Yield all nodes of the pools."""
    for pool in pools.pools:
        records = _records(pool)
        for number in range(1, pool.count + 1):
            zone = pool.zone_of(number)
            yield ShapedNode(pool, node_name(pool.name, number), zone, records[zone])


def _records(pool: NodePool) -> Mapping[str, str]:
    """Return the value of the annotation by the zone of a node; "" for a pool without settings."""
    if not pool.has_settings:
        return {"": ""}
    return {zone: _record(pool, zone) for zone in pool.zones or ("",)}


def _record(pool: NodePool, zone: str) -> str:
    values = msgspec.json.encode((msgspec.structs.replace(pool, count=0, zones=()), zone), order="sorted")
    shape = NodeShape(
        digest=blake2b(values, digest_size=_DIGEST_BYTES).hexdigest(),
        labels=tuple(sorted({*pool.labels, *([wellknown.LABEL_ZONE] if zone else ())})),
        annotations=tuple(sorted(pool.annotations)),
        taints=tuple(sorted(map(_taint_id, pool.taints))),
        resources=tuple(sorted(pool.capacity.keys() - DEFAULT_CAPACITY.keys())),
        unschedulable=pool.unschedulable,
    )
    return msgspec.json.encode(shape).decode()


def recorded_shape(node: ReadOnlyTree) -> str:
    return meta.annotations(node).get(SHAPE, "")


def _decode(record: str) -> NodeShape:
    """Return a record; an empty one if a user has broken it."""
    try:
        return msgspec.json.decode(record or "{}", type=NodeShape)
    except msgspec.DecodeError:
        return NodeShape()


def status_patch(present: ReadOnlyTree, desired: ReadOnlyTree) -> dict[str, Any]:
    """Return the merge patch of the status, as a kubelet reports its machine when it registers again."""
    old, status = _decode(recorded_shape(present)), desired["status"]
    info = status["nodeInfo"]
    return {
        "status": {
            "capacity": _replacement(old.resources, status["capacity"]),
            "allocatable": _replacement(old.resources, status["allocatable"]),
            "nodeInfo": {name: info[name] for name in ("architecture", "operatingSystem", "osImage")},
            "images": status.get("images"),
        }
    }


def patch(present: ReadOnlyTree, desired: ReadOnlyTree) -> dict[str, Any]:
    """Return the merge patch of the rest. It applies only to the object `present`, which may have taints of others."""
    old = _decode(recorded_shape(present))
    annotations = {SHAPE: None, **_replacement(old.annotations, meta.annotations(desired))}
    spec = desired.get("spec") or {}
    desired_taints = {_taint_id(taint) for taint in spec.get("taints") or ()}
    present_taints: Iterable[ReadOnlyTree] = (present.get("spec") or {}).get("taints") or ()
    other_taints = (
        taint for taint in present_taints if _taint_id(taint) not in {*old.taints, *desired_taints}
    )
    changes: dict[str, Any] = {"taints": [*other_taints, *(spec.get("taints") or ())] or None}
    if spec.get("unschedulable") or old.unschedulable:
        changes["unschedulable"] = spec.get("unschedulable")
    return {
        "metadata": {
            "resourceVersion": meta.resource_version(present),
            "labels": _replacement(old.labels, meta.labels(desired)),
            "annotations": annotations,
        },
        "spec": changes,
    }


def _replacement(old_names: Iterable[str], desired: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch of a map that sets the desired values, and removes what only the old shape has."""
    return {**dict.fromkeys(old_names), **desired}


def _taint_id(taint: ReadOnlyTree) -> str:
    return f"{taint['key']}:{taint['effect']}"
