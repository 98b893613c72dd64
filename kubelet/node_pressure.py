"""A resource of nodes of which their pods may use more than there is: the condition of a node, and the pods that its kubelet evicts.

Upstream: pkg/kubelet/eviction/eviction_manager.go.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import NODES
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key

from .evictions import Evictions
from .node_objects import NODE_CONDITIONS, has_active_kubelet
from .pod_lifecycle.eviction import Eviction
from .pod_lifecycle.preemption import is_critical
from .pod_lifecycle.pressure_eviction import Observation, eviction_message, pods_in_order
from .settings import KubeletContext

INTERVAL: Final = timedelta(seconds=10)
"""The time between two looks at a node, in each of which at most one pod is evicted."""
TRANSITION: Final = timedelta(minutes=5)
"""The time for which the condition outlives the shortage."""


class NodePressure(ABC):
    """Watches the nodes on which a resource may be short."""

    def __init__(
        self,
        context: KubeletContext,
        evictions: Evictions,
        enqueue: Callable[[Key], None],
        *,
        resource: str,
        pressure: ReadOnlyTree,
    ) -> None:
        """`enqueue` is called with the key of a pod that is evicted; `pressure` is the condition of a node on which the resource is short."""
        self._nodes = context.informers.of(NODES).lister
        self._client, self._recorder = context.client, context.recorder.of("kubelet")
        self._now, self._evictions, self._enqueue = context.clock.now, evictions, enqueue
        self._resource, self._pressure = resource, pressure
        self._no_pressure = next(each for each in NODE_CONDITIONS if each["type"] == pressure["type"])
        self._observed: dict[str, datetime] = {}
        """When the resource was short on a node for the last time, by its name."""
        self._loop = ReconcileLoop(
            f"{resource}-pressure", self._look_at, workers=1, clock=context.clock, metrics=context.metrics
        )

    @abstractmethod
    def _observe(self, node: ReadOnlyTree) -> Observation:
        """Return what is left of the resource on a node."""

    def _may_be_short(self, node: str) -> bool:
        """Return whether the resource may become short on a node without a call of `watch`."""
        del node
        return False

    async def _reclaim(self, node: ReadOnlyTree) -> None:
        """Free what can be freed without an eviction."""
        del node

    async def run(self) -> None:
        await self._loop.run()

    def watch(self, node: str) -> None:
        """Look at a node on which the resource may have become short."""
        self._loop.add(Key("", node))

    def forget_node(self, name: str) -> None:
        self._observed.pop(name, None)

    async def _look_at(self, key: Key) -> timedelta | None:
        node, now = self._nodes.get(*key), self._now()
        if node is None or not has_active_kubelet(node):
            return None
        observation = self._observe(node)
        if observation.is_short:
            self._observed[key.name] = now
            await self._set_condition(node, self._pressure)
            await self._relieve(node, observation)
            return INTERVAL
        if key.name not in self._observed:
            return INTERVAL if self._may_be_short(key.name) else None
        if now - self._observed[key.name] < TRANSITION:
            return INTERVAL
        del self._observed[key.name]
        await self._set_condition(node, self._no_pressure)
        return INTERVAL

    async def _relieve(self, node: ReadOnlyTree, observation: Observation) -> None:
        """Free what nobody uses; evict a pod if that is not enough."""
        message = f"Attempting to reclaim {self._resource}"
        self._recorder.record_on(meta.name(node), node, "Warning", "EvictionThresholdMet", message)
        await self._reclaim(node)
        if not self._observe(node).is_short:
            return
        for pod in pods_in_order(observation.pods):
            if not is_critical(pod.pod):
                text = eviction_message(pod, observation.threshold, observation.available)
                self._evictions.add(meta.uid(pod.pod), Eviction(self._now(), text, is_disruption=True))
                self._enqueue(Key.of(pod.pod))
                return

    async def _set_condition(self, node: ReadOnlyTree, condition: ReadOnlyTree) -> None:
        if conditions.status(node, condition["type"]) == condition["status"]:
            return
        changed = conditions.set_condition(conditions.of(node), condition, self._now())
        entry = conditions.find(changed, condition["type"])
        await self._client.patch(
            NODES,
            Key("", meta.name(node)),
            {"status": {"conditions": [entry]}},
            kind="strategic",
            subresource="status",
        )
