"""What a ReplicaSet says of itself: how many pods it has and how they are, and why it cannot have what it wants."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from apimachinery import conditions, labels, meta
from apimachinery.status import ApiError
from apimachinery.timestamps import format_time
from apimachinery.wellknown import CONDITION_REPLICA_FAILURE, REASON_FAILED_CREATE, REASON_FAILED_DELETE
from controller_manager.controllers.replicaset.family import Family
from controller_manager.controllers.replicaset.observe import Scene
from controller_manager.runtime.actions import Update
from controller_manager.runtime.resource import Tree

_COUNTS: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def status_update(scene: Scene, family: Family, error: ApiError | None, now: datetime) -> tuple[Update, ...]:
    """The write of the status, if it says anything new."""
    old = scene.owner.get("status") or {}
    new = _status(scene, family, error, now)
    if _says_the_same(old, new):
        return ()
    body = {**scene.owner, "status": new}
    return (Update(resource=family.resource, body=body, subresource="status"),)


def next_check(scene: Scene, now: datetime) -> timedelta | None:
    """When the next pod will have been ready for long enough: nothing in the cluster changes then."""
    if scene.min_ready_seconds == 0:
        return None
    wait = timedelta(seconds=scene.min_ready_seconds)
    due = [pod.ready_since + wait - now for pod in scene.active if pod.ready_since is not None]
    return min((delay for delay in due if delay > timedelta()), default=None)


def _status(scene: Scene, family: Family, error: ApiError | None, now: datetime) -> dict[str, Any]:
    fitting = labels.from_set(meta.labels(scene.template)).matches
    ready = [pod for pod in scene.active if pod.is_ready]
    counts = {
        "replicas": len(scene.active),
        "fullyLabeledReplicas": sum(fitting(pod.labels) for pod in scene.active),
        "readyReplicas": len(ready),
        "availableReplicas": sum(pod.is_available(scene.min_ready_seconds, now) for pod in ready),
    }
    said = _conditions(scene, error, now)
    return {
        **{field: count for field, count in counts.items() if count or field == "replicas"},
        **({"terminatingReplicas": scene.terminating} if family.counts_terminating else {}),
        "observedGeneration": meta.generation(scene.owner),
        **({"conditions": said} if said else {}),
    }


def _conditions(scene: Scene, error: ApiError | None, now: datetime) -> list[Tree]:
    """The first failure stays as it was told until all goes well."""
    present = conditions.of(scene.owner)
    others = [condition for condition in present if condition.get("type") != CONDITION_REPLICA_FAILURE]
    if error is None:
        return others
    if conditions.get(scene.owner, CONDITION_REPLICA_FAILURE) is not None:
        return list(present)
    failure = {
        "type": CONDITION_REPLICA_FAILURE,
        "status": "True",
        "lastTransitionTime": format_time(now),
        **_why(scene, error),
    }
    return [*others, failure]


def _why(scene: Scene, error: ApiError) -> Tree:
    if len(scene.active) > scene.replicas:
        return {"reason": REASON_FAILED_DELETE, "message": f"unable to delete pods: {error}"}
    return {"reason": REASON_FAILED_CREATE, "message": str(error)}


def _says_the_same(old: Tree, new: Tree) -> bool:
    """A count that is absent is none; of those that may be absent for another reason it is not."""
    exact = ("terminatingReplicas", "observedGeneration")
    return (
        all((old.get(field) or 0) == (new.get(field) or 0) for field in _COUNTS)
        and all(old.get(field) == new.get(field) for field in exact)
        and _listed(old) == _listed(new)
    )


def _listed(status: Tree) -> Sequence[Tree]:
    return status.get("conditions") or []
