"""What a Deployment says of itself: the sums over its ReplicaSets, and its conditions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apimachinery.wellknown import ANNOTATION_REVISION, CONDITION_REPLICA_FAILURE
from controller_manager.controllers.deployment import conditions, progress
from controller_manager.controllers.deployment.conditions import Conditions
from controller_manager.controllers.deployment.observe import Scene
from controller_manager.controllers.deployment.views import DeploymentView, SetView
from controller_manager.kinds import DEPLOYMENTS
from controller_manager.runtime.actions import Update
from controller_manager.runtime.resource import Tree

_COUNTS: Final = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
)


def scaled_status(scene: Scene, told: Conditions, now: datetime) -> Tree:
    """The status while nothing is rolled: of how it gets on nothing is said."""
    counts = _counts(scene)
    return _status(scene, counts, _with_availability(scene, counts, told, now))


def rolled_status(scene: Scene, told: Conditions, now: datetime) -> Tree:
    counts = _counts(scene)
    said = _with_availability(scene, counts, told, now)
    said = progress.judged(scene.deployment, scene.new, counts, said, now)
    failure = conditions.replica_failure((*([scene.new] if scene.new else []), *scene.olds))
    if failure is None:
        return _status(scene, counts, conditions.without(said, CONDITION_REPLICA_FAILURE))
    return _status(scene, counts, conditions.with_condition(said, failure))


def _counts(scene: Scene) -> dict[str, int]:
    available = sum(it.available for it in scene.sets)
    return {
        "observedGeneration": meta.generation(scene.deployment.object),
        "replicas": sum(it.reported for it in scene.sets),
        "updatedReplicas": scene.new.reported if scene.new else 0,
        "readyReplicas": sum(it.ready for it in scene.sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(it.replicas for it in scene.sets) - available, 0),
    }


def _with_availability(scene: Scene, counts: Tree, told: Conditions, now: datetime) -> Conditions:
    enough = counts["availableReplicas"] >= scene.deployment.min_available
    return conditions.with_condition(told, conditions.available(is_available=enough, now=now))


def _status(scene: Scene, counts: Tree, said: Conditions) -> Tree:
    """In the order of the API's fields, without what is none."""
    terminating = _terminating(scene.sets)
    collisions = scene.deployment.status.get("collisionCount")
    fields: dict[str, Any] = {
        **{field: counts[field] or None for field in _COUNTS},
        "terminatingReplicas": terminating,
        "conditions": list(said) or None,
        "collisionCount": collisions,
    }
    return {field: value for field, value in fields.items() if value is not None}


def _terminating(sets: Sequence[SetView]) -> int | None:
    """None if one of the sets does not count them: half a sum would be a wrong one."""
    counted = [it.terminating for it in sets if it.terminating is not None]
    return sum(counted) if len(counted) == len(sets) else None


def written(deployment: DeploymentView, status: Tree, revision: str = "") -> tuple[Update, ...]:
    """The write of the status, and with it of the revision; none if both say nothing new."""
    annotated = meta.annotations(deployment.object).get(ANNOTATION_REVISION, "")
    is_numbered = not revision or revision == annotated
    if is_numbered and _normal(status) == _normal(deployment.status):
        return ()
    body = {**deployment.object, "status": _normal(status)}
    if not is_numbered:
        body = meta.with_annotations(body, {ANNOTATION_REVISION: revision})
    return (Update(resource=DEPLOYMENTS, body=body, subresource="status"),)


def _normal(status: Tree) -> Tree:
    """Without the counts and lists that say nothing, which a server may keep."""
    return {field: value for field, value in status.items() if value or field not in (*_COUNTS, "conditions")}
