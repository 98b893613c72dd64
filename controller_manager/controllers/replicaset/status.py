"""The status of a ReplicaSet: the counts of its pods, and the failure to create or delete some."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import conditions, labels, meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import after, format_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    CONDITION_REPLICA_FAILURE,
    REASON_FAILED_CREATE,
    REASON_FAILED_DELETE,
)
from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.replicaset.plan import Family, ReplicaSetState

_COUNTS: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def status_update(
    state: ReplicaSetState, family: Family, error: ApiError | None, now: datetime
) -> tuple[Update, ...]:
    """Write the status if it differs."""
    old = state.owner.get("status") or {}
    new = _status(state, family, error, now)
    if _is_same_status(old, new):
        return ()
    body = {**state.owner, "status": new}
    return (Update(resource=family.resource, body=body, subresource="status"),)


def next_check(state: ReplicaSetState, now: datetime) -> timedelta | None:
    """When the next pod will have been ready for long enough: nothing in the cluster changes then."""
    if state.min_ready_seconds == 0:
        return None
    wait = span_of(state.min_ready_seconds)
    due = [after(pod.ready_since, wait) - now for pod in state.active if pod.ready_since is not None]
    return min((delay for delay in due if delay > timedelta()), default=None)


def _status(state: ReplicaSetState, family: Family, error: ApiError | None, now: datetime) -> dict[str, Any]:
    fitting = labels.from_set(meta.labels(state.template)).matches
    ready = [pod for pod in state.active if pod.is_ready]
    counts = {
        "replicas": len(state.active),
        "fullyLabeledReplicas": sum(fitting(pod.labels) for pod in state.active),
        "readyReplicas": len(ready),
        "availableReplicas": sum(pod.is_available(state.min_ready_seconds, now) for pod in ready),
    }
    new_conditions = _conditions(state, error, now)
    return {
        **{field: count for field, count in counts.items() if count or field == "replicas"},
        **({"terminatingReplicas": state.terminating} if family.counts_terminating else {}),
        "observedGeneration": meta.generation(state.owner),
        **({"conditions": new_conditions} if new_conditions else {}),
    }


def _conditions(state: ReplicaSetState, error: ApiError | None, now: datetime) -> list[ReadOnlyTree]:
    """The first failure's condition stays until a reconciliation succeeds."""
    present = conditions.of(state.owner)
    others = [condition for condition in present if condition.get("type") != CONDITION_REPLICA_FAILURE]
    if error is None:
        return others
    if conditions.get(state.owner, CONDITION_REPLICA_FAILURE) is not None:
        return list(present)
    failure = {
        "type": CONDITION_REPLICA_FAILURE,
        "status": "True",
        "lastTransitionTime": format_time(now),
        **_failure_reason(state, error),
    }
    return [*others, failure]


def _failure_reason(state: ReplicaSetState, error: ApiError) -> ReadOnlyTree:
    if len(state.active) > state.replicas:
        return {"reason": REASON_FAILED_DELETE, "message": f"unable to delete pods: {error}"}
    return {"reason": REASON_FAILED_CREATE, "message": str(error)}


def _is_same_status(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    """An absent count is 0, except for those that may be absent for another reason."""
    exact = ("terminatingReplicas", "observedGeneration")
    return (
        all((old.get(field) or 0) == (new.get(field) or 0) for field in _COUNTS)
        and all(old.get(field) == new.get(field) for field in exact)
        and _conditions_of(old) == _conditions_of(new)
    )


def _conditions_of(status: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return status.get("conditions") or []
