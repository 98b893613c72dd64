"""The claims of a StatefulSet's pods: their creation from templates, and their owners by the retention_actions policy."""

from collections.abc import Mapping
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.component_helpers.volumes import claim_from_template
from mockube.client.podview import PodView
from mockube.client.resources import AnyResource
from mockube.controller_manager.control.actions import Action, Create, EventTemplate, RecordEvent, Update

from .spec import SetView

Claims = Mapping[str, ReadOnlyTree]
"""The claims that exist, by name."""

_CONFLICTING_CONTROLLER: Final = (
    "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
    "the retention policy is ignored for this claim"
)


def claim_names(owner: SetView, ordinal: int) -> list[str]:
    return [claim_name(owner, template, ordinal) for template in owner.claim_templates]


def claims_by_template(owner: SetView, ordinal: int) -> dict[str, str]:
    """Return the names of the claims of a pod, by the name of their template."""
    return {meta.name(template): claim_name(owner, template, ordinal) for template in owner.claim_templates}


def claim_name(owner: SetView, template: ReadOnlyTree, ordinal: int) -> str:
    return f"{meta.name(template)}-{owner.key.name}-{ordinal}"


def is_claim_of(owner: ReadOnlyTree, name: str) -> bool:
    """Return whether a claim has the name of a claim of the set, for any ordinal."""
    parent, _, ordinal = name.rpartition("-")
    templates = owner["spec"].get("volumeClaimTemplates") or ()
    return ordinal.isdecimal() and parent in {
        f"{meta.name(template)}-{meta.name(owner)}" for template in templates
    }


def matches(owner: SetView, ordinal: int, pod: PodView) -> bool:
    if not owner.claim_templates:
        return True
    present = {
        volume["name"]: (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in (pod.object.get("spec") or {}).get("volumes") or ()
    }
    return all(
        present.get(meta.name(template)) == claim_name(owner, template, ordinal)
        for template in owner.claim_templates
    )


# --- claims


def create_missing(owner: SetView, ordinal: int, claims: Claims) -> tuple[Action, ...]:
    """Return the creation of one pod's missing claims."""
    bodies = tuple(
        claim_from_template(template, owner.object, name, {})
        for template in owner.claim_templates
        if (name := claim_name(owner, template, ordinal)) not in claims
    )
    if not bodies:
        return ()
    pod = f"Pod {owner.key.name}-{ordinal} in StatefulSet {owner.key.name}"
    create = owner.event_verb("create")
    event = EventTemplate(
        about=owner.object,
        on_success=("SuccessfulCreate", f"{create} Claim {{name}} {pod} success"),
        on_failure=("FailedCreate", f"{create} Claim {{name}} for {pod} failed error: {{error}}"),
    )
    return (Create(resource=kinds.PERSISTENT_VOLUME_CLAIMS, bodies=bodies, event=event),)


def terminating_claim(owner: SetView, ordinal: int, claims: Claims) -> str:
    """Return the name of a claim of this ordinal that is being deleted, which delays the new pod; "" if there is none."""
    names = claim_names(owner, ordinal)
    return next((name for name in names if name in claims and meta.is_deleting(claims[name])), "")


def is_stale(owner: SetView, ordinal: int, claims: Claims) -> bool:
    """Return whether the previous pod of this ordinal still owns a claim, which must be deleted before the new pod."""
    if not owner.deletes_claims_when_scaled:
        return False
    pod = f"{owner.key.name}-{ordinal}"
    present = (claims[name] for name in claim_names(owner, ordinal) if name in claims)
    return any(_refers_to(kinds.PODS, pod, ref) for claim in present for ref in meta.owner_references(claim))


# --- the owners of claims


def retention_actions(owner: SetView, pod: PodView, ordinal: int, claims: Claims) -> tuple[Action, ...]:
    """Return the updates that set the owner of a pod's claims by the retention policy: the pod, the set or none."""
    actions: list[Action] = []
    for name in claim_names(owner, ordinal):
        claim = claims.get(name)
        if claim is None:
            continue
        owners = _owners(owner, pod, ordinal, claim)
        if _by_uid(owners) == _by_uid(meta.owner_references(claim)):
            continue
        if _has_other_controller(owner, pod, claim):
            message = _CONFLICTING_CONTROLLER.format(name=name)
            actions.append(_warning(owner, message))
        body = meta.with_metadata(claim, ownerReferences=owners)
        actions.append(Update(resource=kinds.PERSISTENT_VOLUME_CLAIMS, body=body))
    return tuple(actions)


def _warning(owner: SetView, message: str) -> RecordEvent:
    return RecordEvent(about=owner.object, type="Warning", reason="ConflictingController", message=message)


def _owners(owner: SetView, pod: PodView, ordinal: int, claim: ReadOnlyTree) -> list[ReadOnlyTree]:
    """Return the desired owners of a claim. They do not change while an earlier set or pod of the name owns the claim."""
    refs = meta.owner_references(claim)
    own_refs = [ref for ref in refs if _is_own_reference(owner, pod, ref)]
    if any(ref["uid"] not in (owner.uid, pod.uid) for ref in own_refs):
        return [*refs]
    others = [ref for ref in refs if ref not in own_refs]
    if _has_other_controller(owner, pod, claim):
        return others
    return [*others, *_retention_owners(owner, pod, ordinal)]


def _retention_owners(owner: SetView, pod: PodView, ordinal: int) -> list[ReadOnlyTree]:
    if owner.deletes_claims_when_scaled and ordinal not in owner.ordinals:
        return [_reference(owner, pod.object)]
    return [_reference(owner, owner.object)] if owner.deletes_claims_when_deleted else []


def _reference(owner: SetView, obj: ReadOnlyTree) -> ReadOnlyTree:
    reference = meta.controller_reference(obj)
    if owner.controls_claims:
        return reference
    return {field: reference[field] for field in ("apiVersion", "kind", "name", "uid")}


def _has_other_controller(owner: SetView, pod: PodView, claim: ReadOnlyTree) -> bool:
    if not (
        owner.controls_claims and (owner.deletes_claims_when_scaled or owner.deletes_claims_when_deleted)
    ):
        return False
    refs = meta.owner_references(claim)
    return any(ref.get("controller") is True and not _is_own_reference(owner, pod, ref) for ref in refs)


def _is_own_reference(owner: SetView, pod: PodView, ref: ReadOnlyTree) -> bool:
    is_set = _refers_to(owner.resource, owner.key.name, ref)
    return is_set or _refers_to(kinds.PODS, pod.key.name, ref)


def _refers_to(resource: AnyResource, name: str, ref: ReadOnlyTree) -> bool:
    return (ref["apiVersion"], ref["kind"], ref["name"]) == (resource.api_version, resource.kind, name)


def _by_uid(refs: Any) -> dict[str, ReadOnlyTree]:
    return {ref["uid"]: ref for ref in refs}
