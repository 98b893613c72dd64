"""The PersistentVolumeClaims of a CloneSet's pods: creation with a pod, reuse after a pod was lost, and cleanup."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.volumes import claim_from_template
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import Action, Create, Delete, EventTemplate, Update
from mockube.controller_manager.workloads.ownership import object_ref
from mockube.controller_manager.workloads.revisions import hash_of

from .spec import CloneSetView

LABEL_INSTANCE: Final = "apps.kruise.io/cloneset-instance-id"
ANNOTATION_CLAIMS_HASH: Final = "kruise.io/cloneset-volumeclaimtemplate-hash"
"""The hash of the claim templates, on a ControllerRevision: pods with other claims are not updated to it in place."""


def instance_of(obj: ReadOnlyTree) -> str:
    return meta.labels(obj).get(LABEL_INSTANCE, "")


def claims_hash(owner: CloneSetView) -> str:
    """Return the hash of the claim templates, which ignores their order; empty without templates."""
    if not owner.claim_templates:
        return ""
    templates = sorted(
        (
            {"name": meta.name(template), "spec": template.get("spec") or {}}
            for template in owner.claim_templates
        ),
        key=lambda template: orjson.dumps(template, option=orjson.OPT_SORT_KEYS),
    )
    return hash_of({"claims": templates}, 0)


def has_same_claims(first: ReadOnlyTree, other: ReadOnlyTree) -> bool:
    """Return whether two revisions have the same claim templates; a revision without a hash matches any."""
    hashes = [meta.annotations(revision).get(ANNOTATION_CLAIMS_HASH) for revision in (first, other)]
    return None in hashes or hashes[0] == hashes[1]


# --- creation with a pod


def _claim_name(owner: CloneSetView, template: ReadOnlyTree, instance: str) -> str:
    return f"{meta.name(template)}-{owner.key.name}-{instance}"


def claims_by_template(owner: CloneSetView, instance: str) -> dict[str, str]:
    """Return the names of the claims of a pod, by the name of their template."""
    return {meta.name(template): _claim_name(owner, template, instance) for template in owner.claim_templates}


def create_missing(
    owner: CloneSetView, instances: Iterable[str], claims: Iterable[ReadOnlyTree]
) -> tuple[Action, ...]:
    """Create the missing claims of new pods."""
    present = {meta.name(claim) for claim in claims}
    bodies = tuple(
        _new_claim(owner, template, instance)
        for instance in instances
        for template in owner.claim_templates
        if _claim_name(owner, template, instance) not in present
    )
    if not bodies:
        return ()
    event = EventTemplate(
        about=owner.object, on_failure=("FailedCreate", "failed to create pvc: {error}, pvc: {name}")
    )
    return (Create(resource=PERSISTENT_VOLUME_CLAIMS, bodies=bodies, event=event),)


def _new_claim(owner: CloneSetView, template: ReadOnlyTree, instance: str) -> dict[str, Any]:
    return claim_from_template(
        template,
        owner.object,
        _claim_name(owner, template, instance),
        {LABEL_INSTANCE: instance},
        ownerReferences=[meta.controller_reference(owner.object)],
    )


# --- deletion and cleanup


def deletion(
    owner: CloneSetView, pods: Iterable[PodView], claims: Iterable[ReadOnlyTree]
) -> tuple[Action, ...]:
    """Delete the claims of pods that the controller deletes."""
    instances = {instance_of(pod.object) for pod in pods} - {""}
    owned_claims = [claim for claim in claims if instance_of(claim) in instances]
    return _deletion(owner, owned_claims, "failed to delete pvc {name}: {error}")


def cleanup(
    owner: CloneSetView, pods: Sequence[PodView], claims: Iterable[ReadOnlyTree]
) -> tuple[Action, ...]:
    """Clean up claims that are not reused.

    The claim of a pod that ended or is being deleted gets the pod as its owner; a claim without a pod is deleted.
    """
    by_instance: Mapping[str, PodView] = {instance_of(pod.object): pod for pod in pods}
    claim_pods = [(claim, by_instance.get(instance_of(claim))) for claim in claims]
    owner_changes = tuple(
        _with_pod_as_owner(owner, claim, pod)
        for claim, pod in claim_pods
        if pod is not None and not pod.is_active
    )
    lost = [claim for claim, pod in claim_pods if pod is None]
    return (*owner_changes, *_deletion(owner, lost, "failed to clean up PVC {name}: {error}"))


def _with_pod_as_owner(owner: CloneSetView, claim: ReadOnlyTree, pod: PodView) -> Update:
    others = [ref for ref in meta.owner_references(claim) if ref["uid"] != owner.uid]
    body = meta.with_metadata(claim, ownerReferences=[*others, meta.controller_reference(pod.object)])
    event = EventTemplate(
        about=owner.object, on_failure=("FailedUpdate", "failed to update PVC {name}: {error}")
    )
    return Update(resource=PERSISTENT_VOLUME_CLAIMS, body=body, event=event)


def _deletion(owner: CloneSetView, claims: Collection[ReadOnlyTree], failed: str) -> tuple[Action, ...]:
    if not claims:
        return ()
    refs = tuple(object_ref(PERSISTENT_VOLUME_CLAIMS, claim) for claim in claims)
    event = EventTemplate(about=owner.object, on_failure=("FailedDelete", failed))
    return (Delete(resource=PERSISTENT_VOLUME_CLAIMS, objects=refs, event=event),)
