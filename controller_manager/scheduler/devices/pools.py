"""The devices that a node can use, pool by pool, as ResourceSlices list them. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.workloads.node_selectors import selects


class DeviceId(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class Device(Struct, frozen=True, eq=False):
    id: DeviceId
    tree: ReadOnlyTree
    slice: ReadOnlyTree

    @property
    def place(self) -> ReadOnlyTree:
        """The object with its node selection: its slice, or itself."""
        spec: ReadOnlyTree = self.slice["spec"]
        return self.tree if spec.get("perDeviceNodeSelection") else spec


class Pool(Struct, frozen=True):
    name: str
    devices: Sequence[Device]
    is_complete: bool
    is_valid: bool
    """No two devices have the same name."""

    @property
    def is_usable(self) -> bool:
        return self.is_complete and self.is_valid


def gather(slices: Iterable[ReadOnlyTree], node: ReadOnlyTree) -> list[Pool]:
    """By the names of drivers and pools. Slices of older generations count for nothing."""
    by_pool: defaultdict[tuple[str, str], list[ReadOnlyTree]] = defaultdict(list)
    for resource_slice in slices:
        spec = resource_slice["spec"]
        by_pool[spec["driver"], spec["pool"]["name"]].append(resource_slice)
    pools = [_pool(key, pool_slices, node) for key, pool_slices in sorted(by_pool.items())]
    return [pool for pool in pools if pool.devices or not pool.is_usable]


def _pool(key: tuple[str, str], slices: list[ReadOnlyTree], node: ReadOnlyTree) -> Pool:
    newest = max(resource_slice["spec"]["pool"].get("generation", 0) for resource_slice in slices)
    current = [
        resource_slice
        for resource_slice in slices
        if resource_slice["spec"]["pool"].get("generation", 0) == newest
    ]
    current.sort(key=meta.name)
    devices = [device for resource_slice in current for device in _devices(key, resource_slice, node)]
    names = [
        device["name"] for resource_slice in current for device in resource_slice["spec"].get("devices") or ()
    ]
    is_whole = len(current) == current[0]["spec"]["pool"].get("resourceSliceCount", 1)
    return Pool("/".join(key), devices, is_complete=is_whole, is_valid=len(names) == len({*names}))


def _devices(key: tuple[str, str], resource_slice: ReadOnlyTree, node: ReadOnlyTree) -> Iterator[Device]:
    """What needs more than to be chosen is left out: shared counters, capacities that are divided, conditions to bind."""
    for tree in resource_slice["spec"].get("devices") or ():
        device = Device(DeviceId(*key, tree["name"]), tree, resource_slice)
        is_simple = not any(
            tree.get(field) for field in ("consumesCounters", "allowMultipleAllocations", "bindingConditions")
        )
        if is_simple and is_usable_from(device.place, node):
            yield device


def is_usable_from(place: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    if place.get("nodeName"):
        return bool(place["nodeName"] == meta.name(node))
    if place.get("allNodes"):
        return True
    return "nodeSelector" in place and selects(place["nodeSelector"], node)
