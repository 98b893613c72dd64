"""The scheduler's state of devices: claims, classes and slices, and the allocated devices."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.informer import Informers
from mockube.client.cache.store import Change
from mockube.client.component_helpers import device_claims
from mockube.client.podview import PodView
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .claims import DeviceReservation, DeviceSnapshot, allocate, device_ids, waits_for_claims
from .extended_resources import ExtendedResourceClasses, owner_of_extended_resource_claim
from .fingerprints import DeviceFingerprints
from .pools import DeviceId

MAX_SYNC_SECONDS: Final = 30
"""Without the group resource.k8s.io the informers never synchronize, and pods would wait for ever."""
_BY_NODE_NAME: Final = "device-place"
_BY_POOL: Final = "device-pool"
_ANY_NODE: Final = ""
_BY_EXTENDED_RESOURCE_OWNER: Final = "extended-resource-owner"
OnChange = Callable[[str, Change | None], None]
"""A function that is called with the kind of a changed object, and its change if it is known."""


class DeviceState:
    """Tracks allocated devices by the informers. It is created for the first pod that may need devices, not before."""

    def __init__(
        self, informers: Informers, on_change: OnChange, mark_changed: Callable[[str], None]
    ) -> None:
        """`mark_changed` is called with the name of each node whose devices, or their use, changed."""
        self._mark_changed = mark_changed
        self._fingerprints = DeviceFingerprints()
        self._claims = informers.of(kinds.RESOURCE_CLAIMS)
        self._classes = informers.of(kinds.DEVICE_CLASSES)
        self._slices = informers.of(kinds.RESOURCE_SLICES)
        self._on_change = on_change
        self._gates = informers.caches.gates
        self._rules = (
            informers.of(kinds.DEVICE_TAINT_RULES) if device_claims.has_taint_rules(self._gates) else None
        )
        self._device_ids: dict[str, tuple[DeviceId, ...]] = {}
        self._user_counts: Counter[DeviceId] = Counter()
        self._in_flight: dict[str, ReadOnlyTree] = {}
        self._extended_classes = ExtendedResourceClasses()
        self._is_known = False
        self._slices.add_index(_BY_NODE_NAME, _node_names)
        self._slices.add_index(_BY_POOL, _pool_names)
        self._claims.add_index(_BY_EXTENDED_RESOURCE_OWNER, owner_of_extended_resource_claim)
        self._claims.add_handler(self._claim_changed)
        self._classes.add_handler(self._class_changed)
        self._slices.add_handler(self._slice_changed)
        if self._rules is not None:
            # The taints of rules are those of slices.
            self._rules.add_handler(lambda _: on_change("ResourceSlice", None))

    async def wait_synced(self, clock: Clock) -> None:
        """Wait until all objects are known, but not for ever: the server may not serve them."""
        if self._is_known:
            return
        informers = (self._claims, self._classes, self._slices, *([self._rules] if self._rules else []))
        with suppress(TimeoutError):
            async with timeout(clock, MAX_SYNC_SECONDS):
                for informer in informers:
                    await informer.wait_synced()
        self._is_known = True

    def snapshot(self) -> DeviceSnapshot:
        return DeviceSnapshot(
            claims=self._claims.lister,
            classes=self._classes.lister,
            slices=self._slices_for,
            slices_of_pool=self._slices_of_pool,
            in_use=self._user_counts,
            in_flight=self._in_flight,
            gates=self._gates,
            extended_classes=self._extended_classes.by_resource,
            extended_resource_claim=self._extended_resource_claim,
            is_of_single_nodes=self._is_of_single_nodes(),
            fingerprints=self._fingerprints,
        )

    def _is_of_single_nodes(self) -> bool:
        has_rules = self._rules is not None and bool(self._rules.lister.all())
        return not has_rules and not self._slices.lister.by_index(_BY_NODE_NAME, _ANY_NODE)

    @property
    def extended_resources(self) -> Collection[str]:
        """The extended resources that device classes provide."""
        return self._extended_classes.by_resource.keys()

    def waits_for_claims(self, pod: PodView) -> bool:
        return waits_for_claims(pod, self._claims.lister)

    def allocate(self, pod: PodInfo, node: NodeInfo, devices: DeviceSnapshot, now: str) -> DeviceReservation:
        """Allocate the devices that a decision has found for a pod; from now on they are in use."""
        reservation = allocate(pod, node, devices, now)
        self.assume(reservation.allocations)
        return reservation

    def _extended_resource_claim(self, pod: str) -> ReadOnlyTree | None:
        return next(iter(self._claims.lister.by_index(_BY_EXTENDED_RESOURCE_OWNER, pod)), None)

    def _slice_changed(self, change: Change) -> None:
        for resource_slice in (change.old, change.new):
            if resource_slice is not None and (name := resource_slice["spec"].get("nodeName")):
                self._mark_changed(name)
        self._on_change("ResourceSlice", change)

    def _class_changed(self, change: Change) -> None:
        if device_claims.has_extended_resources(self._gates):
            self._extended_classes.handle(change)
        self._on_change("DeviceClass", change)

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
        self._on_change("ResourceClaim", None)

    def _claim_changed(self, change: Change) -> None:
        uid = meta.uid(change.last_known)
        allocated = None if change.new is None else device_claims.allocation(change.new)
        if change.new is None or allocated is not None:
            self._in_flight.pop(uid, None)
        if uid not in self._in_flight:
            self._set_devices(uid, () if allocated is None else device_ids(allocated))
        self._on_change("ResourceClaim", change)

    def _set_devices(self, uid: str, devices: Iterable[DeviceId]) -> None:
        before = self._device_ids.pop(uid, ())
        for device in before:
            self._user_counts[device] -= 1
            if not self._user_counts[device]:
                del self._user_counts[device]
        ids = tuple(devices)
        if ids:
            self._device_ids[uid] = ids
            self._user_counts.update(ids)
        if ids != before:
            for driver, pool in {(device.driver, device.pool) for device in (*before, *ids)}:
                for resource_slice in self._slices_of_pool(driver, pool):
                    self._mark_changed(resource_slice["spec"].get("nodeName") or "")

    def _slices_of_pool(self, driver: str, pool: str) -> Sequence[ReadOnlyTree]:
        return self._slices.lister.by_index(_BY_POOL, f"{driver}/{pool}")

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
                rule["spec"]["taint"]
                for rule in rules
                if device_claims.rule_selects(rule, driver, pool, device["name"])
            ]
        )
        else device
        for device in spec.get("devices") or ()
    ]
    return {**resource_slice, "spec": {**spec, "devices": devices}}


def _node_names(resource_slice: ReadOnlyTree) -> Iterable[str]:
    return (resource_slice["spec"].get("nodeName") or _ANY_NODE,)


def _pool_names(resource_slice: ReadOnlyTree) -> Iterable[str]:
    spec = resource_slice["spec"]
    return (f"{spec['driver']}/{spec['pool']['name']}",)
