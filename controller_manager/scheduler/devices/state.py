"""The scheduler's state of devices: claims, classes and slices, and the allocated devices."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.informer import Informers
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client.kinds import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.scheduler.devices.claims import (
    DeviceSnapshot,
    allocate,
    claims_of,
    device_ids,
    waits_for_claims,
)
from mockube.controller_manager.scheduler.devices.pools import DeviceId
from mockube.controller_manager.workloads.device_claims import allocation, has_taint_rules, rule_selects

_BY_NODE_NAME: Final = "device-place"
_ANY_NODE: Final = ""


class DeviceState:
    """Tracks allocated devices by the informers. It is created for the first pod with claims; nothing is watched before."""

    def __init__(self, informers: Informers, on_change: Callable[[], None]) -> None:
        self._claims = informers.of(RESOURCE_CLAIMS)
        self._classes = informers.of(DEVICE_CLASSES)
        self._slices = informers.of(RESOURCE_SLICES)
        self._on_change = on_change
        self._gates = informers.caches.gates
        self._rules = informers.of(DEVICE_TAINT_RULES) if has_taint_rules(self._gates) else None
        self._device_ids: dict[str, tuple[DeviceId, ...]] = {}
        self._user_counts: Counter[DeviceId] = Counter()
        self._in_flight: dict[str, ReadOnlyTree] = {}
        self._slices.add_index(_BY_NODE_NAME, _node_names)
        self._claims.add_handler(self._claim_changed)
        for informer in (self._classes, self._slices, *([self._rules] if self._rules else [])):
            informer.add_handler(lambda _: on_change())

    def snapshot(self) -> DeviceSnapshot:
        return DeviceSnapshot(
            claims=self._claims.lister,
            classes=self._classes.lister,
            slices=self._slices_for,
            in_use=self._user_counts,
            in_flight=self._in_flight,
            gates=self._gates,
        )

    def waits_for_claims(self, pod: PodView) -> bool:
        return waits_for_claims(pod, self._claims.lister)

    def claims_of(self, pod: PodView) -> Sequence[ReadOnlyTree]:
        return claims_of(pod, self._claims.lister)

    def allocate(self, pod: PodView, node: ReadOnlyTree, now: str) -> dict[str, ReadOnlyTree]:
        """Allocate devices for the pod's claims; from now on they are in use."""
        allocations = allocate(pod, node, self.snapshot(), now)
        self.assume(allocations)
        return dict(allocations)

    def assume(self, allocations: Mapping[str, ReadOnlyTree]) -> None:
        """Count the devices of allocations as in use before the cache contains them."""
        for uid, allocated in allocations.items():
            self._in_flight[uid] = allocated
            self._set_devices(uid, device_ids(allocated))

    def forget(self, uids: Iterable[str]) -> None:
        """Release the devices of allocations that were not written."""
        for uid in uids:
            if self._in_flight.pop(uid, None) is not None:
                self._set_devices(uid, ())
        self._on_change()

    def _claim_changed(self, change: Change) -> None:
        uid = meta.uid(change.last_known)
        allocated = None if change.new is None else allocation(change.new)
        if change.new is None or allocated is not None:
            self._in_flight.pop(uid, None)
        if uid not in self._in_flight:
            self._set_devices(uid, () if allocated is None else device_ids(allocated))
        self._on_change()

    def _set_devices(self, uid: str, devices: Iterable[DeviceId]) -> None:
        for device in self._device_ids.pop(uid, ()):
            self._user_counts[device] -= 1
            if not self._user_counts[device]:
                del self._user_counts[device]
        ids = tuple(devices)
        if ids:
            self._device_ids[uid] = ids
            self._user_counts.update(ids)

    def _slices_for(self, node: str) -> Sequence[ReadOnlyTree]:
        lister = self._slices.lister
        slices = [*lister.by_index(_BY_NODE_NAME, node), *lister.by_index(_BY_NODE_NAME, _ANY_NODE)]
        rules = [] if self._rules is None else [*self._rules.lister.all()]
        return [with_taints(resource_slice, rules) for resource_slice in slices] if rules else slices


def with_taints(resource_slice: ReadOnlyTree, rules: Sequence[ReadOnlyTree]) -> ReadOnlyTree:
    """Return a slice whose devices have the taints of the rules that select them."""
    spec = resource_slice["spec"]
    driver, pool = spec["driver"], spec["pool"]["name"]
    devices = [
        {**device, "taints": [*(device.get("taints") or ()), *taints]}
        if (
            taints := [
                rule["spec"]["taint"] for rule in rules if rule_selects(rule, driver, pool, device["name"])
            ]
        )
        else device
        for device in spec.get("devices") or ()
    ]
    return {**resource_slice, "spec": {**spec, "devices": devices}}


def _node_names(resource_slice: ReadOnlyTree) -> Iterable[str]:
    return (resource_slice["spec"].get("nodeName") or _ANY_NODE,)
