"""Keep the state of the cluster and the queue up to date by the informers.

Upstream: eventhandlers.go.
"""

from collections.abc import Callable

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.informer import Informers
from mockube.client.cache.store import Change
from mockube.client.component_helpers.device_claims import may_need_devices
from mockube.client.podview import PodView
from mockube.client.resources import Key, Resource

from . import pods, requeueing, watched
from .algorithm import SchedulingAlgorithm
from .cluster_state import ClusterState
from .podinfo import PodInfo
from .queue import SchedulingQueue
from .requeueing import Action, ClusterEvent


class EventHandlers:
    """Adds its handlers and the indexes that the scheduler reads to the informers."""

    def __init__(
        self,
        informers: Informers,
        state: ClusterState,
        queue: SchedulingQueue,
        algorithm: SchedulingAlgorithm,
    ) -> None:
        self._state = state
        self._queue = queue
        self._algorithm = algorithm
        self._gated: set[Key] = set()
        """The pods with scheduling gates."""
        self._waiting_for_claims: set[Key] = set()
        """The pods whose claims do not exist yet."""
        informers.of(kinds.NODES).add_handler(self._node_changed)
        informers.of(kinds.NAMESPACES).add_handler(self._namespace_changed)
        informers.of(kinds.PODS).add_handler(self._pod_changed)
        for resource, name, index in watched.INDEXES:
            informers.of(resource).add_index(name, index)
        for resource in watched.STORAGE:
            informers.of(resource).add_handler(self._storage_handler(resource))

    @property
    def gated(self) -> int:
        """The number of pods with scheduling gates."""
        return len(self._gated)

    def _update_pod(self, pod: PodView, old: PodView | None = None) -> None:
        """Follow a pod as it is now: on its node, in the queue, or in neither."""
        state = self._state
        self._gated.discard(pod.key)
        if pods.uses_resources(pod):
            # A pod that is only assumed is new for pods that wait.
            before = old if state.cache.has_pod(pod.uid) and not state.cache.is_assumed(pod.uid) else None
            state.nominator.delete(pod.uid)
            state.cache.update_pod(pod, pod.node)
            self._queue.delete(pod.key)
            actions = requeueing.pod_actions(before, pod)
            if actions:
                self._queue.move(ClusterEvent("Pod", actions, before, pod))
        elif not self._state.pending.contains(pod):
            self._remove_pod(pod)
            if pods.is_gated(pod):
                self._gated.add(pod.key)
        elif not state.cache.is_assumed(pod.uid):
            if self._waits_for_claims(pod):
                self._waiting_for_claims.add(pod.key)
                self._queue.delete(pod.key)
            else:
                self._queue.add(pod.key, int(pod.object["spec"].get("priority") or 0))

    def forget_assumed_pod(self, pod: PodView) -> PodView | None:
        """Drop the assumption that a pod runs on a node; return the pod as it is now if it has to be scheduled again."""
        self._state.cache.remove_pod(pod.uid)
        self._queue.move(ClusterEvent("Pod", Action.DELETE, pod))
        latest = self._state.pending.find(pod.key)
        if latest is None or latest.uid != pod.uid:
            return None
        self._queue.retry(pod.key)
        return latest

    def _remove_pod(self, pod: PodView) -> None:
        self._gated.discard(pod.key)
        self._queue.delete(pod.key)
        was_nominated = self._state.nominator.delete(pod.uid)
        if was_nominated or self._state.cache.has_pod(pod.uid):
            self._state.cache.remove_pod(pod.uid)
            self._queue.move(ClusterEvent("Pod", Action.DELETE, pod))

    def _pod_changed(self, change: Change) -> None:
        old, new = change
        if old is not None and (new is None or new.uid != old.uid):
            self._remove_pod(old)
            old = None
        if new is None:
            return
        self._follow_nomination(new, old)
        if old is None or self._state.pending.is_affected(old, new):
            self._update_pod(new, old)

    def _follow_nomination(self, pod: PodView, old: PodView | None) -> None:
        """Follow the nomination in the status of a waiting pod: another program, or a scheduler before this one, may write it."""
        if not self._state.pending.contains(pod) or self._state.cache.is_assumed(pod.uid):
            return
        was_pending = old is not None and self._state.pending.contains(old)
        before = pods.nominated_node(old.object) if old is not None and was_pending else ""
        node = pods.nominated_node(pod.object)
        if node == before:
            return
        if node:
            self._state.nominator.nominate(PodInfo.of(pod, self._state.gates), node)
        else:
            self._state.nominator.delete(pod.uid)
        if before:  # other pods may take its room there
            self._queue.move(ClusterEvent("Pod", Action.DELETE, pod))

    def _waits_for_claims(self, pod: PodView) -> bool:
        """Return whether a claim of the pod is not usable yet."""
        if (
            not may_need_devices(pod, self._state.gates)
            or not self._state.pending.profile_of(pod).allocates_devices
        ):
            return False
        return self._state.track_devices(self._devices_changed).waits_for_claims(pod)

    def _devices_changed(self, kind: str, change: Change | None) -> None:
        waiting, self._waiting_for_claims = self._waiting_for_claims, set()
        for key in waiting:
            view = self._state.pending.find(key)
            if view is not None:
                self._update_pod(view)
        self._queue.move(
            ClusterEvent(kind, Action.OTHER)
            if change is None
            else requeueing.event_of(kind, change.old, change.new)
        )

    def _node_changed(self, change: Change) -> None:
        if change.new is None:
            self._state.cache.remove_node(meta.name(change.last_known))
        else:
            self._state.cache.set_node(change.new)
        actions = requeueing.node_actions(change.old, change.new)
        if actions:
            devices = self._state.devices
            by_devices = () if devices is None else devices.extended_resources
            self._queue.move(ClusterEvent("Node", actions, change.old, change.new, by_devices))

    def _namespace_changed(self, change: Change) -> None:
        """Judge nodes anew: affinity terms may match the pods of a namespace now, or no longer."""
        if meta.labels(change.old or {}) != meta.labels(change.new or {}):
            self._algorithm.forget_classes()

    def _storage_handler(self, resource: Resource[ReadOnlyTree]) -> Callable[[Change], None]:
        """Return a handler of changes of storage for which pods may wait."""
        cache, storage = self._state.cache, self._state.storage

        def storage_changed(change: Change) -> None:
            for name in watched.nodes_of_change(change, resource, storage, cache.users_of_claim):
                cache.mark_changed(name)
            self._queue.move(requeueing.event_of(resource.kind, change.old, change.new))

        return storage_changed
