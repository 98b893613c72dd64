"""The status of a StatefulSet: counted on what was seen, never on what was just done."""

from collections.abc import Collection
from typing import Any

from apimachinery import meta
from controller_manager.controllers.statefulset import identity
from controller_manager.controllers.statefulset.scene import Scene
from controller_manager.workloads.podview import RUNNING, PodView


def of(scene: Scene, collision_count: int, replaced: Collection[PodView]) -> dict[str, Any]:
    """The pods that are about to be replaced no longer count to any revision."""
    pods = scene.pods
    ready = [pod for pod in pods if pod.phase == RUNNING and pod.is_ready]
    staying = [identity.revision_of(pod) for pod in pods if not pod.deleting and pod not in replaced]
    status = {
        "observedGeneration": meta.generation(scene.owner.object),
        "replicas": len(pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(map(scene.is_available, ready)),
        "currentReplicas": staying.count(scene.current_name),
        "updatedReplicas": staying.count(scene.update_name),
        "currentRevision": scene.current_name,
        "updateRevision": scene.update_name,
        "collisionCount": collision_count,
    }
    return status | (_completed(status) if _is_complete(scene, status) else {})


def _is_complete(scene: Scene, status: dict[str, Any]) -> bool:
    counts = (status["replicas"], status["readyReplicas"], status["updatedReplicas"])
    return not scene.owner.on_delete and counts == (scene.owner.replicas,) * 3


def _completed(status: dict[str, Any]) -> dict[str, Any]:
    """All pods are ready and of the newest revision: it becomes the current one."""
    return {"currentReplicas": status["updatedReplicas"], "currentRevision": status["updateRevision"]}
