"""The nodes whose pods use more memory than there is: their condition, and the pods that their kubelets evict.

The most that each pod may use is known when it starts; a node is watched only while the sum of its pods may exceed its memory.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from math import inf
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.component_helpers.pod_requests import MEMORY, amounts
from mockube.client.kinds import NODES, PODS
from mockube.client.podview import RUNNING, PodView
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.predictions import Predictions
from mockube.container_runtime.runtime import ContainerRuntime

from .node_objects import NODE_CONDITIONS, has_active_kubelet
from .pod_lifecycle.eviction import Eviction
from .pod_lifecycle.memory_eviction import THRESHOLD, PodMemory, eviction_message, pods_in_order
from .pod_lifecycle.preemption import is_critical
from .settings import KubeletContext

INTERVAL: Final = timedelta(seconds=10)
"""The time between two looks at a node, in each of which at most one pod is evicted."""
TRANSITION: Final = timedelta(minutes=5)
"""The time for which the condition outlives the lack of memory."""
_NO_PRESSURE: Final = next(each for each in NODE_CONDITIONS if each["type"] == "MemoryPressure")
_PRESSURE: Final = {
    **_NO_PRESSURE,
    "status": "True",
    "reason": "KubeletHasInsufficientMemory",
    "message": "kubelet has insufficient memory available",
}


class MemoryPressure:
    def __init__(
        self,
        context: KubeletContext,
        runtime: ContainerRuntime,
        predictions: Predictions,
        enqueue: Callable[[Key], None],
    ) -> None:
        """`enqueue` is called with the key of a pod that is evicted."""
        self._pods, self._nodes = context.informers.of(PODS).lister, context.informers.of(NODES).lister
        self._client, self._recorder = context.client, context.recorder.of("kubelet")
        self._runtime, self._predictions = runtime, predictions
        self._now, self._enqueue = context.clock.now, enqueue
        self._bounds: defaultdict[str, dict[str, tuple[Key, float]]] = defaultdict(dict)
        """The keys of pods, and the most memory that they may use, by node and uid."""
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._observed: dict[str, datetime] = {}
        """When a node lacked memory last, by name."""
        self._messages: dict[str, str] = {}
        """Why pods are evicted, by uid."""
        self._evictions: dict[str, Eviction] = {}
        self._loop = ReconcileLoop(
            "memory-pressure", self._look_at, workers=1, clock=context.clock, metrics=context.metrics
        )

    async def run(self) -> None:
        await self._loop.run()

    def eviction_of(self, pod: PodView, now: datetime) -> Eviction | None:
        """Return the eviction of a pod, which begins when this is first called; None if the pod stays."""
        message = self._messages.get(pod.uid) if self._messages else None
        if message is None:
            return None
        return self._evictions.setdefault(pod.uid, Eviction(now, message, is_disruption=True))

    def on_pod_change(self, change: Change) -> None:
        old: PodView | None = change.old
        new: PodView | None = change.new
        if old is not None and (new is None or new.uid != old.uid or new.is_terminal):
            self._forget(old)
        if new is None or new.is_terminal or not new.node or new.uid in self._bounds[new.node]:
            return
        if new.phase != RUNNING:
            return
        bound = self._bound(new.object)
        self._bounds[new.node][new.uid] = new.key, bound  # also none: it is computed once for a pod
        if bound:
            self._sums[new.node] += bound
            if self._sums[new.node] > self._allocatable(new.node) - THRESHOLD:
                self._loop.add(Key("", new.node))

    def forget_node(self, name: str) -> None:
        for records in (self._bounds, self._sums, self._observed):
            records.pop(name, None)

    def _forget(self, pod: PodView) -> None:
        self._messages.pop(pod.uid, None)
        self._evictions.pop(pod.uid, None)
        _, bound = self._bounds.get(pod.node, {}).pop(pod.uid, (pod.key, 0.0))
        if bound:
            self._sums[pod.node] -= bound

    def _bound(self, pod: ReadOnlyTree) -> float:
        """Return the most memory that the programs of a pod use, as far as they are known; those that fill all of it are killed."""
        script = script_of(meta.annotations(pod))
        return sum(
            max((step.size for step in load.memory if step.size < inf), default=0.0)
            for container in every_container(pod["spec"])
            for load in self._loads(pod, container, script)
        )

    def _loads(self, pod: ReadOnlyTree, container: ReadOnlyTree, script: Any) -> Iterator[Any]:
        has_command = container.get("command") or container.get("args") or script.command(container["name"])
        if has_command and (run := self._predictions.program_of_run(pod, container, script)()) is not None:
            yield run.load
        if behavior_of(container) is not None:
            yield self._predictions.server_load(container, script)

    def _allocatable(self, name: str) -> float:
        node = self._nodes.get("", name)
        return float(amounts(((node or {}).get("status") or {}).get("allocatable"))[MEMORY]) or inf

    # --- looking at a node

    async def _look_at(self, key: Key) -> timedelta | None:
        node, now = self._nodes.get(*key), self._now()
        if node is None or not has_active_kubelet(node):
            return None
        used = [*self._used_by_pods(key.name)]
        available = self._allocatable(key.name) - sum(pod.total for pod in used)
        if available < THRESHOLD:
            self._observed[key.name] = now
            await self._set_condition(node, _PRESSURE)
            self._evict_one(node, used, int(available))
            return INTERVAL
        if key.name not in self._observed:
            may_exceed = self._sums[key.name] > self._allocatable(key.name) - THRESHOLD
            return INTERVAL if may_exceed else None
        if now - self._observed[key.name] < TRANSITION:
            return INTERVAL
        del self._observed[key.name]
        await self._set_condition(node, _NO_PRESSURE)
        return INTERVAL

    def _used_by_pods(self, node: str) -> Iterator[PodMemory]:
        for uid, (key, bound) in self._bounds[node].items():
            pod = self._pods.get(*key) if bound else None
            if pod is None or pod.uid != uid or uid in self._messages:
                continue
            stats = {
                container["name"]: self._runtime.container_stats(pod.object, container["name"])
                for container in every_container(pod.object["spec"])
            }
            yield PodMemory(
                pod=pod.object,
                used={name: int(each.memory) for name, each in stats.items() if each is not None},
            )

    def _evict_one(self, node: ReadOnlyTree, used: list[PodMemory], available: int) -> None:
        self._recorder.record_on(
            meta.name(node), node, "Warning", "EvictionThresholdMet", "Attempting to reclaim memory"
        )
        for pod in pods_in_order(used):
            if not is_critical(pod.pod):
                self._messages[meta.uid(pod.pod)] = eviction_message(pod, available)
                self._enqueue(Key.of(pod.pod))
                return

    async def _set_condition(self, node: ReadOnlyTree, condition: ReadOnlyTree) -> None:
        if conditions.status(node, "MemoryPressure") == condition["status"]:
            return
        changed = conditions.set_condition(conditions.of(node), condition, self._now())
        entry = conditions.find(changed, "MemoryPressure")
        await self._client.patch(
            NODES,
            Key("", meta.name(node)),
            {"status": {"conditions": [entry]}},
            kind="strategic",
            subresource="status",
        )
