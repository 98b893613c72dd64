"""The two halves of a binding: a volume that names a claim, a claim that names a volume. Each is written by itself."""

from typing import Any, Final

from apimachinery import meta
from apimachinery.patch.equality import same
from apimachinery.wellknown import ANNOTATION_PV_BIND_COMPLETED, ANNOTATION_PV_BOUND_BY_CONTROLLER
from controller_manager.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from controller_manager.runtime.actions import Action, Update
from controller_manager.runtime.resource import Tree
from controller_manager.storage.matching import claim_reference, is_bound_to

_YES: Final = "yes"


def is_completed(claim: Tree) -> bool:
    return ANNOTATION_PV_BIND_COMPLETED in meta.annotations(claim)


def is_by_controller(obj: Tree) -> bool:
    return ANNOTATION_PV_BOUND_BY_CONTROLLER in meta.annotations(obj)


def bind(volume: Tree, claim: Tree) -> tuple[Action, ...]:
    """What is still missing: the volume first, so that no claim ever names a volume that could become another's.

    The volume's phase is told when the volume itself is looked at.
    """
    return (*_volume_half(volume, claim), *_claim_half(volume, claim))


def _volume_half(volume: Tree, claim: Tree) -> tuple[Action, ...]:
    ref = volume["spec"].get("claimRef") or {}
    if ref.get("uid") == meta.uid(claim):
        return ()
    named = meta.with_value(volume, ("spec", "claimRef"), claim_reference(claim))
    if not is_bound_to(volume, claim):
        named = meta.with_annotations(named, {ANNOTATION_PV_BOUND_BY_CONTROLLER: _YES})
    return (Update(resource=PERSISTENT_VOLUMES, body=named),)


def _claim_half(volume: Tree, claim: Tree) -> tuple[Action, ...]:
    by_user = claim["spec"].get("volumeName") == meta.name(volume)
    if by_user and is_completed(claim):
        return claim_status(claim, _bound_status(volume, claim))
    marks = {ANNOTATION_PV_BIND_COMPLETED: _YES}
    marks |= {} if by_user else {ANNOTATION_PV_BOUND_BY_CONTROLLER: _YES}
    named = meta.with_value(claim, ("spec", "volumeName"), meta.name(volume))
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=meta.with_annotations(named, marks)),)


def _bound_status(volume: Tree, claim: Tree) -> dict[str, Any]:
    old = claim.get("status") or {}
    told = {**old, "phase": "Bound", "accessModes": volume["spec"].get("accessModes") or []}
    # Once it is bound, what it has of the volume is the resizer's to tell.
    if "capacity" not in old or old.get("phase") == "Pending":
        told["capacity"] = volume["spec"].get("capacity") or {}
    attributes = volume["spec"].get("volumeAttributesClassName")
    return told | ({"currentVolumeAttributesClassName": attributes} if attributes else {})


def claim_status(claim: Tree, told: Tree) -> tuple[Action, ...]:
    if same(claim.get("status"), told):
        return ()
    body = {**claim, "status": told}
    return (Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body, subresource="status"),)


def unbound_status(claim: Tree, name: str) -> tuple[Action, ...]:
    """Pending or Lost: it has nothing of a volume."""
    old = claim.get("status") or {}
    kept = {field: value for field, value in old.items() if field not in ("accessModes", "capacity")}
    return claim_status(claim, {**kept, "phase": name})


def phase(volume: Tree, name: str, message: str = "") -> tuple[Action, ...]:
    old = volume.get("status") or {}
    if (old.get("phase"), old.get("message") or "") == (name, message):
        return ()
    told = {field: value for field, value in old.items() if field != "message"} | {"phase": name}
    body = {**volume, "status": told | ({"message": message} if message else {})}
    return (Update(resource=PERSISTENT_VOLUMES, body=body, subresource="status"),)


def unbind(volume: Tree) -> tuple[Action, ...]:
    """Take back what this controller did; the wish of whoever made the volume stays."""
    if is_by_controller(volume):
        spec = {field: value for field, value in volume["spec"].items() if field != "claimRef"}
        freed = meta.with_annotations({**volume, "spec": spec}, {ANNOTATION_PV_BOUND_BY_CONTROLLER: None})
    else:
        kept = ("uid", "resourceVersion")
        wish = {field: value for field, value in volume["spec"]["claimRef"].items() if field not in kept}
        freed = meta.with_value(volume, ("spec", "claimRef"), wish)
    return (Update(resource=PERSISTENT_VOLUMES, body=freed),)
