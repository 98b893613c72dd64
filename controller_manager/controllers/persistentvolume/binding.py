"""The two halves of a binding, a volume that names a claim and a claim that names a volume, and indexes to find candidates."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_PV_BIND_COMPLETED, ANNOTATION_PV_BOUND_BY_CONTROLLER
from mockube.controller_manager.cache.store import Caches, Indexer
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.control.actions import Action, Update
from mockube.controller_manager.workloads.indexes import BY_CLAIM, claims_of_pod
from mockube.controller_manager.workloads.volumes import claim_reference, class_name, is_bound_to

_NAMED: Final = "named"
_FREE: Final = "free"
_UNBOUND: Final = "unbound"


def volumes_naming(caches: Caches, claim: ReadOnlyTree) -> Iterable[ReadOnlyTree]:
    return caches.of(PERSISTENT_VOLUMES).by_index(_NAMED, str(Key.of(claim)))


def free_volumes(caches: Caches, name: str) -> Iterable[ReadOnlyTree]:
    """Of a class, those that name no claim."""
    return caches.of(PERSISTENT_VOLUMES).by_index(_FREE, name)


def unbound_claims(caches: Caches, name: str) -> Iterable[ReadOnlyTree]:
    """Of a class, those that have no volume yet."""
    return caches.of(PERSISTENT_VOLUME_CLAIMS).by_index(_UNBOUND, name)


def unscheduled_consumers(caches: Caches, claim: ReadOnlyTree) -> list[str]:
    """The names of the pods that wait for it, and have no node yet."""
    pods = caches.of(PODS).by_index(BY_CLAIM, str(Key.of(claim)))
    return sorted(pod.key.name for pod in pods if not pod.node and not pod.is_terminal)


def _claim_named_by(volume: ReadOnlyTree) -> Iterable[str]:
    ref = volume["spec"].get("claimRef")
    return () if ref is None else (f"{ref['namespace']}/{ref['name']}",)


def _class_if_free(volume: ReadOnlyTree) -> Iterable[str]:
    return (class_name(volume),) if volume["spec"].get("claimRef") is None else ()


def _class_if_unbound(claim: ReadOnlyTree) -> Iterable[str]:
    return () if is_completed(claim) else (class_name(claim),)


INDEXES: Final[Mapping[Resource[Any], Mapping[str, Indexer]]] = {
    PERSISTENT_VOLUME_CLAIMS: {_UNBOUND: _class_if_unbound},
    PERSISTENT_VOLUMES: {_NAMED: _claim_named_by, _FREE: _class_if_free},
    PODS: {BY_CLAIM: claims_of_pod},
}


_YES: Final = "yes"


def is_completed(claim: ReadOnlyTree) -> bool:
    return ANNOTATION_PV_BIND_COMPLETED in meta.annotations(claim)


def is_by_controller(obj: ReadOnlyTree) -> bool:
    return ANNOTATION_PV_BOUND_BY_CONTROLLER in meta.annotations(obj)


def bind(volume: ReadOnlyTree, claim: ReadOnlyTree) -> tuple[Action, ...]:
    """The missing writes of a binding: the volume first, so that no claim ever names a volume of another claim.

    The volume's phase is written when the volume itself is reconciled.
    """
    return (*_volume_half(volume, claim), *_claim_half(volume, claim))


def _volume_half(volume: ReadOnlyTree, claim: ReadOnlyTree) -> tuple[Action, ...]:
    ref = volume["spec"].get("claimRef") or {}
    if ref.get("uid") == meta.uid(claim):
        return ()
    named = meta.with_value(volume, ("spec", "claimRef"), claim_reference(claim))
    if not is_bound_to(volume, claim):
        named = meta.with_annotations(named, {ANNOTATION_PV_BOUND_BY_CONTROLLER: _YES})
    return (Update(resource=PERSISTENT_VOLUMES, body=named),)


def _claim_half(volume: ReadOnlyTree, claim: ReadOnlyTree) -> tuple[Action, ...]:
    by_user = claim["spec"].get("volumeName") == meta.name(volume)
    if by_user and is_completed(claim):
        return claim_status(claim, _bound_status(volume, claim))
    marks = {ANNOTATION_PV_BIND_COMPLETED: _YES}
    marks |= {} if by_user else {ANNOTATION_PV_BOUND_BY_CONTROLLER: _YES}
    named = meta.with_value(claim, ("spec", "volumeName"), meta.name(volume))
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=meta.with_annotations(named, marks)),)


def _bound_status(volume: ReadOnlyTree, claim: ReadOnlyTree) -> dict[str, Any]:
    old = claim.get("status") or {}
    new_status = {**old, "phase": "Bound", "accessModes": volume["spec"].get("accessModes") or []}
    # Once it is bound, the resizer writes its capacity.
    if "capacity" not in old or old.get("phase") == "Pending":
        new_status["capacity"] = volume["spec"].get("capacity") or {}
    attributes = volume["spec"].get("volumeAttributesClassName")
    return new_status | ({"currentVolumeAttributesClassName": attributes} if attributes else {})


def claim_status(claim: ReadOnlyTree, new_status: ReadOnlyTree) -> tuple[Action, ...]:
    if equal(claim.get("status"), new_status):
        return ()
    body = {**claim, "status": new_status}
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body, subresource="status"),)


def unbound_status(claim: ReadOnlyTree, name: str) -> tuple[Action, ...]:
    """Pending or Lost: without the fields of a volume."""
    old = claim.get("status") or {}
    others = {field: value for field, value in old.items() if field not in ("accessModes", "capacity")}
    return claim_status(claim, {**others, "phase": name})


def phase(volume: ReadOnlyTree, name: str, message: str = "") -> tuple[Action, ...]:
    old = volume.get("status") or {}
    if (old.get("phase"), old.get("message") or "") == (name, message):
        return ()
    new_status = {field: value for field, value in old.items() if field != "message"} | {"phase": name}
    body = {**volume, "status": new_status | ({"message": message} if message else {})}
    return (Update(resource=PERSISTENT_VOLUMES, body=body, subresource="status"),)


def remove_binding(volume: ReadOnlyTree) -> tuple[Action, ...]:
    """Remove this controller's binding; a claimRef of the volume's creator stays, without the uid."""
    if is_by_controller(volume):
        spec = {field: value for field, value in volume["spec"].items() if field != "claimRef"}
        freed = meta.with_annotations({**volume, "spec": spec}, {ANNOTATION_PV_BOUND_BY_CONTROLLER: None})
    else:
        binding_fields = ("uid", "resourceVersion")
        wish = {
            field: value for field, value in volume["spec"]["claimRef"].items() if field not in binding_fields
        }
        freed = meta.with_value(volume, ("spec", "claimRef"), wish)
    return (Update(resource=PERSISTENT_VOLUMES, body=freed),)
