"""The status of a StatefulSet, and the actions that create and delete its pods, with their Events."""

from collections.abc import Collection, Sequence
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.podview import RUNNING, PodView
from mockube.controller_manager.control.actions import Action, Create, Delete, EventTemplate, ObjectRef

from . import identity
from .spec import SetView
from .state import StatefulSetState


def creation(owner: SetView, bodies: Sequence[ReadOnlyTree]) -> tuple[Action, ...]:
    if not bodies:
        return ()
    return (Create(resource=kinds.PODS, bodies=tuple(bodies), event=event_template(owner, "create")),)


def deletion(owner: SetView, pods: Sequence[PodView]) -> tuple[Action, ...]:
    if not pods:
        return ()
    refs = tuple(ObjectRef(pod.key, pod.uid) for pod in pods)
    return (Delete(resource=kinds.PODS, objects=refs, event=event_template(owner, "delete")),)


def event_template(owner: SetView, verb: str) -> EventTemplate:
    subject = f"{owner.event_verb(verb)} Pod {{name}} in StatefulSet {owner.key.name}"
    return EventTemplate(
        about=owner.object,
        on_success=(f"Successful{verb.title()}", f"{subject} successful"),
        on_failure=(f"Failed{verb.title()}", f"{subject} failed error: {{error}}"),
    )


def count_pods(
    state: StatefulSetState, collision_count: int, replaced: Collection[PodView]
) -> dict[str, Any]:
    """Return the status fields that count pods. Pods that are about to be replaced count for no revision."""
    pods = state.pods
    ready = ready_pods(pods)
    pod_revisions = [identity.revision_of(pod) for pod in pods if not pod.deleting and pod not in replaced]
    return {
        "observedGeneration": meta.generation(state.owner.object),
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(map(state.is_available, ready)),
        "currentReplicas": pod_revisions.count(state.current_name),
        "updatedReplicas": pod_revisions.count(state.update_name),
        "currentRevision": state.current_name,
        "updateRevision": state.update_name,
        "collisionCount": collision_count,
    }


def ready_pods(pods: Collection[PodView]) -> list[PodView]:
    return [pod for pod in pods if pod.phase == RUNNING and pod.is_ready]


def complete_update(status: dict[str, Any], replicas: int) -> dict[str, Any]:
    """Return the status with the update revision as the current one if all `replicas` pods are ready and updated."""
    if not is_complete(status, replicas):
        return status
    return {
        **status,
        "currentReplicas": status["updatedReplicas"],
        "currentRevision": status["updateRevision"],
    }


def is_complete(status: ReadOnlyTree, replicas: int) -> bool:
    counts = (status["replicas"], status["readyReplicas"], status["updatedReplicas"])
    return counts == (replicas,) * 3
