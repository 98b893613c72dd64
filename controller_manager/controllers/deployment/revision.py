"""The ReplicaSets of a Deployment's revisions: their creation, annotations and size, the history limit, and rollback.

An annotation requests a rollback; only old clients write it. Today's kubectl writes the former template into the
Deployment itself.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mockube.apimachinery import meta, wellknown
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import DEPLOYMENTS, REPLICA_SETS
from mockube.controller_manager.control.actions import Action, Delete, EventTemplate, RecordEvent, Update
from mockube.controller_manager.workloads.ownership import object_ref
from mockube.controller_manager.workloads.templates import equal_ignoring_hash, without_hash

from .state import DeploymentState, DeploymentView, ReplicaSetView, Sizes, new_set_name, revision_of

_ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"

_NOT_COPIED_ANNOTATIONS: Final = frozenset(
    {
        wellknown.ANNOTATION_LAST_APPLIED,
        wellknown.ANNOTATION_REVISION,
        wellknown.ANNOTATION_REVISION_HISTORY,
        wellknown.ANNOTATION_DESIRED_REPLICAS,
        wellknown.ANNOTATION_MAX_REPLICAS,
        _ROLLBACK_TO,
    }
)
"""The annotations that are not copied between a Deployment and its ReplicaSets."""

_MAX_HISTORY_LENGTH: Final = 2000
"""The maximum length of the list of past revisions, in characters: about a hundred revisions."""

_REVISION_NOT_FOUND: Final = "DeploymentRollbackRevisionNotFound"
_TEMPLATE_UNCHANGED: Final = "DeploymentRollbackTemplateUnchanged"
_ROLLBACK_DONE: Final = "DeploymentRollback"


def max_revision(sets: Iterable[ReplicaSetView]) -> int:
    return max((replica_set.revision for replica_set in sets), default=0)


# --- the ReplicaSet of a new revision


def new_replica_set(
    deployment: DeploymentView, template_hash: str, replicas: int, revision: int
) -> ReadOnlyTree:
    """Return the ReplicaSet of the Deployment's template. A retry returns the same one, so that only one is created."""
    hash_label = {wellknown.LABEL_POD_TEMPLATE_HASH: template_hash}
    template = meta.with_labels(deployment.template, {**hash_label})
    selector = deployment.spec.get("selector") or {}
    annotations = {
        **_copied_annotations(deployment.object),
        wellknown.ANNOTATION_REVISION: str(revision),
        **_size_annotations(deployment),
    }
    return {
        "kind": REPLICA_SETS.kind,
        "apiVersion": REPLICA_SETS.api_version,
        "metadata": {
            "name": new_set_name(deployment, template_hash),
            "namespace": meta.namespace(deployment.object),
            "labels": meta.labels(template),
            "annotations": annotations,
            "ownerReferences": [meta.controller_reference(deployment.object)],
        },
        "spec": _replica_set_spec(deployment, template, replicas)
        | {"selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **hash_label}}},
    }


def _replica_set_spec(deployment: DeploymentView, template: ReadOnlyTree, replicas: int) -> dict[str, Any]:
    optional_fields = (
        {"minReadySeconds": deployment.min_ready_seconds} if deployment.min_ready_seconds else {}
    )
    return {"replicas": replicas, **optional_fields, "template": template}


def _copied_annotations(obj: ReadOnlyTree) -> Mapping[str, str]:
    return {key: value for key, value in meta.annotations(obj).items() if key not in _NOT_COPIED_ANNOTATIONS}


# --- updates of a ReplicaSet


def sync_new_replica_set(
    deployment: DeploymentView, new: ReplicaSetView, old_sets: Iterable[ReplicaSetView]
) -> Update | None:
    """Return the update that writes the newest revision and the Deployment's annotations into the new ReplicaSet.

    It also writes minReadySeconds. None if nothing differs.
    """
    annotations = _new_set_annotations(deployment, new.object, max_revision(old_sets) + 1)
    min_ready_seconds = new.object["spec"].get("minReadySeconds") or 0
    if annotations == meta.annotations(new.object) and min_ready_seconds == deployment.min_ready_seconds:
        return None
    body = meta.with_annotations(new.object, annotations)
    if min_ready_seconds != deployment.min_ready_seconds:
        body["spec"] = {**body["spec"], "minReadySeconds": deployment.min_ready_seconds}
    return Update(resource=REPLICA_SETS, body=body)


def _new_set_annotations(
    deployment: DeploymentView, replica_set: ReadOnlyTree, revision: int
) -> Mapping[str, str]:
    """Return the set's annotations merged with the Deployment's. A revision never decreases; former ones are history."""
    present = meta.annotations(replica_set)
    present_revision = present.get(wellknown.ANNOTATION_REVISION, "")
    if present_revision and str(revision_of(replica_set)) != present_revision:
        return present  # a user replaced the number by another text: the set's revision is unknown
    annotations = {**present, **_copied_annotations(deployment.object)}
    if revision_of(replica_set) >= revision:
        return annotations
    annotations[wellknown.ANNOTATION_REVISION] = str(revision)
    if present_revision:
        history = present.get(wellknown.ANNOTATION_REVISION_HISTORY, "")
        annotations[wellknown.ANNOTATION_REVISION_HISTORY] = _add_to_history(history, present_revision)
    return annotations


def _add_to_history(history: str, revision: str) -> str:
    """Append a revision to the list, and remove the first ones if the list is too long."""
    revisions = [*history.split(","), revision] if history else [revision]
    while len(",".join(revisions)) > _MAX_HISTORY_LENGTH and len(revisions) > 1:
        revisions.pop(0)
    return ",".join(revisions)


def resize_actions(
    deployment: DeploymentView, sets: Iterable[ReplicaSetView], sizes: Sizes
) -> tuple[Update, ...]:
    """Return the updates of the ReplicaSets whose size changes, each with an Event about the Deployment."""
    to_resize = [
        replica_set
        for replica_set in sets
        if sizes.get(replica_set.name, replica_set.replicas) != replica_set.replicas
    ]
    return tuple(_resize(deployment, replica_set, sizes[replica_set.name]) for replica_set in to_resize)


def desired_replicas_actions(
    deployment: DeploymentView, sets: Iterable[ReplicaSetView], sizes: Sizes
) -> tuple[Update, ...]:
    """Return the updates that write the Deployment's replicas into the annotation of ReplicaSets that keep their size."""
    outdated = (
        replica_set
        for replica_set in sets
        if replica_set.desired_annotation not in (None, deployment.replicas)
    )
    return tuple(
        _resize(deployment, replica_set, replica_set.replicas)
        for replica_set in outdated
        if sizes.get(replica_set.name) == replica_set.replicas
    )


def _resize(deployment: DeploymentView, replica_set: ReplicaSetView, size: int) -> Update:
    body = meta.with_annotations(replica_set.object, _size_annotations(deployment))
    body["spec"] = {**replica_set.object["spec"], "replicas": size}
    return Update(resource=REPLICA_SETS, body=body, event=_resize_event(deployment, replica_set, size))


def _size_annotations(deployment: DeploymentView) -> Mapping[str, str]:
    """Return the Deployment's size as annotations of a ReplicaSet; they show later whether the Deployment was scaled."""
    return {
        wellknown.ANNOTATION_DESIRED_REPLICAS: str(deployment.replicas),
        wellknown.ANNOTATION_MAX_REPLICAS: str(deployment.max_replicas),
    }


def _resize_event(deployment: DeploymentView, replica_set: ReplicaSetView, size: int) -> EventTemplate | None:
    if size == replica_set.replicas:
        return None
    direction = "up" if size > replica_set.replicas else "down"
    text = f"Scaled {direction} replica set {replica_set.name} from {replica_set.replicas} to {size}"
    return EventTemplate(about=deployment.object, on_success=(wellknown.REASON_SCALING_REPLICA_SET, text))


# --- the history limit


def replica_sets_to_delete(state: DeploymentState) -> tuple[Delete, ...]:
    """Return the action that deletes the old ReplicaSets beyond the history limit."""
    limit = state.deployment.history_limit
    if limit is None:
        return ()
    oldest_first = sorted(
        (old for old in state.old_sets if not old.deleting), key=lambda old: (old.revision, old.age)
    )
    surplus = oldest_first[: max(len(oldest_first) - limit, 0)]
    refs = tuple(object_ref(REPLICA_SETS, old.object) for old in surplus if _has_no_pods(old))
    return (Delete(resource=REPLICA_SETS, objects=refs),) if refs else ()


def _has_no_pods(old: ReplicaSetView) -> bool:
    return old.replicas == 0 and old.status_replicas == 0 and old.is_observed


# --- rollback


def rollback_revision(deployment: DeploymentView) -> int | None:
    """Return the revision to roll back to, 0 for the previous one; None if no rollback is requested."""
    text = meta.annotations(deployment.object).get(_ROLLBACK_TO, "")
    return int_or_none(text)


def rollback_actions(state: DeploymentState, revision: int) -> tuple[Action, ...]:
    """Return the actions that roll back to a revision: they write its template and annotations into the Deployment.

    The annotation that requests the rollback is removed in any case.
    """
    deployment = state.deployment
    revision = revision or _previous_revision(state)
    if revision == 0:
        return _rollback_failed(deployment, _REVISION_NOT_FOUND, "Unable to find last revision.")
    target = next((replica_set for replica_set in state.sets if replica_set.revision == revision), None)
    if target is None:
        text = "Unable to find the revision to rollback to."
        return _rollback_failed(deployment, _REVISION_NOT_FOUND, text)
    if equal_ignoring_hash(deployment.template, target.object["spec"]["template"]):
        text = f'The rollback revision contains the same template as current deployment "{deployment.name}"'
        return _rollback_failed(deployment, _TEMPLATE_UNCHANGED, text)
    text = f'Rolled back deployment "{deployment.name}" to revision {revision}'
    event = EventTemplate(about=deployment.object, on_success=(_ROLLBACK_DONE, text))
    return (Update(resource=DEPLOYMENTS, body=_rolled_back(deployment, target), event=event),)


def _previous_revision(state: DeploymentState) -> int:
    revisions = sorted((replica_set.revision for replica_set in state.sets), reverse=True)
    return revisions[1] if len(revisions) > 1 else 0


def _rollback_failed(deployment: DeploymentView, reason: str, text: str) -> tuple[Action, ...]:
    body = meta.with_annotations(deployment.object, {_ROLLBACK_TO: None})
    record = RecordEvent(about=deployment.object, type="Warning", reason=reason, message=text)
    return (record, Update(resource=DEPLOYMENTS, body=body))


def _rolled_back(deployment: DeploymentView, target: ReplicaSetView) -> ReadOnlyTree:
    present = meta.annotations(deployment.object).items()
    not_copied = {
        key: value for key, value in present if key in _NOT_COPIED_ANNOTATIONS and key != _ROLLBACK_TO
    }
    annotations = {**not_copied, **_copied_annotations(target.object)}
    body = meta.with_metadata(deployment.object, annotations=annotations)
    template = without_hash(target.object["spec"]["template"])
    return {**body, "spec": {**deployment.spec, "template": template}}
