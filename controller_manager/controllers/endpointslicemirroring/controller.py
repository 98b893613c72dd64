"""The EndpointSlice mirroring controller. The garbage collector deletes the slices of deleted Endpoints."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_LAST_APPLIED,
    ANNOTATION_LAST_CHANGE_TRIGGER_TIME,
    ANNOTATION_LEADER,
    LABEL_ENDPOINT_SLICE_MANAGED_BY,
    LABEL_ENDPOINT_SLICE_SKIP_MIRROR,
    LABEL_SERVICE_NAME,
)
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.control.actions import (
    EMPTY_PLAN,
    Action,
    Create,
    Delete,
    ObjectRef,
    Plan,
    Update,
)
from mockube.controller_manager.control.controller import Controller, Watch, key_of_object
from mockube.controller_manager.workloads import services
from mockube.controller_manager.workloads.endpoint_slices import (
    Endpoints,
    Ports,
    SliceChanges,
    SliceOptions,
    by_service,
    keys_of_services,
    ports_of,
    reconcile_slices,
    slice_of,
)

BY_MIRRORED: Final = "mirrored"
MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
_MAX_ENDPOINTS: Final = 1000
_NOT_MIRRORED_ANNOTATIONS: Final = (ANNOTATION_LAST_CHANGE_TRIGGER_TIME, ANNOTATION_LAST_APPLIED)


def reconcile(caches: Caches, key: Key, _: datetime) -> Plan:
    endpoints = caches.of(ENDPOINTS).get(*key)
    service = caches.of(SERVICES).get(*key)
    present = caches.of(ENDPOINT_SLICES).by_index(BY_MIRRORED, str(key))
    if endpoints is None or service is None or not _should_mirror(endpoints, service):
        return _delete_all(present)
    labels = {
        **meta.labels(endpoints),
        LABEL_SERVICE_NAME: key.name,
        LABEL_ENDPOINT_SLICE_MANAGED_BY: MANAGER,
    }
    changes = SliceChanges()
    for family in ("IPv4", "IPv6"):
        desired = _desired_endpoints(endpoints, family)
        slices = [endpoint_slice for endpoint_slice in present if endpoint_slice["addressType"] == family]
        if desired or slices:
            new_slice = partial(_mirror_slice, endpoints, labels, family)
            options = SliceOptions(
                labels=labels, new_slice=new_slice, max_endpoints=_MAX_ENDPOINTS, placeholder=False
            )
            changes = changes + reconcile_slices(endpoints, slices, desired, options)
    return Plan(actions=tuple(_actions(changes)))


def _should_mirror(endpoints: ReadOnlyTree, service: ReadOnlyTree) -> bool:
    """Return whether mirroring is not disabled, and no other controller creates the service's slices."""
    is_skipped = meta.labels(endpoints).get(LABEL_ENDPOINT_SLICE_SKIP_MIRROR) == "true"
    is_lock = ANNOTATION_LEADER in meta.annotations(endpoints)
    return not is_skipped and not is_lock and service["spec"].get("selector") is None


def _delete_all(present: Iterable[ReadOnlyTree]) -> Plan:
    refs = tuple(ObjectRef.of(endpoint_slice) for endpoint_slice in present)
    return Plan(actions=(Delete(resource=ENDPOINT_SLICES, objects=refs),)) if refs else EMPTY_PLAN


def _desired_endpoints(endpoints: ReadOnlyTree, family: str) -> dict[Ports, Endpoints]:
    groups: dict[Ports, Endpoints] = {}
    for subset in endpoints.get("subsets") or ():
        addresses = [
            *_addresses(subset, "addresses", family),
            *_addresses(subset, "notReadyAddresses", family),
        ]
        if addresses:
            groups.setdefault(ports_of(subset), {}).update(addresses)
    return groups


def _addresses(subset: ReadOnlyTree, field: str, family: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each endpoint with its identity: the pod's uid, or the address."""
    for address in subset.get(field) or ():
        if services.is_ipv6(address["ip"]) == (family == "IPv6"):
            endpoint = _endpoint(address, ready=field == "addresses")
            yield (address.get("targetRef") or {}).get("uid") or address["ip"], endpoint


def _endpoint(address: ReadOnlyTree, *, ready: bool) -> dict[str, Any]:
    optional = {name: address[name] for name in ("hostname", "targetRef", "nodeName") if address.get(name)}
    return {"addresses": [address["ip"]], "conditions": {"ready": ready}, **optional}


def _mirror_slice(
    endpoints: ReadOnlyTree, labels: dict[str, str], family: str, ports: Ports, slice_endpoints: Iterable[Any]
) -> dict[str, Any]:
    endpoint_slice = slice_of(endpoints, labels, family, ports, slice_endpoints)
    annotations = {
        name: value
        for name, value in meta.annotations(endpoints).items()
        if name not in _NOT_MIRRORED_ANNOTATIONS
    }
    owner = meta.controller_reference({**endpoints, "apiVersion": "v1", "kind": "Endpoints"})
    return meta.with_metadata(endpoint_slice, annotations=annotations, ownerReferences=[owner])


def _actions(changes: SliceChanges) -> Iterator[Action]:
    for body in changes.create:
        yield Create(resource=ENDPOINT_SLICES, bodies=(body,))
    for body in changes.update:
        yield Update(resource=ENDPOINT_SLICES, body=body)
    yield from _delete_all(changes.delete).actions


by_mirrored: Final = by_service(MANAGER)

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
