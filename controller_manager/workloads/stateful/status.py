"""The status of a StatefulSet: counted on what was seen, never on what was just done."""

from collections.abc import Collection
from typing import Any

from apimachinery import meta
from controller_manager.workloads.podview import RUNNING, PodView
from controller_manager.workloads.stateful import identity
from controller_manager.workloads.stateful.scene import Scene


def counted(scene: Scene, collision_count: int, replaced: Collection[PodView]) -> dict[str, Any]:
    """The pods that are about to be replaced no longer count to any revision."""
    pods = scene.pods
    seen = ready(pods)
    staying = [identity.revision_of(pod) for pod in pods if not pod.deleting and pod not in replaced]
    return {
        "observedGeneration": meta.generation(scene.owner.object),
        "replicas": len(pods),
        "readyReplicas": len(seen),
        "availableReplicas": sum(map(scene.is_available, seen)),
        "currentReplicas": staying.count(scene.current_name),
        "updatedReplicas": staying.count(scene.update_name),
        "currentRevision": scene.current_name,
        "updateRevision": scene.update_name,
        "collisionCount": collision_count,
    }


def ready(pods: Collection[PodView]) -> list[PodView]:
    return [pod for pod in pods if pod.phase == RUNNING and pod.is_ready]


def completed(status: dict[str, Any], replicas: int) -> dict[str, Any]:
    """If so many pods, and all that there are, are ready and of the newest revision, it becomes the current one."""
    counts = (status["replicas"], status["readyReplicas"], status["updatedReplicas"])
    if counts != (replicas,) * 3:
        return status
    return {
        **status,
        "currentReplicas": status["updatedReplicas"],
        "currentRevision": status["updateRevision"],
    }
