"""Evicts pods from tainted nodes once they have stayed for as long as they tolerate it."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from apimachinery import conditions, meta
from apimachinery.status import NotFound
from apimachinery.timestamps import format_time
from apimachinery.wellknown import CONDITION_DISRUPTION_TARGET
from controller_manager.engines.tainteviction.tolerations import no_execute_taints, stay
from controller_manager.indexes import BY_NODE, node_of_pod
from controller_manager.kinds import NODES, PODS
from controller_manager.runtime.caches import Change
from controller_manager.runtime.engine import Context, Engine
from controller_manager.runtime.resource import Key
from controller_manager.runtime.worker import Loop
from controller_manager.workloads.podview import PodView

NAME: Final = "taint-eviction-controller"
WORKERS: Final = 8
_CONDITION: Final = {
    "type": CONDITION_DISRUPTION_TARGET,
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class _Scheduled(NamedTuple):
    """A pod that is to be evicted, and since when that is known."""

    uid: str
    since: datetime


class TaintEviction:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._recorder = context.recorder.of(NAME)
        self._nodes, self._pods = context.informers.of(NODES), context.informers.of(PODS)
        self._pods.add_index(BY_NODE, node_of_pod)
        self._loop = Loop(
            "taint_eviction", self._reconcile, workers=WORKERS, clock=context.clock, metrics=context.metrics
        )
        self._scheduled: dict[Key, _Scheduled] = {}
        self._nodes.add_handler(self._node_changed)
        self._pods.add_handler(self._pod_changed)

    async def run(self) -> None:
        await self._nodes.wait_synced()
        await self._pods.wait_synced()
        await self._loop.run()

    def _node_changed(self, change: Change) -> None:
        old = no_execute_taints(change.old) if change.old is not None else []
        new = no_execute_taints(change.new) if change.new is not None else []
        if change.new is not None and old != new:
            for pod in self._pods.lister.by_index(BY_NODE, meta.name(change.new)):
                self._loop.add(pod.key)

    def _pod_changed(self, change: Change) -> None:
        """Only where it is bound and what it tolerates counts."""
        old: PodView | None = change.old
        new: PodView | None = change.new
        if new is None:
            if old is not None:
                self._scheduled.pop(old.key, None)
        elif new.node and (old is None or _circumstances(old) != _circumstances(new)):
            self._loop.add(new.key)

    async def _reconcile(self, key: Key) -> timedelta | None:
        pod = self._pods.lister.get(*key)
        if pod is None or pod.deleting:
            self._scheduled.pop(key, None)
            return None
        node = self._nodes.lister.get("", pod.node)
        taints = [] if node is None else no_execute_taints(node)
        allowed = stay(taints, pod.object["spec"].get("tolerations") or ()) if taints else None
        if allowed is None:
            self._cancel(pod)
            return None
        now = self._clock.now()
        scheduled = self._scheduled.get(key)
        if scheduled is None or scheduled.uid != pod.uid:
            scheduled = self._scheduled[key] = _Scheduled(pod.uid, now)
        if scheduled.since + allowed > now:
            return scheduled.since + allowed - now
        await self._evict(pod)
        self._scheduled.pop(key, None)
        return None

    def _cancel(self, pod: PodView) -> None:
        scheduled = self._scheduled.pop(pod.key, None)
        if scheduled is not None and scheduled.uid == pod.uid:
            self._say(pod, f"Cancelling deletion of Pod {pod.key}")

    async def _evict(self, pod: PodView) -> None:
        self._say(pod, f"Marking for deletion Pod {pod.key}")
        present = conditions.get(pod.object, CONDITION_DISRUPTION_TARGET)
        try:
            if present is None or present["status"] != "True":
                condition = {**_CONDITION, "lastTransitionTime": format_time(self._clock.now())}
                body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
                await self._client.patch(PODS, pod.key, body, kind="strategic", subresource="status")
            await self._client.delete(PODS, pod.key, uid=pod.uid)
        except NotFound:
            return

    def _say(self, pod: PodView, message: str) -> None:
        self._recorder.say(pod.object, "Normal", "TaintManagerEviction", message)


def _circumstances(pod: PodView) -> object:
    return pod.uid, pod.node, pod.object["spec"].get("tolerations")


TAINT_EVICTION: Final = Engine(name=NAME, service_account="node-controller", build=TaintEviction)
