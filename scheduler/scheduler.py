"""Schedule pods one after the other, each on a snapshot of the cluster, and bind them concurrently.

A decision is synchronous, so that two pods never get the same resources. The scheduler assumes that a pod runs on its node
from the decision on.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import fraction
from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.informer import Informer
from mockube.client.cache.store import Change
from mockube.client.component import ComponentContext
from mockube.client.component_helpers.device_claims import may_need_devices
from mockube.client.events.recorder import Recorder
from mockube.client.podview import PodView
from mockube.client.resources import Key, Resource
from mockube.client.wire import NoResponse
from mockube.component_base.supervision import start

from . import pods, requeueing, watched
from .algorithm import SchedulingAlgorithm
from .binder import Binder, BindingFailure, BindingSlots
from .choice import MALFORMED_OBJECT_ERRORS, FeasibleNodes
from .cluster import ClusterSnapshot, SchedulerCache
from .failure import SchedulingFailure, failure_of, may_preempt
from .in_tree import devices_for
from .monitor import ERROR, SCHEDULED, UNSCHEDULABLE, SchedulerMonitor
from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .preemption import Candidate, Preemption, find_candidates
from .preemption_executor import PreemptionExecutor
from .profile import Profile
from .profiles import DEFAULT_SETTINGS, SchedulerSettings
from .queue import SchedulingQueue
from .requeueing import Action, ClusterEvent
from .volumes import AssumedBindings, ClaimBinding, claims_of

if TYPE_CHECKING:
    from .config.extender_access import ExtenderAccess
    from .device_binder import DeviceBinder
    from .devices.state import DeviceState
    from .extenders.chain import Extenders

LOG: Final = logging.getLogger(__name__)
_MAX_BINDINGS: Final = 32
"""The maximum number of bindings that send requests at the same time; further decisions wait."""


class Scheduler:
    """Keeps the cluster's state up to date by the informers, and schedules the pods of its queue."""

    def __init__(self, context: ComponentContext, settings: SchedulerSettings = DEFAULT_SETTINGS) -> None:
        self._client = context.client
        self._clock = context.clock
        self._random = context.random
        for warning in settings.warnings:
            LOG.warning("--scheduler-config: %s", warning)
        self._profiles = settings.profiles
        self._events = {
            name: context.recorder.series_of(name, name, can_wait=True) for name in self._profiles
        }
        self._informers: dict[Resource[ReadOnlyTree], Informer[ReadOnlyTree]] = {
            resource: context.informers.of(resource) for resource in watched.WATCHED
        }
        self._pods = context.informers.of(kinds.PODS)
        self._preemptions = PreemptionExecutor(context, self._events_of, self._resume)
        self._shared_informers = context.informers
        self._gates = context.informers.caches.gates
        self._cluster = SchedulerCache(self._gates)
        self._queue = SchedulingQueue(
            context.clock,
            self._preemptions.is_blocked,
            self._is_worth_requeuing,
            pops_from_backoff=self._gates.is_on("SchedulerPopFromBackoffQ"),
            backoff=(settings.initial_backoff, settings.max_backoff),
        )
        self._devices: DeviceState | None = None
        self._waiting_for_claims: set[Key] = set()
        """The pods whose claims do not exist yet."""
        self._assumed: set[str] = set()
        self._assumed_bindings = AssumedBindings()
        self._storage = watched.storage_of(context.informers.caches, self._assumed_bindings)
        self._workloads = watched.workloads_of(context.informers.caches)
        self._nominees: dict[str, tuple[str, PodInfo]] = {}
        """The nominated pods and their nodes by uid: they wait for the end of preempted pods."""
        self._gated: set[Key] = set()
        """The pods with scheduling gates."""
        self._monitor = SchedulerMonitor(context.clock.monotonic, context.metrics.registry)
        self._extenders = self._make_extenders(settings.extenders)
        self._algorithm = SchedulingAlgorithm(self._cluster, self._monitor, self._extenders)
        self._stop_reporting = context.metrics.registry.on_collect(self._report_state)
        self._binding_failures = context.metrics.task_restarts.of("scheduler/bind")
        self._scheduling_failures = context.metrics.task_restarts.of("scheduler/schedule")
        self._binding_slots = BindingSlots(_MAX_BINDINGS)
        self._binder = Binder(context, self._binding_slots, self._extenders)
        self._informers[kinds.NODES].add_handler(self._node_changed)
        self._informers[kinds.NAMESPACES].add_handler(self._namespace_changed)
        self._pods.add_handler(self._pod_changed)
        for resource, name, index in watched.INDEXES:
            self._informers[resource].add_index(name, index)
        for resource in watched.STORAGE:
            self._informers[resource].add_handler(self._move_by(resource))

    @staticmethod
    def _make_extenders(configurations: Sequence["ExtenderAccess"]) -> "Extenders | None":
        if not configurations:
            return None
        from .extenders.chain import Extenders  # noqa: PLC0415 - few have extenders

        return Extenders(configurations)

    async def run(self) -> None:
        """Schedule pods until cancelled, then wait for the bindings and preemptions that are sending requests."""
        await self._pods.wait_synced()
        for informer in self._informers.values():
            await informer.wait_synced()
        bindings: set[asyncio.Task[None]] = set()
        try:
            while True:
                await self._binding_slots.acquire()
                key = await self._queue.pop()
                try:
                    await self._schedule(key, bindings)
                except Exception:
                    # The pod is tried again with backoff, and others are scheduled meanwhile.
                    LOG.exception("scheduler: %s: scheduling failed and is retried", key)
                    self._scheduling_failures.value += 1
                    self._queue.retry(key)
                    self._binding_slots.release()
                finally:
                    self._queue.done()
        finally:
            self._stop_reporting()
            try:
                self._binding_slots.cancel_waiting()
                await asyncio.gather(*bindings, return_exceptions=True)
                await self._preemptions.finish()
            finally:
                if self._extenders is not None:
                    await self._extenders.close()

    def _profile_of(self, view: PodView) -> Profile:
        return self._profiles[pods.scheduler_name(view)]

    def _events_of(self, view: PodView) -> Recorder:
        return self._events[pods.scheduler_name(view)]

    # --- handlers of the caches

    def _node_changed(self, change: Change) -> None:
        if change.new is None:
            self._cluster.remove_node(meta.name(change.last_known))
        else:
            self._cluster.set_node(change.new)
        actions = requeueing.node_actions(change.old, change.new)
        if actions:
            by_devices = () if self._devices is None else self._devices.extended_resources
            self._queue.move(ClusterEvent("Node", actions, change.old, change.new, by_devices))

    def _namespace_changed(self, change: Change) -> None:
        """Judge nodes anew: affinity terms may match the pods of a namespace now, or no longer."""
        if meta.labels(change.old or {}) != meta.labels(change.new or {}):
            self._algorithm.forget_classes()

    def _move_by(self, resource: Resource[ReadOnlyTree]) -> Callable[[Change], None]:
        """Return a handler of changes of storage for which pods may wait."""

        def move(change: Change) -> None:
            users_of = self._cluster.users_of_claim
            for name in watched.nodes_of_change(change, resource, self._storage, users_of):
                self._cluster.mark_changed(name)
            self._queue.move(requeueing.event_of(resource.kind, change.old, change.new))

        return move

    def _is_worth_requeuing(self, key: Key, plugins: Collection[str], event: ClusterEvent) -> bool:
        view = self._pods.lister.get(*key)
        try:
            return view is None or requeueing.is_worth_requeuing(
                view, plugins, event, self._gates, self._profile_of(view).without_hints
            )
        except MALFORMED_OBJECT_ERRORS:  # among them the KeyError of a profile that does not exist
            return True

    def _pod_changed(self, change: Change) -> None:
        old, new = change
        if old is not None and (new is None or new.uid != old.uid):
            self._pod_removed(old)
            old = None
        if new is not None:
            self._follow_nomination(new, old)
        if new is not None and (old is None or pods.pod_change_affects_scheduling(old, new, self._profiles)):
            self._pod_updated(new, old)

    def _follow_nomination(self, pod: PodView, old: PodView | None) -> None:
        """Follow the nomination in the status of a waiting pod: another program, or a scheduler before this one, may write it."""
        if not pods.should_schedule(pod, self._profiles) or pod.uid in self._assumed:
            return
        was_waiting = old is not None and pods.should_schedule(old, self._profiles)
        before = pods.nominated_node(old.object) if old is not None and was_waiting else ""
        node = pods.nominated_node(pod.object)
        if node == before:
            return
        if node:
            self._nominees[pod.uid] = (node, PodInfo.of(pod, self._gates))
        else:
            self._nominees.pop(pod.uid, None)
        if before:  # other pods may take its room there
            self._queue.move(ClusterEvent("Pod", Action.DELETE, pod))

    def _pod_updated(self, pod: PodView, old: PodView | None = None) -> None:
        self._gated.discard(pod.key)
        if pods.uses_resources(pod):
            before = old if self._cluster.has_pod(pod.uid) and pod.uid not in self._assumed else None
            self._assumed.discard(pod.uid)
            self._nominees.pop(pod.uid, None)
            self._cluster.update_pod(pod, pod.node)
            self._queue.delete(pod.key)
            actions = requeueing.pod_actions(before, pod)
            if actions:
                self._queue.move(ClusterEvent("Pod", actions, before, pod))
        elif not pods.should_schedule(pod, self._profiles):
            self._pod_removed(pod)
            if pods.is_gated(pod):
                self._gated.add(pod.key)
        elif pod.uid not in self._assumed:
            if self._waits_for_claims(pod):
                self._waiting_for_claims.add(pod.key)
                self._queue.delete(pod.key)
            else:
                self._queue.add(pod.key, int(pod.object["spec"].get("priority") or 0))

    def _waits_for_claims(self, pod: PodView) -> bool:
        """Return whether a claim of the pod is not usable yet."""
        if not may_need_devices(pod, self._gates) or not self._profile_of(pod).allocates_devices:
            return False
        if self._devices is None:
            from .devices.state import (  # noqa: PLC0415 - few need it
                DeviceState,
            )

            self._devices = DeviceState(
                self._shared_informers, self._devices_changed, self._cluster.mark_changed
            )
        return self._devices.waits_for_claims(pod)

    def _devices_changed(self, kind: str, change: Change | None) -> None:
        waiting, self._waiting_for_claims = self._waiting_for_claims, set()
        for key in waiting:
            view = self._pods.lister.get(*key)
            if view is not None and pods.should_schedule(view, self._profiles):
                self._pod_updated(view)
        self._queue.move(
            ClusterEvent(kind, Action.OTHER)
            if change is None
            else requeueing.event_of(kind, change.old, change.new)
        )

    def _pod_removed(self, pod: PodView) -> None:
        self._gated.discard(pod.key)
        self._queue.delete(pod.key)
        self._assumed.discard(pod.uid)
        was_nominated = self._nominees.pop(pod.uid, None) is not None
        if was_nominated or self._cluster.has_pod(pod.uid):
            self._cluster.remove_pod(pod.uid)
            self._queue.move(ClusterEvent("Pod", Action.DELETE, pod))

    # --- scheduling

    def _snapshot(self, profile: Profile) -> ClusterSnapshot:
        namespaces = self._informers[kinds.NAMESPACES].lister

        def labels_of(name: str) -> Mapping[str, str]:
            namespace = namespaces.get("", name)
            return meta.labels(namespace) if namespace else {}

        return ClusterSnapshot(
            nodes=self._cluster.nodes()
            if profile.percentage_of_nodes_to_score is None
            else self._cluster.nodes_in_turn(),
            labels_of_namespace=labels_of,
            storage=self._storage,
            devices=None if self._devices is None else self._devices.snapshot(),
            matching_counts=self._cluster.matching_counts,
            users_of_claim=self._cluster.users_of_claim,
            image_sizes=self._cluster.image_sizes,
            topology_keys=self._cluster.topology_keys,
            workloads=self._workloads,
            gates=self._gates,
            nominees=lambda node: [pod for node_name, pod in self._nominees.values() if node_name == node],
        )

    async def _schedule(self, key: Key, bindings: set[asyncio.Task[None]]) -> None:
        """Decide on a pod, and start its binding. Releases the slot of `_binding_slots`, now or after the binding."""
        if self._devices is not None:
            await self._devices.wait_synced(self._clock)
        view = self._pods.lister.get(*key)
        if view is None or not pods.should_schedule(view, self._profiles):
            self._queue.delete(key)
            self._binding_slots.release()
            return
        monitor, attempts = self._monitor, self._queue.attempts_of(key)
        began, profile = monitor.monotonic(), self._profile_of(view)
        pod, snapshot = PodInfo.of(view, self._gates), self._snapshot(profile)
        leaves_room = self._must_leave_room(pod)
        best, feasible_nodes = await self._algorithm.decide(pod, snapshot, profile, leaves_room=leaves_room)
        monitor.algorithm.observe(monitor.monotonic() - began)
        if not self._still_waits(view):  # It was deleted while an extender was asked.
            self._binding_slots.release()
            return
        if not best:
            result = ERROR if feasible_nodes.is_error else UNSCHEDULABLE
            monitor.record_attempt(result, began, profile.name)
            await self._handle_failure(pod, snapshot, feasible_nodes, profile)
            if feasible_nodes.is_error:
                self._queue.retry(key)
            else:
                self._queue.add_unschedulable(key, feasible_nodes.plugins)
            self._binding_slots.release()
            return
        node = self._select_node(best)
        claims = claims_of(pod, snapshot.storage) if profile.binds_volumes else ""
        assigned = [] if isinstance(claims, str) else claims.assign(node.node, snapshot.storage)
        volumes = [] if isinstance(assigned, str) else assigned
        devices = self._reserve_devices(pod, node, snapshot) if profile.allocates_devices else None
        self._cluster.assign_pod(pod, node.name)
        self._assumed.add(view.uid)
        self._nominees.pop(view.uid, None)  # it has its room now
        self._assumed_bindings.assume(view.uid, node.name, volumes)
        attempt = _Attempt(profile, began, *attempts)
        task = start(f"scheduler/bind {key}", self._bind(pod, node.name, volumes, devices, attempt))
        bindings.add(task)
        task.add_done_callback(bindings.discard)

    def _still_waits(self, view: PodView) -> bool:
        """Return whether a pod still has to be scheduled, after something was awaited."""
        latest = self._pods.lister.get(*view.key)
        return latest is not None and latest.uid == view.uid and pods.should_schedule(latest, self._profiles)

    def _must_leave_room(self, pod: PodInfo) -> bool:
        """Return whether other pods are nominated for nodes that the pod may not take from them."""
        return any(
            nominee.priority >= pod.priority and uid != pod.view.uid
            for uid, (_, nominee) in self._nominees.items()
        )

    def _reserve_devices(
        self, pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot
    ) -> "DeviceBinder | None":
        """Allocate the devices of a pod, which are in use from now on. Returns what writes that; None if it needs none."""
        devices = devices_for(pod, snapshot)
        if self._devices is None or devices is None:
            return None
        from .device_binder import (  # noqa: PLC0415 - few need it
            DeviceBinder,
        )

        reservation = self._devices.allocate(pod, node, devices, format_time(self._clock.now()))
        return DeviceBinder(self._client, self._devices, pod.view, reservation)

    def _select_node(self, best: Sequence[NodeInfo]) -> NodeInfo:
        return best[int(fraction(self._random) * len(best))]

    async def _handle_failure(
        self, pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, profile: Profile
    ) -> None:
        """Preempt pods of lower priority if that helps, and report in an Event and the status why no node is feasible."""
        preemption = await self._find_preemption(pod, snapshot, feasible_nodes, profile)
        if not self._still_waits(pod.view):
            return
        failure = failure_of(pod, snapshot, feasible_nodes, preemption, profile)
        nominee = None if failure.keeps_nomination else ""
        if not feasible_nodes.is_error:
            self._monitor.record_preemption(len(failure.candidate.victims) if failure.candidate else 0)
        if failure.candidate is not None:
            nominee = failure.candidate.node
            self._nominate_and_evict(pod, failure.candidate)
        elif not failure.keeps_nomination:
            self._nominees.pop(pod.view.uid, None)
        await self._release_claims(failure)
        reason = "SchedulerError" if feasible_nodes.is_error else "Unschedulable"
        await self._report(pod.view, failure, nominee, reason)

    async def _find_preemption(
        self, pod: PodInfo, snapshot: ClusterSnapshot, feasible_nodes: FeasibleNodes, profile: Profile
    ) -> Preemption:
        """Return the candidates of a preemption that extenders accept, if it is tried at all."""
        if not may_preempt(snapshot, feasible_nodes, profile):
            return Preemption()
        budgets = self._informers[kinds.POD_DISRUPTION_BUDGETS].lister.all()
        offset = fraction(self._random) if profile.limits_candidates else 0.0
        preemption = find_candidates(pod, snapshot, feasible_nodes, budgets, profile, offset)
        if self._extenders is None or not preemption.candidates:
            return preemption
        return await self._extenders.process_preemption(pod, preemption, snapshot)

    async def _release_claims(self, failure: SchedulingFailure) -> None:
        """Deallocate or delete the claim that prevents a pod from running."""
        if failure.unused_claim is None and failure.stale_claim is None:
            return
        from .device_binder import (  # noqa: PLC0415 - few need it
            deallocate_claim,
            delete_claim,
        )

        if failure.unused_claim is not None:
            await deallocate_claim(self._client, failure.unused_claim)
        elif failure.stale_claim is not None:
            await delete_claim(self._client, failure.stale_claim)

    async def _report(
        self, view: PodView, failure: SchedulingFailure, nominee: str | None, reason: str
    ) -> None:
        """Report in an Event and in the status why a pod is not scheduled."""
        about = view.object
        self._events_of(view).record(about, "Warning", "FailedScheduling", failure.note, action="Scheduling")
        patch = pods.unschedulable_patch(about, failure.message, self._clock.now(), nominee, reason)
        try:
            if patch is not None:
                await self._client.patch(kinds.PODS, view.key, patch, subresource="status")
        except (NotFound, Conflict):
            return  # The pod is deleted, which an event will report.
        except (ApiError, NoResponse) as error:
            LOG.warning("scheduler: %s: %s", view.key, error)

    def _nominate_and_evict(self, pod: PodInfo, candidate: Candidate) -> None:
        """Nominate the pod for a node in place of pods of lower priority, and start the eviction of the victims."""
        displaced_nominees = [
            nominee
            for node, nominee in self._nominees.values()
            if node == candidate.node and nominee.priority < pod.priority
        ]
        for nominee in displaced_nominees:
            del self._nominees[nominee.view.uid]
        self._nominees[pod.view.uid] = (candidate.node, pod)
        self._preemptions.preempt(pod, candidate, displaced_nominees)

    def _report_state(self) -> None:
        pending = self._queue.pending(len(self._gated))
        cache = self._cluster.sizes() | {"assumed_pods": len(self._assumed)}
        rejected = [(self._profile_name(key), plugins) for key, plugins in self._queue.rejected()]
        self._monitor.report_state(pending, rejected, cache)

    def _profile_name(self, key: Key) -> str:
        view = self._pods.lister.get(*key)
        return pods.DEFAULT_SCHEDULER if view is None else pods.scheduler_name(view)

    def _resume(self, key: Key) -> None:
        self._queue.resume(key)

    # --- binding

    async def _bind(
        self,
        pod: PodInfo,
        node: str,
        volumes: list[ClaimBinding],
        devices: "DeviceBinder | None",
        attempt: "_Attempt",
    ) -> None:
        """Write the allocations of devices, and bind the pod. Allocations that were not written are released."""
        try:
            if devices is not None:
                await devices.bind()
            binding_began = self._monitor.monotonic()
            await self._binder.bind(pod, node, volumes, attempt.profile.bind_timeout)
            self._monitor.record_extension_point("Bind", binding_began, attempt.profile.name)
        except BindingFailure as error:
            self._monitor.record_attempt(ERROR, attempt.began, attempt.profile.name)
            await self._handle_binding_failure(pod, devices, error)
        except Exception as error:
            LOG.exception("scheduler: %s: binding failed and is retried", pod.view.key)
            self._binding_failures.value += 1
            self._monitor.record_attempt(ERROR, attempt.began, attempt.profile.name)
            await self._handle_binding_failure(
                pod, devices, BindingFailure.of_plugin("Bind", "DefaultBinder", error)
            )
        else:
            self._monitor.record_attempt(SCHEDULED, attempt.began, attempt.profile.name)
            self._monitor.record_bound(attempt.number, attempt.first_at)
            text = f"Successfully assigned {pod.view.key} to {node}"
            self._events_of(pod.view).record(pod.view.object, "Normal", "Scheduled", text, action="Binding")
        finally:
            self._assumed_bindings.forget(pod.view.uid)
            if devices is not None:
                devices.finish()
            self._binding_slots.release()

    async def _handle_binding_failure(
        self, pod: PodInfo, devices: "DeviceBinder | None", error: BindingFailure
    ) -> None:
        """Drop the assumption that the pod runs on the node. If it is bound nevertheless, the next event corrects that."""
        key = pod.view.key
        if devices is not None:
            await devices.withdraw()
        if pod.view.uid not in self._assumed:
            return
        LOG.info("scheduler: %s: binding failed: %s", key, error)
        self._assumed.discard(pod.view.uid)
        self._cluster.remove_pod(pod.view.uid)
        self._queue.move(ClusterEvent("Pod", Action.DELETE, pod.view))
        latest = self._pods.lister.get(*key)
        if latest is None or latest.uid != pod.view.uid:
            return
        if not pods.should_schedule(latest, self._profiles):
            self._pod_updated(latest)
            return
        self._queue.retry(key)
        await self._report(latest, SchedulingFailure(message=str(error)), "", "SchedulerError")


class _Attempt(NamedTuple):
    """An attempt to schedule a pod: when it began, and which one it is of the pod."""

    profile: Profile
    began: float
    number: int
    first_at: float
