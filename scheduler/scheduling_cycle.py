"""Decide on one pod, and assume that it runs on its node from then on.

Upstream: schedulingCycle in schedule_one.go.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mockube.apimachinery.randomness import fraction
from mockube.apimachinery.timestamps import format_time
from mockube.client.component import ComponentContext
from mockube.client.resources import Key

from .algorithm import SchedulingAlgorithm
from .cluster import ClusterSnapshot
from .cluster_state import ClusterState
from .failure_handler import FailureHandler
from .in_tree import devices_for
from .monitor import ERROR, UNSCHEDULABLE, SchedulerMonitor
from .nodeinfo import NodeInfo
from .podinfo import PodInfo
from .profile import Profile
from .queue import SchedulingQueue
from .volumes import ClaimBinding, claims_of

if TYPE_CHECKING:
    from .device_binder import DeviceBinder


class AssumedPod(NamedTuple):
    """A pod that counts as running on its node and has to be bound to it."""

    pod: PodInfo
    node: str
    volumes: Sequence[ClaimBinding]
    devices: "DeviceBinder | None"
    """What writes the allocations of its devices; None if it has none."""
    profile: Profile
    began: float
    """When the attempt began."""
    attempts: int
    first_attempt_at: float


class SchedulingCycle:
    """A decision awaits nothing but extenders, so that two pods never get the same resources."""

    def __init__(
        self,
        context: ComponentContext,
        state: ClusterState,
        queue: SchedulingQueue,
        algorithm: SchedulingAlgorithm,
        failures: FailureHandler,
        monitor: SchedulerMonitor,
    ) -> None:
        self._client = context.client
        self._clock = context.clock
        self._random = context.random
        self._state = state
        self._queue = queue
        self._algorithm = algorithm
        self._failures = failures
        self._monitor = monitor

    async def schedule(self, key: Key) -> AssumedPod | None:
        """Return the pod with its node; None if it waits again in the queue, or needs no node any more."""
        state, monitor = self._state, self._monitor
        if state.devices is not None:
            await state.devices.wait_synced(self._clock)
        view = state.pending.find(key)
        if view is None:
            self._queue.delete(key)
            return None
        attempts = self._queue.attempts_of(key)
        began, profile = monitor.monotonic(), state.pending.profile_of(view)
        pod, snapshot = PodInfo.of(view, state.gates), state.snapshot(profile)
        leaves_room = state.nominator.must_leave_room(pod)
        best, feasible_nodes = await self._algorithm.decide(pod, snapshot, profile, leaves_room=leaves_room)
        monitor.algorithm.observe(monitor.monotonic() - began)
        if not state.pending.still_contains(view):  # It was deleted while an extender was asked.
            return None
        if best:
            node = best[int(fraction(self._random) * len(best))]
            return self._assume(pod, node, snapshot, profile, began, attempts)
        monitor.record_attempt(ERROR if feasible_nodes.is_error else UNSCHEDULABLE, began, profile.name)
        await self._failures.handle(pod, snapshot, feasible_nodes, profile)
        if feasible_nodes.is_error:
            self._queue.retry(key)
        else:
            self._queue.add_unschedulable(key, feasible_nodes.plugins)
        return None

    def _assume(
        self,
        pod: PodInfo,
        node: NodeInfo,
        snapshot: ClusterSnapshot,
        profile: Profile,
        began: float,
        attempts: tuple[int, float],
    ) -> AssumedPod:
        """Choose the volumes and devices of a pod, and count them, and the room on the node, as in use."""
        claims = claims_of(pod, snapshot.storage) if profile.binds_volumes else ""
        assigned = [] if isinstance(claims, str) else claims.assign(node.node, snapshot.storage)
        volumes = [] if isinstance(assigned, str) else assigned
        devices = self._reserve_devices(pod, node, snapshot) if profile.allocates_devices else None
        self._state.assume(pod, node, volumes)
        return AssumedPod(pod, node.name, volumes, devices, profile, began, *attempts)

    def _reserve_devices(
        self, pod: PodInfo, node: NodeInfo, snapshot: ClusterSnapshot
    ) -> "DeviceBinder | None":
        """Allocate the devices of a pod, which are in use from now on. Returns what writes that; None if it needs none."""
        state, devices = self._state.devices, devices_for(pod, snapshot)
        if state is None or devices is None:
            return None
        from .device_binder import DeviceBinder  # noqa: PLC0415 - few need it

        reservation = state.allocate(pod, node, devices, format_time(self._clock.now()))
        return DeviceBinder(self._client, state, pod.view, reservation)
