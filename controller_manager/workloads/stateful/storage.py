"""The storage of a StatefulSet's pods: claims from its templates, and their owners."""

from collections.abc import Mapping
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client import kinds
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import (
    Action,
    AnyResource,
    Create,
    EventTemplate,
    RecordEvent,
    Update,
)
from mockube.controller_manager.workloads.stateful.spec import SetView

Claims = Mapping[str, ReadOnlyTree]
"""The claims that exist, by name."""

_CONFLICTING_CONTROLLER: Final = (
    "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
    "the retention policy is ignored for this claim"
)


def claim_names(owner: SetView, ordinal: int) -> list[str]:
    return [claim_name(owner, template, ordinal) for template in owner.claim_templates]


def claim_name(owner: SetView, template: ReadOnlyTree, ordinal: int) -> str:
    return f"{meta.name(template)}-{owner.key.name}-{ordinal}"


def is_claim_of(owner: ReadOnlyTree, name: str) -> bool:
    """Whether the claim could be one of the set's, whatever its present ordinals."""
    parent, _, ordinal = name.rpartition("-")
    templates = owner["spec"].get("volumeClaimTemplates") or ()
    return ordinal.isdecimal() and parent in {
        f"{meta.name(template)}-{meta.name(owner)}" for template in templates
    }


# --- the pod's side


def volumes(owner: SetView, ordinal: int, spec: ReadOnlyTree) -> dict[str, Any]:
    """The pod's volumes: its claims, and those of the template that have no claim's name."""
    if not owner.claim_templates:
        return {}
    claimed = {
        meta.name(template): {
            "name": meta.name(template),
            "persistentVolumeClaim": {"claimName": claim_name(owner, template, ordinal)},
        }
        for template in owner.claim_templates
    }
    others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claimed]
    return {"volumes": [*claimed.values(), *others]}


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


# --- the claims' side


def create_missing(owner: SetView, ordinal: int, claims: Claims) -> tuple[Action, ...]:
    """Make the claims of one pod that are not there."""
    bodies = tuple(
        _new_claim(owner, template, name)
        for template in owner.claim_templates
        if (name := claim_name(owner, template, ordinal)) not in claims
    )
    if not bodies:
        return ()
    pod = f"Pod {owner.key.name}-{ordinal} in StatefulSet {owner.key.name}"
    create = owner.event_verb("create")
    event = EventTemplate(
        about=owner.object,
        done=("SuccessfulCreate", f"{create} Claim {{name}} {pod} success"),
        failed=("FailedCreate", f"{create} Claim {{name}} for {pod} failed error: {{error}}"),
    )
    return (Create(resource=kinds.PERSISTENT_VOLUME_CLAIMS, bodies=bodies, event=event),)


def _new_claim(owner: SetView, template: ReadOnlyTree, name: str) -> dict[str, Any]:
    selected = (owner.object["spec"].get("selector") or {}).get("matchLabels") or {}
    labels = {**meta.labels(template), **selected}
    named = meta.with_metadata(
        template, name=name, namespace=owner.key.namespace, labels=labels, creationTimestamp=None
    )
    return {
        "kind": kinds.PERSISTENT_VOLUME_CLAIMS.kind,
        "apiVersion": kinds.PERSISTENT_VOLUME_CLAIMS.api_version,
        "metadata": named["metadata"],
        "spec": template.get("spec") or {},
    }


def ending(owner: SetView, ordinal: int, claims: Claims) -> str:
    """The name of a claim of this pod that is being deleted, so that no new pod can have it yet; or nothing."""
    names = claim_names(owner, ordinal)
    return next((name for name in names if name in claims and meta.is_deleting(claims[name])), "")


def is_stale(owner: SetView, ordinal: int, claims: Claims) -> bool:
    """Whether a claim is still owned by the previous pod of the name: it must be deleted before there is a new one."""
    if not owner.claims_go_when_scaled:
        return False
    pod = f"{owner.key.name}-{ordinal}"
    present = (claims[name] for name in claim_names(owner, ordinal) if name in claims)
    return any(_is_about(kinds.PODS, pod, ref) for claim in present for ref in meta.owner_references(claim))


# --- the owners of claims


def retention(owner: SetView, pod: PodView, ordinal: int, claims: Claims) -> tuple[Action, ...]:
    """Set the owner with which the garbage collector deletes this pod's claims: the pod, the set or none."""
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
    """The owners that the claim should have. It is left alone where an earlier set or pod of the name still owns it."""
    refs = meta.owner_references(claim)
    ours = [ref for ref in refs if _is_ours(owner, pod, ref)]
    if any(ref["uid"] not in (owner.uid, pod.uid) for ref in ours):
        return [*refs]
    others = [ref for ref in refs if ref not in ours]
    if _has_other_controller(owner, pod, claim):
        return others
    return [*others, *_going_with(owner, pod, ordinal)]


def _going_with(owner: SetView, pod: PodView, ordinal: int) -> list[ReadOnlyTree]:
    if owner.claims_go_when_scaled and ordinal not in owner.ordinals:
        return [_reference(owner, pod.object)]
    return [_reference(owner, owner.object)] if owner.claims_go_when_deleted else []


def _reference(owner: SetView, of: ReadOnlyTree) -> ReadOnlyTree:
    reference = meta.controller_reference(of)
    if owner.controls_claims:
        return reference
    return {field: reference[field] for field in ("apiVersion", "kind", "name", "uid")}


def _has_other_controller(owner: SetView, pod: PodView, claim: ReadOnlyTree) -> bool:
    if not (owner.controls_claims and (owner.claims_go_when_scaled or owner.claims_go_when_deleted)):
        return False
    refs = meta.owner_references(claim)
    return any(ref.get("controller") is True and not _is_ours(owner, pod, ref) for ref in refs)


def _is_ours(owner: SetView, pod: PodView, ref: ReadOnlyTree) -> bool:
    is_set = _is_about(owner.resource, owner.key.name, ref)
    return is_set or _is_about(kinds.PODS, pod.key.name, ref)


def _is_about(resource: AnyResource, name: str, ref: ReadOnlyTree) -> bool:
    return (ref["apiVersion"], ref["kind"], ref["name"]) == (resource.api_version, resource.kind, name)


def _by_uid(refs: Any) -> dict[str, ReadOnlyTree]:
    return {ref["uid"]: ref for ref in refs}
