"""The EndpointSlice mirroring controller. The garbage collector deletes the slices of deleted Endpoints."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_LEADER, LABEL_ENDPOINT_SLICE_SKIP_MIRROR
from mockube.client.cache.store import Caches
from mockube.client.kinds import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Create,
    Delete,
    ObjectRef,
    Plan,
    RecordEvent,
    Update,
)
from mockube.controller_manager.control.controller import Controller, Watch, key_of_object
from mockube.controller_manager.workloads.endpoint_slices import SliceChanges, by_service, keys_of_services

from . import mirror

BY_MIRRORED: Final = "mirrored"


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    endpoints = caches.of(ENDPOINTS).get(*key)
    service = caches.of(SERVICES).get(*key)
    present = caches.of(ENDPOINT_SLICES).by_index(BY_MIRRORED, str(key))
    if endpoints is None or service is None or not _should_mirror(endpoints, service):
        return _delete_all(present)
    groups, skipped = mirror.desired_groups(endpoints)
    changes = mirror.mirror_changes(endpoints, present, groups)
    return Plan(actions=(*_actions(endpoints, changes), *_events(endpoints, skipped)))


def _should_mirror(endpoints: ReadOnlyTree, service: ReadOnlyTree) -> bool:
    """Return whether mirroring is not disabled, and no other controller creates the service's slices."""
    is_skipped = meta.labels(endpoints).get(LABEL_ENDPOINT_SLICE_SKIP_MIRROR) == "true"
    is_lock = ANNOTATION_LEADER in meta.annotations(endpoints)
    return not is_skipped and not is_lock and service["spec"].get("selector") is None


def _delete_all(present: Iterable[ReadOnlyTree]) -> Plan:
    refs = tuple(ObjectRef.of(endpoint_slice) for endpoint_slice in present)
    return Plan(actions=(Delete(resource=ENDPOINT_SLICES, objects=refs),)) if refs else EMPTY_PLAN


def _actions(endpoints: ReadOnlyTree, changes: SliceChanges) -> Iterator[Action]:
    for body in () if meta.is_deleting(endpoints) else changes.create:
        yield Create(resource=ENDPOINT_SLICES, bodies=(body,))
    for body in changes.update:
        yield Update(resource=ENDPOINT_SLICES, body=body)
    yield from _delete_all(changes.delete).actions


def _events(endpoints: ReadOnlyTree, skipped: int) -> Iterator[RecordEvent]:
    if skipped:
        message = (
            f"A max of {mirror.MAX_ENDPOINTS} addresses can be mirrored to EndpointSlices per Endpoints subset. "
            f"{skipped} addresses were skipped"
        )
        about = {**endpoints, "apiVersion": "v1", "kind": "Endpoints"}
        yield RecordEvent(about=about, type="Warning", reason="TooManyAddressesToMirror", message=message)


by_mirrored: Final = by_service(mirror.MANAGER)

MIRRORED_ENDPOINT_SLICES: Final = Controller(
    name="endpointslice-mirroring-controller",
    queue="endpoint_slice_mirroring",
    service_account="endpointslicemirroring-controller",
    event_component="endpoint-slice-mirroring-controller",
    watches=(
        Watch(resource=ENDPOINTS, keys=key_of_object),
        Watch(resource=SERVICES, keys=key_of_object),
        Watch(resource=ENDPOINT_SLICES, keys=keys_of_services(by_mirrored)),
    ),
    reconcile=reconcile,
    workers=5,
    indexes={ENDPOINT_SLICES: {BY_MIRRORED: by_mirrored}},
)
