"""The status of a StatefulSet, counted from what was observed; and its actions on pods with their Events."""

from collections.abc import Collection, Sequence
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client import kinds
from mockube.controller_manager.client.podview import RUNNING, PodView
from mockube.controller_manager.control.actions import Action, Create, Delete, EventTemplate, ObjectRef
from mockube.controller_manager.workloads.stateful import identity
from mockube.controller_manager.workloads.stateful.spec import SetView
from mockube.controller_manager.workloads.stateful.state import StatefulSetState


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
        done=(f"Successful{verb.title()}", f"{subject} successful"),
        failed=(f"Failed{verb.title()}", f"{subject} failed error: {{error}}"),
    )


def count_pods(
    state: StatefulSetState, collision_count: int, replaced: Collection[PodView]
) -> dict[str, Any]:
    """The pods that are about to be replaced no longer count to any revision."""
    pods = state.pods
    seen = ready_pods(pods)
    staying = [identity.revision_of(pod) for pod in pods if not pod.deleting and pod not in replaced]
    return {
        "observedGeneration": meta.generation(state.owner.object),
        "replicas": len(pods),
        "readyReplicas": len(seen),
        "availableReplicas": sum(map(state.is_available, seen)),
        "currentReplicas": staying.count(state.current_name),
        "updatedReplicas": staying.count(state.update_name),
        "currentRevision": state.current_name,
        "updateRevision": state.update_name,
        "collisionCount": collision_count,
    }


def ready_pods(pods: Collection[PodView]) -> list[PodView]:
    return [pod for pod in pods if pod.phase == RUNNING and pod.is_ready]


def complete_update(status: dict[str, Any], replicas: int) -> dict[str, Any]:
    """If so many pods, and all that there are, are ready and of the newest revision, it becomes the current one."""
    counts = (status["replicas"], status["readyReplicas"], status["updatedReplicas"])
    if counts != (replicas,) * 3:
        return status
    return {
        **status,
        "currentReplicas": status["updatedReplicas"],
        "currentRevision": status["updateRevision"],
    }
