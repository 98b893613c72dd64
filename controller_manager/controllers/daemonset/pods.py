"""Which pods a DaemonSet makes and deletes so that each node has the one that it should have. Pure."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    LABEL_CONTROLLER_REVISION_HASH,
    REASON_FAILED_CREATE,
    REASON_FAILED_DELETE,
    REASON_SUCCESSFUL_CREATE,
    REASON_SUCCESSFUL_DELETE,
)
from mockube.controller_manager.client.kinds import PODS
from mockube.controller_manager.client.podview import FAILED, SUCCEEDED, PodView
from mockube.controller_manager.control.actions import (
    Action,
    Create,
    Delete,
    EventTemplate,
    ObjectRef,
    RecordEvent,
)
from mockube.controller_manager.controllers.daemonset.placement import pod_for
from mockube.controller_manager.controllers.daemonset.state import DaemonState, Failures, oldest_first

BURST: Final = 250
"""How many pods one reconciliation makes, and how many it deletes."""


class Changes(Struct):
    """What is to be done on the nodes, collected node by node."""

    failures: Failures
    create: list[str] = field(default_factory=list)
    """The nodes that need a pod."""
    delete: list[PodView] = field(default_factory=list)
    events: list[RecordEvent] = field(default_factory=list)
    delays: list[timedelta] = field(default_factory=list)
    """For how long failed pods are left alone."""


def changes_of(state: DaemonState, failures: Failures) -> Changes:
    changes = Changes(failures)
    for node in state.nodes:
        name = meta.name(node)
        fit, pods = state.fits[name], state.pods.get(name)
        if fit.should_run and pods is None:
            changes.create.append(name)
        elif fit.may_stay:
            _keep_one(state, name, pods or (), changes)
        else:
            changes.delete += [pod for pod in pods or () if not pod.deleting]
    # No other controller deletes a pod that waits for a deleted node.
    orphaned = (pods for name, pods in state.pods.items() if name not in state.fits)
    changes.delete += [pod for pods in orphaned for pod in pods if not pod.node]
    return changes


def actions_of(state: DaemonState, nodes: Sequence[str], pods: Sequence[PodView]) -> tuple[Action, ...]:
    """Creations for the nodes, then deletions."""
    bodies = tuple(pod_for(state.daemon_set, node, state.revision_hash) for node in nodes[:BURST])
    create = (_creation(state.daemon_set, bodies),) if bodies else ()
    delete = (_deletion(state.daemon_set, pods[:BURST]),) if pods else ()
    return (*create, *delete)


def _keep_one(state: DaemonState, node: str, pods: Iterable[PodView], changes: Changes) -> None:
    """One running pod on the node, or while it is updated with surge an old and a new one."""
    running = [pod for pod in pods if not pod.deleting and not _replaces_ended(state, node, pod, changes)]
    if state.max_surge(1) == 0:
        changes.delete += oldest_first(running)[1:]
    elif len(running) > 1:
        changes.delete += _surplus(state, oldest_first(running))
    elif not running and state.fits[node].should_run:
        changes.create.append(node)


def _replaces_ended(state: DaemonState, node: str, pod: PodView, changes: Changes) -> bool:
    """A pod that has ended is deleted; one that failed not too often."""
    if pod.phase not in (FAILED, SUCCEEDED):
        return False
    name = f"{pod.key.namespace}/{pod.key.name} on node {node}"
    if pod.phase == SUCCEEDED:
        message = f"Found succeeded daemon pod {name}, will try to delete it"
        changes.events.append(
            RecordEvent(about=state.daemon_set, type="Normal", reason="SucceededDaemonPod", message=message)
        )
    else:
        key = ((state.daemon_set.get("status") or {}).get("observedGeneration") or 0, node)
        if delay := changes.failures.delay(key, state.now):
            changes.delays.append(delay)
            return True
        changes.failures = changes.failures.with_deletion(key, state.now)
        message = f"Found failed daemon pod {name}, will try to kill it"
        changes.events.append(
            RecordEvent(about=state.daemon_set, type="Warning", reason="FailedDaemonPod", message=message)
        )
    changes.delete.append(pod)
    return True


def _surplus(state: DaemonState, pods: Sequence[PodView]) -> list[PodView]:
    """Return all pods but the oldest new and the oldest old one; the old one is deleted when it is not ready or the
    new one is available.
    """
    new = [pod for pod in pods if pod.labels.get(LABEL_CONTROLLER_REVISION_HASH) == state.revision_hash]
    old = [pod for pod in pods if pod not in new]
    surplus = [pod for pod in pods if pod not in (*new[:1], *old[:1])]
    if new and old and (not old[0].is_ready or state.is_available(new[0])):
        surplus.append(old[0])
    return surplus


def _creation(daemon_set: ReadOnlyTree, bodies: tuple[ReadOnlyTree, ...]) -> Create:
    event = EventTemplate(
        about=daemon_set,
        done=(REASON_SUCCESSFUL_CREATE, "Created pod: {name}"),
        failed=(REASON_FAILED_CREATE, "Error creating: {error}"),
    )
    return Create(resource=PODS, bodies=bodies, event=event)


def _deletion(daemon_set: ReadOnlyTree, pods: Sequence[PodView]) -> Delete:
    event = EventTemplate(
        about=daemon_set,
        done=(REASON_SUCCESSFUL_DELETE, "Deleted pod: {name}"),
        failed=(REASON_FAILED_DELETE, "Error deleting: {error}"),
    )
    refs = tuple(dict.fromkeys(ObjectRef(pod.key, pod.uid) for pod in pods))
    return Delete(resource=PODS, objects=refs, event=event)
