"""The status of a CloneSet: counted on what was seen, never on what was just done."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.kinds import CLONE_SETS
from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.kruise.cloneset import progress
from mockube.controller_manager.controllers.kruise.cloneset.state import CloneSetState
from mockube.controller_manager.workloads.inplace.update import is_in_service


class Failure(NamedTuple):
    """What could not be done: `FailedScale` or `FailedUpdate`, and why."""

    type: str
    message: str


def of(state: CloneSetState, collision_count: int, failure: Failure | None) -> dict[str, Any]:
    """A failure condition stays until another replaces it: upstream never removes it."""
    status = {**_revisions(state), **_counts(state), "collisionCount": collision_count}
    present: list[ReadOnlyTree] = [*conditions.of(state.owner.object)]
    new_conditions = [progress.condition(state.owner, status, state.now)]
    if failure is not None:
        new_conditions.append({"type": failure.type, "status": "True", "message": failure.message})
    for condition in new_conditions:
        if condition is not None:
            present = conditions.set_condition(present, condition, state.now)
    return {**status, **({"conditions": present} if present else {})}


def _revisions(state: CloneSetState) -> dict[str, Any]:
    """When all pods have the update revision it becomes the current one, whether they are ready or not."""
    replicas = state.owner.limits.replicas
    is_done = all(map(state.is_updated, state.pods)) and len(state.pods) == replicas
    return {
        "observedGeneration": meta.generation(state.owner.object),
        "currentRevision": state.update_name if is_done else state.current_name,
        "updateRevision": state.update_name,
        "expectedUpdatedReplicas": replicas - state.owner.limits.partition,
        "labelSelector": str(state.owner.selector),
    }


def _counts(state: CloneSetState) -> dict[str, int]:
    ready = [pod for pod in state.pods if is_in_service(pod, 0, state.now)]
    available = [pod for pod in ready if state.is_available(pod)]
    return {
        "replicas": len(state.pods),
        "readyReplicas": len(ready),
        "availableReplicas": len(available),
        "updatedReplicas": sum(map(state.is_updated, state.pods)),
        "updatedReadyReplicas": sum(map(state.is_updated, ready)),
        "updatedAvailableReplicas": sum(map(state.is_updated, available)),
    }


def status_update(state: CloneSetState, new: ReadOnlyTree) -> tuple[Update, ...]:
    """Write the status if it differs."""
    old = state.owner.status
    if _is_same_status(old, new):
        return ()
    body = {**state.owner.object, "status": {**old, **new}}
    return (Update(resource=CLONE_SETS, body=body, subresource="status"),)


def _is_same_status(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    """A count of 0 may be left out. A repeated failure with another message is no change."""
    return _news(old) == _news(new) and all(
        (old.get(field) or 0) == value for field, value in new.items() if field != "conditions"
    )


def _news(status: ReadOnlyTree) -> Sequence[tuple[Any, ...]]:
    fields = ("type", "status", "reason", "lastUpdateTime")
    return [tuple(condition.get(field) for field in fields) for condition in status.get("conditions") or ()]
