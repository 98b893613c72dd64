"""The pods that a DaemonSet creates and deletes so that each node has the pod that it should have."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH
from mockube.client.podview import FAILED, SUCCEEDED, PodView
from mockube.controller_manager.control.actions import Action, RecordEvent
from mockube.controller_manager.workloads.pod_control import pod_creation, pod_deletion

from .placement import new_pod
from .state import DaemonState, FailedPodsBackoff, oldest_first

BURST_REPLICAS: Final = 250
"""The maximum number of pods that one reconciliation creates, and that it deletes."""


class PodChanges(Struct):
    """The pods to create and delete, collected node by node."""

    backoff: FailedPodsBackoff
    create: list[str] = field(default_factory=list)
    """The nodes that need a pod."""
    delete: list[PodView] = field(default_factory=list)
    events: list[RecordEvent] = field(default_factory=list)
    delays: list[timedelta] = field(default_factory=list)
    """The times until failed pods may be deleted."""


def pod_changes(state: DaemonState, backoff: FailedPodsBackoff) -> PodChanges:
    changes = PodChanges(backoff)
    for node in state.nodes:
        name = meta.name(node)
        fit, pods = state.fits[name], state.pods.get(name)
        if fit.should_run and pods is None:
            changes.create.append(name)
        elif fit.should_continue_running:
            _keep_one_pod(state, name, pods or (), changes)
        else:
            changes.delete += [pod for pod in pods or () if not pod.deleting]
    # No other controller deletes a pod that waits for a deleted node.
    orphaned = (pods for name, pods in state.pods.items() if name not in state.fits)
    changes.delete += [pod for pods in orphaned for pod in pods if not pod.node]
    return changes


def pod_actions(state: DaemonState, nodes: Sequence[str], pods: Sequence[PodView]) -> tuple[Action, ...]:
    """Return the creations of pods for the nodes, then the deletions."""
    bodies = tuple(new_pod(state.daemon_set, node, state.revision_hash) for node in nodes[:BURST_REPLICAS])
    create = (pod_creation(state.daemon_set, bodies),) if bodies else ()
    delete = (pod_deletion(state.daemon_set, pods[:BURST_REPLICAS]),) if pods else ()
    return (*create, *delete)


def _keep_one_pod(state: DaemonState, node: str, pods: Iterable[PodView], changes: PodChanges) -> None:
    """Keep one running pod on the node, or an old and a new one during an update with surge."""
    running = [pod for pod in pods if not pod.deleting and not _delete_ended(state, node, pod, changes)]
    if state.max_surge(1) == 0:
        changes.delete += oldest_first(running)[1:]
    elif len(running) > 1:
        changes.delete += _surplus(state, oldest_first(running))
    elif not running and state.fits[node].should_run:
        changes.create.append(node)


def _delete_ended(state: DaemonState, node: str, pod: PodView, changes: PodChanges) -> bool:
    """Delete the pod if it has ended, a failed one with backoff; return whether it has ended."""
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
        if delay := changes.backoff.delay(key, state.now):
            changes.delays.append(delay)
            return True
        changes.backoff = changes.backoff.with_deletion(key, state.now)
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
