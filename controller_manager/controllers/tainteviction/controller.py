"""The taint eviction controller: it evicts pods from tainted nodes when their tolerations end."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.timestamps import after, span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.component_helpers.disruption import disruption_status
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.kinds import NODES, PODS
from mockube.client.podview import PodView
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.controller_manager.control.runnable import Context, Runnable

NAME: Final = "taint-eviction-controller"
WORKERS: Final = 8
_REASON: Final = "DeletionByTaintManager"
_MESSAGE: Final = "Taint manager: deleting due to NoExecute taint"


class _ScheduledEviction(NamedTuple):
    """The uid of a pod that will be evicted, and the start of its toleration."""

    uid: str
    since: datetime


class TaintEvictionController:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._recorder = context.recorder.of(NAME)
        self._nodes, self._pods = context.informers.of(NODES), context.informers.of(PODS)
        self._pods.add_index(BY_NODE, node_of_pod)
        self._loop = ReconcileLoop(
            "taint_eviction", self._reconcile, workers=WORKERS, clock=context.clock, metrics=context.metrics
        )
        self._scheduled: dict[Key, _ScheduledEviction] = {}
        self._nodes.add_handler(self._on_node_change)
        self._pods.add_handler(self._on_pod_change)

    async def run(self) -> None:
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        await self._loop.run()

    def _on_node_change(self, change: Change) -> None:
        old = no_execute_taints(change.old) if change.old is not None else []
        new = no_execute_taints(change.new) if change.new is not None else []
        if change.new is not None and old != new:
            for pod in self._pods.lister.by_index(BY_NODE, meta.name(change.new)):
                self._loop.add(pod.key)

    def _on_pod_change(self, change: Change) -> None:
        """Queue a pod whose node or tolerations have changed."""
        old: PodView | None = change.old
        new: PodView | None = change.new
        if new is None:
            if old is not None:
                self._scheduled.pop(old.key, None)
        elif new.node and (old is None or _relevant_fields(old) != _relevant_fields(new)):
            self._loop.add(new.key)

    async def _reconcile(self, key: Key) -> timedelta | None:
        pod = self._pods.lister.get(*key)
        if pod is None or pod.deleting:
            self._scheduled.pop(key, None)
            return None
        node = self._nodes.lister.get("", pod.node)
        taints = [] if node is None else no_execute_taints(node)
        tolerated = tolerated_time(taints, pod.object["spec"].get("tolerations") or ()) if taints else None
        if tolerated is None:
            self._cancel(pod)
            return None
        now = self._clock.now()
        scheduled = self._scheduled.get(key)
        if scheduled is None or scheduled.uid != pod.uid:
            scheduled = self._scheduled[key] = _ScheduledEviction(pod.uid, now)
        evicted_at = after(scheduled.since, tolerated)
        if evicted_at > now:
            return evicted_at - now
        await self._evict(pod)
        self._scheduled.pop(key, None)
        return None

    def _cancel(self, pod: PodView) -> None:
        scheduled = self._scheduled.pop(pod.key, None)
        if scheduled is not None and scheduled.uid == pod.uid:
            self._record_event(pod, f"Cancelling deletion of Pod {pod.key}")

    async def _evict(self, pod: PodView) -> None:
        self._record_event(pod, f"Marking for deletion Pod {pod.key}")
        generation = meta.generation(pod.object)
        status = disruption_status(pod.object, _REASON, _MESSAGE, self._clock.now(), generation)
        try:
            if status:
                body = {"metadata": {"uid": pod.uid}, "status": status}
                await self._client.patch(PODS, pod.key, body, kind="strategic", subresource="status")
            await self._client.delete(PODS, pod.key, uid=pod.uid)
        except NotFound:
            return

    def _record_event(self, pod: PodView, message: str) -> None:
        self._recorder.record(pod.object, "Normal", "TaintManagerEviction", message)


def _relevant_fields(pod: PodView) -> object:
    return pod.uid, pod.node, pod.object["spec"].get("tolerations")


TAINT_EVICTION: Final = Runnable(name=NAME, service_account="node-controller", build=TaintEvictionController)


NO_DELAY: Final = timedelta(0)
NO_EXECUTE: Final = "NoExecute"


def no_execute_taints(node: ReadOnlyTree) -> list[ReadOnlyTree]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint["effect"] == NO_EXECUTE]


def tolerated_time(taints: Sequence[ReadOnlyTree], tolerations: Sequence[ReadOnlyTree]) -> timedelta | None:
    """Return how long a pod tolerates the taints; None for ever."""
    matches: list[ReadOnlyTree] = []
    for taint in taints:
        # Only the first toleration that matches counts.
        first_match = next((toleration for toleration in tolerations if tolerates(toleration, taint)), None)
        if first_match is None:
            return NO_DELAY
        matches.append(first_match)
    spans = [
        toleration["tolerationSeconds"]
        for toleration in matches
        if toleration.get("tolerationSeconds") is not None
    ]
    return span_of(max(min(spans), 0)) if spans else None


def tolerates(toleration: ReadOnlyTree, taint: ReadOnlyTree) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator") == "Exists":
        return True
    return (toleration.get("value") or "") == (taint.get("value") or "")
