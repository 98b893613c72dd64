"""The pools of devices that a node can use, from ResourceSlices. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.node_selectors import selects

PoolKey = tuple[str, str]
"""A driver and the name of its pool."""
Counters = Mapping[tuple[str, str], Quantity]
"""Amounts of shared counters, by the names of the set and of the counter."""


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
    counters: Counters
    """The shared counters that the device consumes."""

    @property
    def node_selection(self) -> ReadOnlyTree:
        """The object that selects the nodes of the device: the spec of its slice, or the device itself."""
        spec: ReadOnlyTree = self.slice["spec"]
        return self.tree if spec.get("perDeviceNodeSelection") else spec


class Pool(Struct, frozen=True):
    """A pool of devices, as far as a node can use them."""

    key: PoolKey
    devices: Sequence[Device] = ()
    is_complete: bool = True
    is_valid: bool = True
    """Whether all devices have different names, and consume counters that exist."""
    counters: Counters = field(default_factory=dict)
    """The shared counters of all devices."""
    consumers: Sequence[Device] = ()
    """The devices that consume counters, also those that only other nodes can use."""

    @property
    def name(self) -> str:
        return "/".join(self.key)

    @property
    def is_usable(self) -> bool:
        return self.is_complete and self.is_valid


def no_slices(_: str, __: str) -> Sequence[ReadOnlyTree]:
    return ()


SlicesOfPool = Callable[[str, str], Sequence[ReadOnlyTree]]
"""A function that returns all slices of a pool, by its driver and name."""


def gather_pools(
    slices: Iterable[ReadOnlyTree],
    node: ReadOnlyTree,
    slices_of_pool: SlicesOfPool = no_slices,
    *,
    has_counters: bool = True,
) -> list[Pool]:
    """Return the pools that a node can use, sorted by driver and name. Slices of older generations are ignored.

    Without `has_counters`, slices with shared counters or with nodes of each device are ignored, as before 1.36.
    """
    by_pool: defaultdict[PoolKey, list[ReadOnlyTree]] = defaultdict(list)
    for resource_slice in slices:
        spec = resource_slice["spec"]
        if (has_counters or not _is_partitioned(spec)) and _is_relevant(spec, node):
            by_pool[spec["driver"], spec["pool"]["name"]].append(resource_slice)
    pools = (
        _pool(key, _of_generation(pool_slices), node, slices_of_pool)
        for key, pool_slices in sorted(by_pool.items())
    )
    return [pool for pool in pools if pool is not None and (pool.devices or not pool.is_usable)]


def _is_partitioned(spec: ReadOnlyTree) -> bool:
    return spec.get("perDeviceNodeSelection") is not None or bool(spec.get("sharedCounters"))


def _is_relevant(spec: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    """Return whether a node can use a slice, or one of its devices."""
    if spec.get("perDeviceNodeSelection"):
        return any(is_usable_from(device, node) for device in spec.get("devices") or ())
    return is_usable_from(spec, node)


def _generation(resource_slice: ReadOnlyTree) -> int:
    generation: int = resource_slice["spec"]["pool"].get("generation", 0)
    return generation


def _of_generation(slices: Sequence[ReadOnlyTree]) -> list[ReadOnlyTree]:
    """Return the slices of the newest generation, sorted by name."""
    newest = max(map(_generation, slices))
    return sorted((each for each in slices if _generation(each) == newest), key=meta.name)


def _pool(
    key: PoolKey, slices: Sequence[ReadOnlyTree], node: ReadOnlyTree, slices_of_pool: SlicesOfPool
) -> Pool | None:
    """Return the pool of slices that a node can use; None if slices for other nodes are newer."""
    count, others = slices[0]["spec"]["pool"].get("resourceSliceCount", 1), list[ReadOnlyTree]()
    if len(slices) != count:
        names = {meta.name(resource_slice) for resource_slice in slices}
        others = [each for each in slices_of_pool(*key) if meta.name(each) not in names]
        if any(_generation(each) > _generation(slices[0]) for each in others):
            return None
        others = [each for each in others if _generation(each) == _generation(slices[0])]
        if len(slices) + len(others) != count:
            return Pool(key, is_complete=False)
    own_devices = [device for each in slices for device in _devices(key, each)]
    names_of_devices = [device.id for device in own_devices]
    counter_sets = [
        counter_set for each in (*slices, *others) for counter_set in each["spec"].get("sharedCounters") or ()
    ]
    counters = _counters(counter_sets)
    consumers = [*own_devices, *(device for each in others for device in _devices(key, each))]
    consumers = [device for device in consumers if device.counters]
    is_valid = (
        len(names_of_devices) == len({*names_of_devices})
        and len(counter_sets) == len({counter_set["name"] for counter_set in counter_sets})
        and all(counters.keys() >= device.counters.keys() for device in consumers)
    )
    if not is_valid:
        return Pool(key, is_valid=False)
    usable_devices = [device for device in own_devices if _is_allocatable(device, node)]
    return Pool(key, usable_devices, counters=counters, consumers=consumers)


def _counters(counter_sets: Iterable[ReadOnlyTree]) -> Counters:
    return {
        (counter_set["name"], name): quantity.from_json(counter["value"])
        for counter_set in counter_sets
        for name, counter in counter_set["counters"].items()
    }


def _devices(key: PoolKey, resource_slice: ReadOnlyTree) -> Iterator[Device]:
    for tree in resource_slice["spec"].get("devices") or ():
        yield Device(DeviceId(*key, tree["name"]), tree, resource_slice, _consumed_counters(tree))


def _consumed_counters(device: ReadOnlyTree) -> Counters:
    return {
        (consumption["counterSet"], name): quantity.from_json(counter["value"])
        for consumption in device.get("consumesCounters") or ()
        for name, counter in consumption["counters"].items()
    }


def _is_allocatable(device: Device, node: ReadOnlyTree) -> bool:
    """Return whether a node can use a device, and it needs no feature that is not implemented.

    These are multiple allocations and binding conditions.
    """
    needs_more = device.tree.get("allowMultipleAllocations") or device.tree.get("bindingConditions")
    return not needs_more and is_usable_from(device.node_selection, node)


def is_usable_from(node_selection: ReadOnlyTree, node: ReadOnlyTree) -> bool:
    if node_selection.get("nodeName"):
        return bool(node_selection["nodeName"] == meta.name(node))
    if node_selection.get("allNodes"):
        return True
    return "nodeSelector" in node_selection and selects(node_selection["nodeSelector"], node)
