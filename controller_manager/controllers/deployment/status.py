"""The status of a Deployment: the sums over its ReplicaSets, and its conditions."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_REVISION, CONDITION_REPLICA_FAILURE
from mockube.controller_manager.client.kinds import DEPLOYMENTS
from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.deployment import conditions, progress
from mockube.controller_manager.controllers.deployment.conditions import Conditions
from mockube.controller_manager.controllers.deployment.observe import DeploymentState
from mockube.controller_manager.controllers.deployment.state import DeploymentView, SetView

_COUNTS: Final = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
)


def status_while_scaling(state: DeploymentState, present: Conditions, now: datetime) -> ReadOnlyTree:
    """The status while nothing is rolled, without a change of the progress condition."""
    counts = _counts(state)
    return _status(state, counts, _with_availability(state, counts, present, now))


def status_while_rolling(state: DeploymentState, present: Conditions, now: datetime) -> ReadOnlyTree:
    counts = _counts(state)
    new_conditions = _with_availability(state, counts, present, now)
    new_conditions = progress.progress_conditions(state.deployment, state.new, counts, new_conditions, now)
    failure = conditions.replica_failure((*([state.new] if state.new else []), *state.old_sets))
    if failure is None:
        return _status(state, counts, conditions.without(new_conditions, CONDITION_REPLICA_FAILURE))
    return _status(state, counts, conditions.with_condition(new_conditions, failure))


def _counts(state: DeploymentState) -> dict[str, int]:
    available = sum(replica_set.available for replica_set in state.sets)
    return {
        "observedGeneration": meta.generation(state.deployment.object),
        "replicas": sum(replica_set.reported for replica_set in state.sets),
        "updatedReplicas": state.new.reported if state.new else 0,
        "readyReplicas": sum(replica_set.ready for replica_set in state.sets),
        "availableReplicas": available,
        "unavailableReplicas": max(sum(replica_set.replicas for replica_set in state.sets) - available, 0),
    }


def _with_availability(
    state: DeploymentState, counts: ReadOnlyTree, present: Conditions, now: datetime
) -> Conditions:
    enough = counts["availableReplicas"] >= state.deployment.min_available
    return conditions.with_condition(present, conditions.available(is_available=enough, now=now))


def _status(state: DeploymentState, counts: ReadOnlyTree, new_conditions: Conditions) -> ReadOnlyTree:
    """In the order of the API's fields, without absent ones."""
    terminating = _terminating(state.sets)
    collisions = state.deployment.status.get("collisionCount")
    fields: dict[str, Any] = {
        **{field: counts[field] or None for field in _COUNTS},
        "terminatingReplicas": terminating,
        "conditions": list(new_conditions) or None,
        "collisionCount": collisions,
    }
    return {field: value for field, value in fields.items() if value is not None}


def _terminating(sets: Sequence[SetView]) -> int | None:
    """None if one of the sets does not count them: the sum would be wrong."""
    counted = [replica_set.terminating for replica_set in sets if replica_set.terminating is not None]
    return sum(counted) if len(counted) == len(sets) else None


def write_status(deployment: DeploymentView, status: ReadOnlyTree, revision: str = "") -> tuple[Update, ...]:
    """Write the status and the revision; nothing if neither differs."""
    annotated = meta.annotations(deployment.object).get(ANNOTATION_REVISION, "")
    is_numbered = not revision or revision == annotated
    if is_numbered and _normal(status) == _normal(deployment.status):
        return ()
    body = {**deployment.object, "status": _normal(status)}
    if not is_numbered:
        body = meta.with_annotations(body, {ANNOTATION_REVISION: revision})
    return (Update(resource=DEPLOYMENTS, body=body, subresource="status"),)


def _normal(status: ReadOnlyTree) -> ReadOnlyTree:
    """Without zero counts and empty lists, which a server may return."""
    return {field: value for field, value in status.items() if value or field not in (*_COUNTS, "conditions")}
