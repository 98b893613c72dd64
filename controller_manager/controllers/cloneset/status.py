"""The status of a CloneSet: counted on what was seen, never on what was just done."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from apimachinery import conditions, meta
from controller_manager.controllers.cloneset import progress
from controller_manager.controllers.cloneset.scene import Scene
from controller_manager.kinds import CLONE_SETS
from controller_manager.runtime.actions import Update
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.inplace.update import is_in_service


class Failure(NamedTuple):
    """What could not be done: `FailedScale` or `FailedUpdate`, and why."""

    type: str
    message: str


def of(scene: Scene, collision_count: int, failure: Failure | None) -> dict[str, Any]:
    """A failure is told until another is: upstream never takes it back."""
    status = {**_revisions(scene), **_counts(scene), "collisionCount": collision_count}
    said: list[Tree] = [*conditions.of(scene.owner.object)]
    wanted = [progress.condition(scene.owner, status, scene.now)]
    if failure is not None:
        wanted.append({"type": failure.type, "status": "True", "message": failure.message})
    for condition in wanted:
        if condition is not None:
            said = conditions.updated(said, condition, scene.now)
    return {**status, **({"conditions": said} if said else {})}


def _revisions(scene: Scene) -> dict[str, Any]:
    """Once all pods are of the update revision it is the current one, be they ready or not."""
    replicas = scene.owner.limits.replicas
    is_done = all(map(scene.is_updated, scene.pods)) and len(scene.pods) == replicas
    return {
        "observedGeneration": meta.generation(scene.owner.object),
        "currentRevision": scene.update_name if is_done else scene.current_name,
        "updateRevision": scene.update_name,
        "expectedUpdatedReplicas": replicas - scene.owner.limits.partition,
        "labelSelector": str(scene.owner.selector),
    }


def _counts(scene: Scene) -> dict[str, int]:
    ready = [pod for pod in scene.pods if is_in_service(pod, 0, scene.now)]
    available = [pod for pod in ready if scene.is_available(pod)]
    return {
        "replicas": len(scene.pods),
        "readyReplicas": len(ready),
        "availableReplicas": len(available),
        "updatedReplicas": sum(map(scene.is_updated, scene.pods)),
        "updatedReadyReplicas": sum(map(scene.is_updated, ready)),
        "updatedAvailableReplicas": sum(map(scene.is_updated, available)),
    }


def told(scene: Scene, new: Tree) -> tuple[Update, ...]:
    """The write of it, if it says anything new."""
    old = scene.owner.status
    if _says_the_same(old, new):
        return ()
    body = {**scene.owner.object, "status": {**old, **new}}
    return (Update(resource=CLONE_SETS, body=body, subresource="status"),)


def _says_the_same(old: Tree, new: Tree) -> bool:
    """A count of 0 may be left out. The words of a failure that comes again are no news."""
    return _news(old) == _news(new) and all(
        (old.get(field) or 0) == value for field, value in new.items() if field != "conditions"
    )


def _news(status: Tree) -> Sequence[tuple[Any, ...]]:
    fields = ("type", "status", "reason", "lastUpdateTime")
    return [tuple(said.get(field) for field in fields) for said in status.get("conditions") or ()]
