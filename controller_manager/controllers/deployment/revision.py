"""The ReplicaSet of a version: its name, its annotations, and its number in the history."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.names import SUBDOMAIN_MAX_LENGTH
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_LAST_APPLIED,
    ANNOTATION_MAX_REPLICAS,
    ANNOTATION_REVISION,
    ANNOTATION_REVISION_HISTORY,
    LABEL_POD_TEMPLATE_HASH,
)
from mockube.controller_manager.client.kinds import REPLICA_SETS
from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.deployment.state import DeploymentView, SetView, revision_of
from mockube.controller_manager.workloads.template_hash import template_hash

ANNOTATION_ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"

OWN_ANNOTATIONS: Final = frozenset(
    {
        ANNOTATION_LAST_APPLIED,
        ANNOTATION_REVISION,
        ANNOTATION_REVISION_HISTORY,
        ANNOTATION_DESIRED_REPLICAS,
        ANNOTATION_MAX_REPLICAS,
        ANNOTATION_ROLLBACK_TO,
    }
)
"""Annotations that are not copied between a Deployment and its sets."""

_HISTORY_LENGTH: Final = 2000
"""Of the list of past revisions, in characters: about a hundred."""


def max_revision(sets: Iterable[SetView]) -> int:
    return max((replica_set.revision for replica_set in sets), default=0)


# --- a set that is there


def sync_new_replica_set(
    deployment: DeploymentView, new: SetView, old_sets: Iterable[SetView]
) -> Update | None:
    """What brings the set of the Deployment's template up to it: the newest revision, its annotations, its readiness."""
    annotations = _annotations(deployment, new.object, max_revision(old_sets) + 1)
    is_as_ready = (new.object["spec"].get("minReadySeconds") or 0) == deployment.min_ready_seconds
    if annotations == meta.annotations(new.object) and is_as_ready:
        return None
    body = meta.with_annotations(new.object, annotations)
    if not is_as_ready:
        body["spec"] = {**body["spec"], "minReadySeconds": deployment.min_ready_seconds}
    return Update(resource=REPLICA_SETS, body=body)


def _annotations(deployment: DeploymentView, replica_set: ReadOnlyTree, revision: int) -> Mapping[str, str]:
    """The set's annotations with the Deployment's. A revision number never decreases, and former ones are kept in the history."""
    present = meta.annotations(replica_set)
    passed = present.get(ANNOTATION_REVISION, "")
    if passed and str(revision_of(replica_set)) != passed:
        return present  # a user wrote what is no number: the set's revision is unknown
    annotations = {**present, **_passed_on(deployment.object)}
    if revision_of(replica_set) >= revision:
        return annotations
    annotations[ANNOTATION_REVISION] = str(revision)
    if passed:
        annotations[ANNOTATION_REVISION_HISTORY] = _history(
            present.get(ANNOTATION_REVISION_HISTORY, ""), passed
        )
    return annotations


def _passed_on(deployment: ReadOnlyTree) -> Mapping[str, str]:
    return {key: value for key, value in meta.annotations(deployment).items() if key not in OWN_ANNOTATIONS}


def _history(past: str, revision: str) -> str:
    """With one more at the end, and without the first ones if it grows too long."""
    revisions = [*past.split(","), revision] if past else [revision]
    while len(",".join(revisions)) > _HISTORY_LENGTH and len(revisions) > 1:
        revisions.pop(0)
    return ",".join(revisions)


# --- a set that is to be


def name_of_new(deployment: DeploymentView, hashed: str) -> str:
    max_prefix = SUBDOMAIN_MAX_LENGTH - len(hashed) - 1
    return f"{deployment.name[:max_prefix]}-{hashed}"


def hash_of_new(deployment: DeploymentView) -> str:
    return template_hash(deployment.template, deployment.status.get("collisionCount"))


def new_replica_set(deployment: DeploymentView, hashed: str, replicas: int, revision: int) -> ReadOnlyTree:
    """The ReplicaSet of the Deployment's template. The same again after a failure, so that it is never made twice."""
    hash_label = {LABEL_POD_TEMPLATE_HASH: hashed}
    template = meta.with_labels(deployment.template, {**hash_label})
    selector = deployment.spec.get("selector") or {}
    annotations = {
        **_passed_on(deployment.object),
        ANNOTATION_REVISION: str(revision),
        **size_annotations(deployment),
    }
    return {
        "kind": REPLICA_SETS.kind,
        "apiVersion": REPLICA_SETS.api_version,
        "metadata": {
            "name": name_of_new(deployment, hashed),
            "namespace": meta.namespace(deployment.object),
            "labels": meta.labels(template),
            "annotations": annotations,
            "ownerReferences": [meta.controller_reference(deployment.object)],
        },
        "spec": _spec(deployment, template, replicas)
        | {"selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **hash_label}}},
    }


def _spec(deployment: DeploymentView, template: ReadOnlyTree, replicas: int) -> dict[str, Any]:
    waiting = {"minReadySeconds": deployment.min_ready_seconds} if deployment.min_ready_seconds else {}
    return {"replicas": replicas, **waiting, "template": template}


def size_annotations(deployment: DeploymentView) -> Mapping[str, str]:
    """The annotations of a set with its Deployment's size, by which a later scaling of the Deployment is recognised."""
    return {
        ANNOTATION_DESIRED_REPLICAS: str(deployment.replicas),
        ANNOTATION_MAX_REPLICAS: str(deployment.max_replicas),
    }
