"""The binding of a volume and a claim, which is written to both, and the indexes of candidates."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.apimachinery.wellknown import ANNOTATION_PV_BIND_COMPLETED, ANNOTATION_PV_BOUND_BY_CONTROLLER
from mockube.client.cache.store import Caches, Indexer
from mockube.client.component_helpers.indexes import BY_CLAIM, claims_of_pod
from mockube.client.component_helpers.volumes import claim_reference, is_bound_to
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.client.resources import Key, Resource
from mockube.controller_manager.control.actions import Action, Update

_BY_CLAIM_REF: Final = "named"
_UNCLAIMED: Final = "free"
_UNBOUND: Final = "unbound"


def volumes_referring_to(caches: Caches, claim: ReadOnlyTree) -> Iterable[ReadOnlyTree]:
    return caches.of(PERSISTENT_VOLUMES).by_index(_BY_CLAIM_REF, str(Key.of(claim)))


def unclaimed_volumes(caches: Caches, name: str) -> Iterable[ReadOnlyTree]:
    """Return the volumes of a class without a claimRef."""
    return caches.of(PERSISTENT_VOLUMES).by_index(_UNCLAIMED, name)


def unbound_claims(caches: Caches, name: str) -> Iterable[ReadOnlyTree]:
    """Return the claims of a class that are not bound yet."""
    return caches.of(PERSISTENT_VOLUME_CLAIMS).by_index(_UNBOUND, name)


def unscheduled_consumers(caches: Caches, claim: ReadOnlyTree) -> list[str]:
    """Return the names of the claim's pods that have no node yet."""
    pods = caches.of(PODS).by_index(BY_CLAIM, str(Key.of(claim)))
    return sorted(pod.key.name for pod in pods if not pod.node and not pod.is_terminal)


def _claim_ref_of(volume: ReadOnlyTree) -> Iterable[str]:
    ref = volume["spec"].get("claimRef")
    return () if ref is None else (f"{ref['namespace']}/{ref['name']}",)


def _class_if_unclaimed(volume: ReadOnlyTree) -> Iterable[str]:
    return (storage_class_name(volume),) if volume["spec"].get("claimRef") is None else ()


def _class_if_unbound(claim: ReadOnlyTree) -> Iterable[str]:
    return () if is_bind_completed(claim) else (storage_class_name(claim),)


INDEXES: Final[Mapping[Resource[Any], Mapping[str, Indexer]]] = {
    PERSISTENT_VOLUME_CLAIMS: {_UNBOUND: _class_if_unbound},
    PERSISTENT_VOLUMES: {_BY_CLAIM_REF: _claim_ref_of, _UNCLAIMED: _class_if_unclaimed},
    PODS: {BY_CLAIM: claims_of_pod},
}


_YES: Final = "yes"


def is_bind_completed(claim: ReadOnlyTree) -> bool:
    return ANNOTATION_PV_BIND_COMPLETED in meta.annotations(claim)


def is_bound_by_controller(obj: ReadOnlyTree) -> bool:
    return ANNOTATION_PV_BOUND_BY_CONTROLLER in meta.annotations(obj)


def bind(volume: ReadOnlyTree, claim: ReadOnlyTree) -> tuple[Action, ...]:
    """Return the missing writes of a binding: the volume first, so that no claim refers to a volume of another claim.

    The volume's phase is written when the volume itself is reconciled.
    """
    return (*_bind_volume_to_claim(volume, claim), *_bind_claim_to_volume(volume, claim))


def _bind_volume_to_claim(volume: ReadOnlyTree, claim: ReadOnlyTree) -> tuple[Action, ...]:
    ref = volume["spec"].get("claimRef") or {}
    if ref.get("uid") == meta.uid(claim):
        return ()
    bound = meta.with_value(volume, ("spec", "claimRef"), claim_reference(claim))
    if not is_bound_to(volume, claim):
        bound = meta.with_annotations(bound, {ANNOTATION_PV_BOUND_BY_CONTROLLER: _YES})
    return (Update(resource=PERSISTENT_VOLUMES, body=bound),)


def _bind_claim_to_volume(volume: ReadOnlyTree, claim: ReadOnlyTree) -> tuple[Action, ...]:
    is_requested_by_user = claim["spec"].get("volumeName") == meta.name(volume)
    if is_requested_by_user and is_bind_completed(claim):
        return claim_status_update(claim, _bound_status(volume, claim))
    annotations = {ANNOTATION_PV_BIND_COMPLETED: _YES}
    annotations |= {} if is_requested_by_user else {ANNOTATION_PV_BOUND_BY_CONTROLLER: _YES}
    bound = meta.with_value(claim, ("spec", "volumeName"), meta.name(volume))
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=meta.with_annotations(bound, annotations)),)


def _bound_status(volume: ReadOnlyTree, claim: ReadOnlyTree) -> dict[str, Any]:
    old = claim.get("status") or {}
    new_status = {**old, "phase": "Bound", "accessModes": volume["spec"].get("accessModes") or []}
    # The capacity of a bound claim is written by the resizer.
    if "capacity" not in old or old.get("phase") == "Pending":
        new_status["capacity"] = volume["spec"].get("capacity") or {}
    attributes = volume["spec"].get("volumeAttributesClassName")
    return new_status | ({"currentVolumeAttributesClassName": attributes} if attributes else {})


def claim_status_update(claim: ReadOnlyTree, new_status: ReadOnlyTree) -> tuple[Action, ...]:
    if equal(claim.get("status"), new_status):
        return ()
    body = {**claim, "status": new_status}
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body, subresource="status"),)


def unbound_status_update(claim: ReadOnlyTree, name: str) -> tuple[Action, ...]:
    """Return the update of the status of a Pending or Lost claim, without the fields of a volume."""
    old = claim.get("status") or {}
    others = {field: value for field, value in old.items() if field not in ("accessModes", "capacity")}
    return claim_status_update(claim, {**others, "phase": name})


def phase_update(volume: ReadOnlyTree, name: str, message: str = "") -> tuple[Action, ...]:
    old = volume.get("status") or {}
    if (old.get("phase"), old.get("message") or "") == (name, message):
        return ()
    new_status = {field: value for field, value in old.items() if field != "message"} | {"phase": name}
    body = {**volume, "status": new_status | ({"message": message} if message else {})}
    return (Update(resource=PERSISTENT_VOLUMES, body=body, subresource="status"),)


def remove_binding(volume: ReadOnlyTree) -> tuple[Action, ...]:
    """Remove the binding of a volume. A claimRef that this controller did not write keeps the claim's name."""
    if is_bound_by_controller(volume):
        spec = {field: value for field, value in volume["spec"].items() if field != "claimRef"}
        unbound = meta.with_annotations({**volume, "spec": spec}, {ANNOTATION_PV_BOUND_BY_CONTROLLER: None})
    else:
        binding_fields = ("uid", "resourceVersion")
        claim_ref = {
            field: value for field, value in volume["spec"]["claimRef"].items() if field not in binding_fields
        }
        unbound = meta.with_value(volume, ("spec", "claimRef"), claim_ref)
    return (Update(resource=PERSISTENT_VOLUMES, body=unbound),)
