"""The ReplicaSet and ReplicationController controllers: their watches, the pods they create or delete, and the status.

A `ReplicatorKind` has the differences between the two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

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
from mockube.client.cache.store import Caches, Classifier
from mockube.client.kinds import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from mockube.client.podview import PodView
from mockube.client.resources import Key, Resource
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Plan, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads import ownership
from mockube.controller_manager.workloads.deletion_order import pods_to_delete_first
from mockube.controller_manager.workloads.ownership import OwnedObjects
from mockube.controller_manager.workloads.pod_control import pod_creation, pod_deletion
from mockube.controller_manager.workloads.templates import pod_of
from mockube.controller_manager.workloads.watches import watches_of

BURST_REPLICAS: Final = 500
"""The maximum number of pods that one plan creates or deletes. The next plan continues when the cache contains these."""
_BATCH_DELAY: Final = timedelta(milliseconds=50)
"""The delay of a reconciliation after a change of a pod: many pods become ready at once, and each reconciliation counts
all. A change of the spec is reconciled at once.
"""
_PAUSE: Final = timedelta(microseconds=20)
"""The delay for each pod of a ReplicaSet: with 10,000, the status is written five times a second at most."""
_COUNTS: Final = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


class ReplicatorKind(Struct, frozen=True, kw_only=True):
    resource: Resource[ReadOnlyTree]
    selector: Callable[[ReadOnlyTree], Selector]
    """Returns the selector of an object; it may raise `SelectorError`."""
    counts_terminating: bool
    """Whether its status has `terminatingReplicas`."""

    @property
    def tally(self) -> str:
        """The name of the tally of its pods by the uid of their owner and by `ReplicaState`."""
        return f"states in {self.resource}"


def _selector_of_replication_controller(controller: ReadOnlyTree) -> Selector:
    selector = controller["spec"].get("selector")
    return labels.from_set(selector) if selector else labels.NOTHING


_REPLICA_SET_KIND: Final = ReplicatorKind(
    resource=REPLICA_SETS, selector=ownership.selector_of, counts_terminating=True
)
_REPLICATION_CONTROLLER_KIND: Final = ReplicatorKind(
    resource=REPLICATION_CONTROLLERS, selector=_selector_of_replication_controller, counts_terminating=False
)


class ReplicaState(NamedTuple):
    """What the pods of an owner are counted by."""

    labels: tuple[tuple[str, str], ...]
    is_active: bool
    is_terminal: bool
    is_ready: bool


def _state_of_pod(owner_kind: str) -> Classifier:
    """Return the function that returns the owner and the state of a pod; None if its owner is of another kind."""

    def classify(pod: PodView) -> tuple[str, ReplicaState] | None:
        controller = meta.controller_of(pod.object)
        if controller is None or controller["kind"] != owner_kind:
            return None
        labels_of_pod = tuple(sorted(pod.labels.items()))
        return controller["uid"], ReplicaState(labels_of_pod, pod.is_active, pod.is_terminal, pod.is_ready)

    return classify


class ReplicaSetState(Struct, frozen=True, kw_only=True):
    """One ReplicaSet, and the numbers of its pods."""

    owner: ReadOnlyTree
    owned: int
    active: int
    terminating: int
    """The number of its pods that are being deleted and have not ended yet."""
    fully_labeled: int
    ready: int
    available: int
    next_available: timedelta | None
    """The time until the next pod becomes available; None if that needs a change of a pod."""

    @property
    def replicas(self) -> int:
        replicas = self.owner["spec"].get("replicas")
        return 1 if replicas is None else int(replicas)


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
    # Adoption and release are a reconciliation of their own: pods are counted after the caches show them.
    if first := _adoption_and_release(caches, kind, owner, selector):
        return Plan(actions=first)
    state = state_of(caches, kind, owner, selector, now)
    return Plan(
        actions=() if meta.is_deleting(owner) else plan(caches, kind, state, selector, now),
        last=lambda error: status_update(state, kind, error, now),
        requeue_after=state.next_available,
        counted=state.owned,
    )


# --- pods


def state_of(
    caches: Caches, kind: ReplicatorKind, owner: ReadOnlyTree, selector: Selector, now: datetime
) -> ReplicaSetState:
    """Count the pods of an owner by their states, of which thousands of pods have few."""
    counts = {
        state: count
        for state, count in _pod_states(caches, kind, owner).items()
        if selector.matches(dict(state.labels))
    }
    matches_template = labels.from_set(meta.labels(template_of(owner))).matches
    active = {state: count for state, count in counts.items() if state.is_active}
    ready = sum(count for state, count in active.items() if state.is_ready)
    available, next_available = ready, None
    if min_ready_seconds := owner["spec"].get("minReadySeconds") or 0:
        pods = active_pods(caches, owner, selector)
        available = sum(pod.is_available(min_ready_seconds, now) for pod in pods)
        next_available = _next_available(pods, min_ready_seconds, now)
    return ReplicaSetState(
        owner=owner,
        owned=sum(counts.values()),
        active=sum(active.values()),
        terminating=sum(
            count for state, count in counts.items() if not (state.is_active or state.is_terminal)
        ),
        fully_labeled=sum(count for state, count in active.items() if matches_template(dict(state.labels))),
        ready=ready,
        available=available,
        next_available=next_available,
    )


def template_of(owner: ReadOnlyTree) -> ReadOnlyTree:
    return owner["spec"].get("template") or {}


def active_pods(caches: Caches, owner: ReadOnlyTree, selector: Selector) -> list[PodView]:
    return [pod for pod in _pods_of(caches, owner) if pod.is_active and selector.matches(pod.labels)]


def _next_available(pods: Iterable[PodView], min_ready_seconds: int, now: datetime) -> timedelta | None:
    """Return the time until the next pod becomes available: no watch event requeues the key then."""
    wait = span_of(min_ready_seconds)
    due = [after(pod.ready_since, wait) - now for pod in pods if pod.ready_since is not None]
    return min((delay for delay in due if delay > timedelta()), default=None)


def _pod_states(caches: Caches, kind: ReplicatorKind, owner: ReadOnlyTree) -> Mapping[ReplicaState, int]:
    return caches.of(PODS).class_counts(kind.tally, meta.uid(owner))


def _adoption_and_release(
    caches: Caches, kind: ReplicatorKind, owner: ReadOnlyTree, selector: Selector
) -> tuple[Action, ...]:
    """Adopt and release active pods: an ended pod is neither adopted nor released."""
    if meta.is_deleting(owner):
        return ()  # the garbage collector handles its pods
    orphans = ownership.matching_orphans(caches, PODS, owner, selector)
    claims = OwnedObjects(
        owned=(),
        orphans=tuple(pod for pod in orphans if pod.is_active),
        to_release=tuple(_pods_to_release(caches, kind, owner, selector)),
    )
    return ownership.adoption_and_release_actions(claims, PODS, owner, kind.resource)


def _pods_to_release(
    caches: Caches, kind: ReplicatorKind, owner: ReadOnlyTree, selector: Selector
) -> Iterable[PodView]:
    if all(selector.matches(dict(state.labels)) for state in _pod_states(caches, kind, owner)):
        return ()  # without a look at each pod
    pods = _pods_of(caches, owner)
    return (pod for pod in pods if pod.is_active and not selector.matches(pod.labels))


def _pods_of(caches: Caches, owner: ReadOnlyTree) -> Sequence[PodView]:
    return caches.of(PODS).by_index(ownership.BY_OWNER, meta.uid(owner))


def related_pods(caches: Caches, kind: ReplicatorKind, owner: ReadOnlyTree) -> list[PodView]:
    """Return the pods of all ReplicaSets of the same owner, which are the versions of one workload."""
    controller = meta.controller_of(owner)
    if controller is None:
        return []
    siblings = caches.of(kind.resource).by_index(ownership.BY_OWNER, controller["uid"])
    return [pod for sibling in siblings for pod in _pods_of(caches, sibling)]


def plan(
    caches: Caches, kind: ReplicatorKind, state: ReplicaSetState, selector: Selector, now: datetime
) -> tuple[Action, ...]:
    """Return the creation or deletion of pods."""
    owner = state.owner
    surplus = state.active - state.replicas
    if surplus < 0:
        count = min(-surplus, BURST_REPLICAS)
        return (pod_creation(owner, (pod_of(template_of(owner), owner),) * count),)
    if surplus > 0:
        count = min(surplus, BURST_REPLICAS)
        pods = active_pods(caches, owner, selector)
        to_delete = pods_to_delete_first(pods, count, related_pods(caches, kind, owner), now)
        return (pod_deletion(owner, to_delete),)
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


def _status(
    state: ReplicaSetState, kind: ReplicatorKind, error: ApiError | None, now: datetime
) -> dict[str, Any]:
    counts = {
        "replicas": state.active,
        "fullyLabeledReplicas": state.fully_labeled,
        "readyReplicas": state.ready,
        "availableReplicas": state.available,
    }
    new_conditions = _conditions(state, error, now)
    return {
        **{field: count for field, count in counts.items() if count or field == "replicas"},
        **({"terminatingReplicas": state.terminating} if kind.counts_terminating else {}),
        "observedGeneration": meta.generation(state.owner),
        **({"conditions": new_conditions} if new_conditions else {}),
    }


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
    if state.active > state.replicas:
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
            *watches_of(resource, delay=_BATCH_DELAY, pause=_PAUSE),
            Watch(
                resource=PODS,
                keys=ownership.keys_of_owners(PODS, resource, kind.selector),
                delay=_BATCH_DELAY,
                pause=_PAUSE,
            ),
        ),
        reconcile=partial(reconcile, kind),
        events_can_wait=True,
        workers=5,
        indexes={
            resource: {ownership.BY_OWNER: ownership.owner_of},
            PODS: {ownership.BY_OWNER: ownership.owner_of_pod},
        },
        tallies={PODS: {kind.tally: _state_of_pod(resource.kind)}},
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
