"""The nodes whose pods use more memory than there is.

The most that each pod may use is known when it starts; a node is watched only while the sum of its pods may exceed its memory.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from math import inf
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.component_helpers.pod_requests import MEMORY, amounts
from mockube.client.kinds import PODS
from mockube.client.podview import RUNNING, PodView
from mockube.client.resources import Key
from mockube.container_runtime.pod_script import script_of

from .containers import Containers
from .evictions import Evictions
from .node_pressure import NodePressure
from .pod_lifecycle.pressure_eviction import MEMORY_THRESHOLD, Observation, PodUsage
from .settings import KubeletContext

_PRESSURE: Final = {
    "type": "MemoryPressure",
    "status": "True",
    "reason": "KubeletHasInsufficientMemory",
    "message": "kubelet has insufficient memory available",
}
_MUCH: Final = 1 << 62
"""What is available on a node that does not say how much memory it has."""


class MemoryPressure(NodePressure):
    def __init__(
        self,
        context: KubeletContext,
        containers: Containers,
        evictions: Evictions,
        enqueue: Callable[[Key], None],
    ) -> None:
        """`enqueue` is called with the key of a pod that is evicted."""
        super().__init__(context, evictions, enqueue, resource=MEMORY, pressure=_PRESSURE)
        self._pods = context.informers.of(PODS).lister
        self._runtime, self._predictions = containers.runtime, containers.predictions
        self._images = containers.image_table
        self._bounds: defaultdict[str, dict[str, tuple[Key, float]]] = defaultdict(dict)
        """The keys of pods, and the most memory that they may use, by node and uid."""
        self._sums: defaultdict[str, float] = defaultdict(float)

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
            if self._may_be_short(new.node):
                self.watch(new.node)

    def forget_node(self, name: str) -> None:
        super().forget_node(name)
        self._bounds.pop(name, None)
        self._sums.pop(name, None)

    def _forget(self, pod: PodView) -> None:
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
        if self._images.behavior_of(container) is not None:
            yield self._predictions.server_load(container, script)

    def _may_be_short(self, node: str) -> bool:
        return self._sums[node] > self._allocatable(node) - MEMORY_THRESHOLD

    def _allocatable(self, name: str) -> float:
        node = self._nodes.get("", name)
        return float(amounts(((node or {}).get("status") or {}).get("allocatable"))[MEMORY]) or inf

    def _observe(self, node: ReadOnlyTree) -> Observation:
        name = meta.name(node)
        pods = (*self._used_by_pods(name),)
        available = min(self._allocatable(name) - sum(pod.total for pod in pods), _MUCH)
        return Observation(available=int(available), threshold=MEMORY_THRESHOLD, pods=pods)

    def _used_by_pods(self, node: str) -> Iterator[PodUsage]:
        for uid, (key, bound) in self._bounds[node].items():
            pod = self._pods.get(*key) if bound else None
            if pod is None or pod.uid != uid or uid in self._evictions:
                continue
            stats = {
                container["name"]: self._runtime.container_stats(pod.object, container["name"])
                for container in every_container(pod.object["spec"])
            }
            yield PodUsage(
                pod=pod.object,
                resource=MEMORY,
                used={name: int(each.memory) for name, each in stats.items() if each is not None},
            )
