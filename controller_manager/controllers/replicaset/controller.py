"""The ReplicaSet and ReplicationController controllers: their watches, the pods they create or delete, and the status.

A `ReplicatorKind` has the differences between the two.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, labels, meta
from mockube.apimachinery.labels import Selector, SelectorError
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import after, format_time, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    CONDITION_REPLICA_FAILURE,
    REASON_FAILED_CREATE,
    REASON_FAILED_DELETE,
)
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads import indexes as primary
from mockube.controller_manager.workloads import ownership
from mockube.controller_manager.workloads.deletion_order import pods_to_delete_first
from mockube.controller_manager.workloads.ownership import OwnedObjects
from mockube.controller_manager.workloads.pod_control import pod_creation, pod_deletion
from mockube.controller_manager.workloads.templates import pod_of

BURST_REPLICAS: Final = 500
"""The maximum number of pods that one plan creates or deletes. The next plan continues when the cache contains these."""
_BATCH_DELAY: Final = timedelta(milliseconds=50)
"""The delay of a reconciliation after a change of a pod: many pods become ready at once, and each reconciliation counts
all. A change of the spec is reconciled at once.
"""
_COUNTS: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicatorKind(Struct, frozen=True, kw_only=True):
    resource: Resource[ReadOnlyTree]
    selector: Callable[[ReadOnlyTree], Selector]
    """Returns the selector of an object; it may raise `SelectorError`."""
    counts_terminating: bool
    """Whether its status has `terminatingReplicas`."""


def _selector_of_replication_controller(controller: ReadOnlyTree) -> Selector:
    selector = controller["spec"].get("selector")
    return labels.from_set(selector) if selector else labels.NOTHING


_REPLICA_SET_KIND: Final = ReplicatorKind(
    resource=REPLICA_SETS, selector=ownership.selector_of, counts_terminating=True
)
_REPLICATION_CONTROLLER_KIND: Final = ReplicatorKind(
    resource=REPLICATION_CONTROLLERS, selector=_selector_of_replication_controller, counts_terminating=False
)


class ReplicaSetState(Struct, frozen=True, kw_only=True):
    """One ReplicaSet and its pods."""

    owner: ReadOnlyTree
    active: tuple[PodView, ...]
    terminating: int
    """The number of its pods that are being deleted and have not ended yet."""

    @property
    def replicas(self) -> int:
        replicas = self.owner["spec"].get("replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def min_ready_seconds(self) -> int:
        return self.owner["spec"].get("minReadySeconds") or 0

    @property
    def template(self) -> ReadOnlyTree:
        return self.owner["spec"].get("template") or {}


def reconcile(kind: ReplicatorKind, caches: Caches, key: Key, now: datetime) -> Plan:
    owner = caches.of(kind.resource).get(*key)
    if owner is None:
        return EMPTY_PLAN
    try:
        selector = kind.selector(owner)
    except SelectorError:
        selector = labels.NOTHING
    if selector.matches_nothing:
        return EMPTY_PLAN  # no server accepts it, and pods created for it would not be selected
    claims = pods_of(caches, owner, selector)
    # Adoption and release are a reconciliation of their own: pods are counted after the caches show them.
    if first := ownership.adoption_and_release_actions(claims, PODS, owner, kind.resource):
        return Plan(actions=first)
    state = state_of(owner, claims.owned)
    related = partial(related_pods, caches, kind, owner)
    return Plan(
        actions=() if meta.is_deleting(owner) else plan(state, related, now),
        last=lambda error: status_update(state, kind, error, now),
        requeue_after=next_check(state, now),
        counted=len(claims.owned),
    )


# --- pods


def pods_of(caches: Caches, owner: ReadOnlyTree, selector: Selector) -> OwnedObjects[PodView]:
    """Return all owned pods, but only active pods to adopt or release: an ended pod is neither adopted nor released."""
    claims = ownership.owned_objects(caches, PODS, owner, selector)
    return OwnedObjects(
        owned=claims.owned,
        orphans=tuple(pod for pod in claims.orphans if pod.is_active),
        to_release=tuple(pod for pod in claims.to_release if pod.is_active),
    )


def state_of(owner: ReadOnlyTree, owned: Iterable[PodView]) -> ReplicaSetState:
    active: list[PodView] = []
    terminating = 0
    for pod in owned:
        if pod.is_active:
            active.append(pod)
        elif not pod.is_terminal:
            terminating += 1
    return ReplicaSetState(owner=owner, active=tuple(active), terminating=terminating)


def related_pods(caches: Caches, kind: ReplicatorKind, owner: ReadOnlyTree) -> list[PodView]:
    """Return the pods of all ReplicaSets of the same owner, which are the versions of one workload."""
    controller = meta.controller_of(owner)
    if controller is None:
        return []
    siblings = caches.of(kind.resource).by_index(ownership.BY_OWNER, controller["uid"])
    pods = caches.of(PODS)
    return [pod for sibling in siblings for pod in pods.by_index(ownership.BY_OWNER, meta.uid(sibling))]


def plan(
    state: ReplicaSetState, related: Callable[[], Iterable[PodView]], now: datetime
) -> tuple[Action, ...]:
    """Return the creation or deletion of pods. `related` is called only if pods are deleted."""
    surplus = len(state.active) - state.replicas
    if surplus < 0:
        count = min(-surplus, BURST_REPLICAS)
        return (pod_creation(state.owner, (pod_of(state.template, state.owner),) * count),)
    if surplus > 0:
        count = min(surplus, BURST_REPLICAS)
        pods = pods_to_delete_first(state.active, count, related(), now)
        return (pod_deletion(state.owner, pods),)
    return ()


# --- the status


def status_update(
    state: ReplicaSetState, kind: ReplicatorKind, error: ApiError | None, now: datetime
) -> tuple[Update, ...]:
    """Return the update of the status; none if the status is the same."""
    old = state.owner.get("status") or {}
    new = _status(state, kind, error, now)
    if _is_same_status(old, new):
        return ()
    body = {**state.owner, "status": new}
    return (Update(resource=kind.resource, body=body, subresource="status"),)


def next_check(state: ReplicaSetState, now: datetime) -> timedelta | None:
    """Return the time until the next pod becomes available: no watch event requeues the key then."""
    if state.min_ready_seconds == 0:
        return None
    wait = span_of(state.min_ready_seconds)
    due = [after(pod.ready_since, wait) - now for pod in state.active if pod.ready_since is not None]
    return min((delay for delay in due if delay > timedelta()), default=None)


def _status(
    state: ReplicaSetState, kind: ReplicatorKind, error: ApiError | None, now: datetime
) -> dict[str, Any]:
    matches_template = labels.from_set(meta.labels(state.template)).matches
    ready = [pod for pod in state.active if pod.ready_since is not None]
    counts = {
        "replicas": len(state.active),
        "fullyLabeledReplicas": sum([matches_template(pod.labels) for pod in state.active]),
        "readyReplicas": len(ready),
        "availableReplicas": _available(ready, state.min_ready_seconds, now),
    }
    new_conditions = _conditions(state, error, now)
    return {
        **{field: count for field, count in counts.items() if count or field == "replicas"},
        **({"terminatingReplicas": state.terminating} if kind.counts_terminating else {}),
        "observedGeneration": meta.generation(state.owner),
        **({"conditions": new_conditions} if new_conditions else {}),
    }


def _available(ready: Sequence[PodView], min_ready_seconds: int, now: datetime) -> int:
    if min_ready_seconds == 0:
        return len(ready)
    return sum(pod.is_available(min_ready_seconds, now) for pod in ready)


def _conditions(state: ReplicaSetState, error: ApiError | None, now: datetime) -> list[ReadOnlyTree]:
    """Return the conditions. The condition of the first failure remains until a reconciliation succeeds."""
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
    """Return whether two statuses are equal. An absent count is 0, except for fields that may be absent otherwise."""
    exact = ("terminatingReplicas", "observedGeneration")
    return (
        all((old.get(field) or 0) == (new.get(field) or 0) for field in _COUNTS)
        and all(old.get(field) == new.get(field) for field in exact)
        and _conditions_of(old) == _conditions_of(new)
    )


def _conditions_of(status: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return status.get("conditions") or []


# --- the controllers of both kinds


def _controller(kind: ReplicatorKind, *, name: str, queue: str, service_account: str) -> Controller:
    resource = kind.resource
    return Controller(
        name=name,
        queue=queue,
        service_account=service_account,
        watches=(
            *primary.watches_of(resource, delay=_BATCH_DELAY),
            Watch(
                resource=PODS,
                keys=ownership.keys_of_owners(PODS, resource, kind.selector),
                delay=_BATCH_DELAY,
            ),
        ),
        reconcile=partial(reconcile, kind),
        events_can_wait=True,
        workers=5,
        indexes={
            resource: {ownership.BY_OWNER: ownership.owner_of},
            PODS: {ownership.BY_OWNER: ownership.owner_of_pod},
        },
    )


REPLICA_SET: Final = _controller(
    _REPLICA_SET_KIND,
    name="replicaset-controller",
    queue="replicaset",
    service_account="replicaset-controller",
)
REPLICATION_CONTROLLER: Final = _controller(
    _REPLICATION_CONTROLLER_KIND,
    name="replicationcontroller-controller",
    queue="replicationmanager",
    service_account="replication-controller",
)
