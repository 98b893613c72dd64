"""The pools of devices that a node can use, from ResourceSlices. Pure."""

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
    def node_selection(self) -> ReadOnlyTree:
        """The object that selects the nodes of the device: the spec of its slice, or the device itself."""
        spec: ReadOnlyTree = self.slice["spec"]
        return self.tree if spec.get("perDeviceNodeSelection") else spec


class Pool(Struct, frozen=True):
    """A pool of devices, as far as a node can use them."""

    name: str
    devices: Sequence[Device]
    is_complete: bool
    is_valid: bool
    """Whether all devices have different names."""

    @property
    def is_usable(self) -> bool:
        return self.is_complete and self.is_valid


def gather_pools(slices: Iterable[ReadOnlyTree], node: ReadOnlyTree) -> list[Pool]:
    """Return the pools that a node can use, sorted by driver and pool name. Slices of older generations are ignored."""
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
    is_complete = len(current) == current[0]["spec"]["pool"].get("resourceSliceCount", 1)
    return Pool("/".join(key), devices, is_complete=is_complete, is_valid=len(names) == len({*names}))


def _devices(key: tuple[str, str], resource_slice: ReadOnlyTree, node: ReadOnlyTree) -> Iterator[Device]:
    """Yield the devices that a node can use, without devices that need unimplemented features.

    These are shared counters, multiple allocations and binding conditions.
    """
    for tree in resource_slice["spec"].get("devices") or ():
        device = Device(DeviceId(*key, tree["name"]), tree, resource_slice)
        is_simple = not any(
            tree.get(field) for field in ("consumesCounters", "allowMultipleAllocations", "bindingConditions")
        )
        if is_simple and is_usable_from(device.node_selection, node):
            yield device


def is_usable_from(node_selection: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    if node_selection.get("nodeName"):
        return bool(node_selection["nodeName"] == meta.name(node))
    if node_selection.get("allNodes"):
        return True
    return "nodeSelector" in node_selection and selects(node_selection["nodeSelector"], node)
