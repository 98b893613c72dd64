"""The DaemonSet controller: its watches, its reconcile function, and the status."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Plan, RecordEvent, Remember, Update
from mockube.controller_manager.control.controller import Controller, Watch
from mockube.controller_manager.workloads import ownership
from mockube.controller_manager.workloads.watches import watches_of

from .placement import fit_of
from .pods import pod_actions, pod_changes
from .state import DaemonState, FailedPodsBackoff, oldest_first, pods_by_node
from .update import History, history_of, revisions_to_delete, rolling_update

_BATCH_DELAY: Final = timedelta(milliseconds=50)
"""The delay of a reconciliation after a change of a pod or node: many pods change at once, and each reconciliation counts
all nodes. A change of the spec is reconciled at once.
"""


_REQUIRED_FIELDS: Final = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
)


def reconcile(caches: Caches, key: Key, now: datetime, memory: FailedPodsBackoff | None) -> Plan:
    daemon_set = caches.of(kinds.DAEMON_SETS).get(*key)
    if daemon_set is None:
        return Plan(actions=(Remember(None),))
    if daemon_set["spec"].get("selector") == {}:
        message = "This daemon set is selecting all pods. A non-empty selector is required."
        return Plan(
            actions=(RecordEvent(about=daemon_set, type="Warning", reason="SelectingAll", message=message),)
        )
    if meta.is_deleting(daemon_set):
        return EMPTY_PLAN
    try:
        selector = ownership.selector_of(daemon_set)
    except SelectorError:
        return EMPTY_PLAN
    revisions = ownership.owned_objects(caches, kinds.CONTROLLER_REVISIONS, daemon_set, selector)
    pods = ownership.owned_objects(caches, kinds.PODS, daemon_set, selector)
    # Adoption and release are a reconciliation of their own: pods are counted after the caches show them.
    first = (
        *ownership.adoption_and_release_actions(
            revisions, kinds.CONTROLLER_REVISIONS, daemon_set, kinds.DAEMON_SETS
        ),
        *ownership.adoption_and_release_actions(pods, kinds.PODS, daemon_set, kinds.DAEMON_SETS),
    )
    if first:
        return Plan(actions=first)
    get_revision = partial(caches.of(kinds.CONTROLLER_REVISIONS).get, key.namespace)
    history = history_of(daemon_set, revisions.owned, pods.owned, get_revision, caches.gates.minor)
    if history.is_collision:
        return Plan(actions=history.actions)
    state = DaemonState(
        daemon_set=daemon_set,
        nodes=caches.of(kinds.NODES).all(),
        pods=pods_by_node(pods.owned),
        all_pods=pods.owned,
        revision_hash=history.revision_hash,
        now=now,
    )
    return _plan(state, history, memory or FailedPodsBackoff())


def _plan(state: DaemonState, history: History, backoff: FailedPodsBackoff) -> Plan:
    changes = pod_changes(state, backoff)
    actions: tuple[Action, ...] = (*changes.events, *pod_actions(state, changes.create, changes.delete))
    if changes.backoff is not backoff:
        actions = (Remember(changes.backoff), *actions)
    # A rolling update begins when the nodes have the pods that they should have.
    actions = actions or rolling_update(state)
    delays = [delay for delay in (*changes.delays, _next_available(state)) if delay is not None]
    return Plan(
        actions=(
            *history.actions,
            *actions,
            *revisions_to_delete(state.daemon_set, history.old, state.all_pods),
        ),
        last=lambda _: _status_update(state),
        requeue_after=min(delays, default=None),
    )


# --- the status


def _status_update(state: DaemonState) -> tuple[Update, ...]:
    """Return the update of the status; none if the status is the same."""
    old = state.daemon_set.get("status") or {}
    new = {**old, **_counts(state), "observedGeneration": meta.generation(state.daemon_set)}
    if all((old.get(field) or 0) == (value or 0) for field, value in new.items()):
        return ()
    status = {field: value for field, value in new.items() if value or field in _REQUIRED_FIELDS}
    body = {**state.daemon_set, "status": status}
    return (Update(resource=kinds.DAEMON_SETS, body=body, subresource="status"),)


def _counts(state: DaemonState) -> dict[str, Any]:
    desired = [name for name, fit in state.fits.items() if fit.should_run]
    misscheduled = sum(bool(state.pods.get(name)) for name, fit in state.fits.items() if not fit.should_run)
    first = [oldest_first(state.pods[name])[0] for name in desired if state.pods.get(name)]
    available = sum(state.is_available(pod) for pod in first)
    return {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": misscheduled,
        "desiredNumberScheduled": len(desired),
        "numberReady": sum(pod.is_ready for pod in first),
        "updatedNumberScheduled": sum(map(state.is_updated, first)),
        "numberAvailable": available,
        "numberUnavailable": len(desired) - available,
    }


def _next_available(state: DaemonState) -> timedelta | None:
    """Return the time until the next pod becomes available."""
    wait = span_of(state.min_ready_seconds)
    ready = [pod.ready_since for pods in state.pods.values() for pod in pods if pod.ready_since is not None]
    due = (after(since, wait) - state.now for since in ready)
    return min((delay for delay in due if delay > timedelta()), default=None)


# --- the DaemonSets that a change affects


def _daemon_sets_of_node(caches: Caches, change: Change) -> Iterable[Key]:
    """Yield the keys of DaemonSets that should start or stop running on a node, or have misscheduled pods there."""
    node: ReadOnlyTree | None = change.new
    if node is None or (change.old is not None and _has_same_labels_and_taints(change.old, node)):
        return
    owners = {pod.owner_uid for pod in caches.of(kinds.PODS).by_index(BY_NODE, meta.name(node))}
    for daemon_set in caches.of(kinds.DAEMON_SETS).all():
        fit, has_pod = fit_of(daemon_set)(node), meta.uid(daemon_set) in owners
        is_counted = bool((daemon_set.get("status") or {}).get("numberMisscheduled"))
        if (has_pod and (is_counted or not fit.should_continue_running)) or (fit.should_run and not has_pod):
            yield Key.of(daemon_set)


def _has_same_labels_and_taints(old: ReadOnlyTree, new: ReadOnlyTree) -> bool:
    taints = [(node.get("spec") or {}).get("taints") or [] for node in (old, new)]
    return meta.labels(old) == meta.labels(new) and taints[0] == taints[1]


DAEMON_SET: Final = Controller(
    name="daemonset-controller",
    queue="daemonset",
    service_account="daemon-set-controller",
    event_component="daemonset-controller",
    watches=(
        *watches_of(kinds.DAEMON_SETS, delay=_BATCH_DELAY),
        Watch(
            resource=kinds.PODS,
            keys=ownership.keys_of_owners(kinds.PODS, kinds.DAEMON_SETS, ownership.selector_of),
            delay=_BATCH_DELAY,
        ),
        Watch(
            resource=kinds.CONTROLLER_REVISIONS,
            keys=ownership.keys_of_owners(
                kinds.CONTROLLER_REVISIONS, kinds.DAEMON_SETS, ownership.selector_of
            ),
        ),
        Watch(resource=kinds.NODES, keys=_daemon_sets_of_node, delay=_BATCH_DELAY),
    ),
    reconcile=reconcile,
    has_memory=True,
    workers=2,
    indexes={
        kinds.PODS: {ownership.BY_OWNER: ownership.owner_of_pod, BY_NODE: node_of_pod},
        kinds.CONTROLLER_REVISIONS: {ownership.BY_OWNER: ownership.owner_of},
    },
)
