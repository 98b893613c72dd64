"""The scheduling queue: active pods, pods in backoff, and unschedulable pods that wait for a change of the cluster.

Upstream: pkg/scheduler/backend/queue. Pods of higher priority are first, then those that have waited longest.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from mockube.apimachinery.clock import Clock, Timer
from mockube.controller_manager.client.resources import Key

INITIAL_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 10.0
MAX_UNSCHEDULABLE_SECONDS: Final = 300.0
"""The time after which an unschedulable pod is tried again even without a change."""


class _QueuedPod(Struct, eq=False):
    key: Key
    priority: int
    sequence_number: int
    """The order in which pods were added."""
    attempts: int = 0
    is_active: bool = False
    retry_at: float = 0.0
    timer: Timer | None = None

    def __lt__(self, other: "_QueuedPod") -> bool:
        return (-self.priority, self.sequence_number) < (-other.priority, other.sequence_number)


class SchedulingQueue:
    def __init__(self, clock: Clock, is_blocked: Callable[[Key], bool] = lambda _: False) -> None:
        """Create an empty queue. A blocked pod is not tried again until it is resumed."""
        self._clock = clock
        self._is_blocked = is_blocked
        self._pods: dict[Key, _QueuedPod] = {}
        self._active: list[_QueuedPod] = []
        self._unschedulable: dict[Key, _QueuedPod] = {}
        self._unschedulable_dependents: set[Key] = set()
        """The unschedulable pods that depend on the nodes of other pods."""
        self._in_flight: Key | None = None
        self._moved_during_attempt = False
        self._assigned_during_attempt = False
        self._count = 0
        self._wake = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Whether no pod is being scheduled or can be tried now. Others may be due later."""
        return self._in_flight is None and not any(self._is_queued(entry) for entry in self._active)

    def add(self, key: Key, priority: int) -> None:
        """Add a pod that was created or changed, or move it out of the unschedulable pods."""
        queued_pod = self._pods.get(key)
        if queued_pod is None:
            self._count += 1
            queued_pod = self._pods[key] = _QueuedPod(key, priority, self._count)
            self._activate(queued_pod)
        elif key in self._unschedulable:
            self._move_to_active_or_backoff(queued_pod)
        elif key == self._in_flight:
            self._moved_during_attempt = True

    def delete(self, key: Key) -> None:
        """Remove a pod that is deleted or bound."""
        queued_pod = self._pods.pop(key, None)
        self._remove_unschedulable(key)
        if queued_pod is not None:
            _cancel_timer(queued_pod)

    def assigned_pod_added(self) -> None:
        """Try the unschedulable pods that depend on other pods again, because a pod was bound."""
        self._assigned_during_attempt = True
        for key in [*self._unschedulable_dependents]:
            self._move_to_active_or_backoff(self._unschedulable[key])

    def move_all_to_active_or_backoff(self) -> None:
        """Try all unschedulable pods again, because a change of the cluster may make them schedulable."""
        self._moved_during_attempt = True
        for queued_pod in [*self._unschedulable.values()]:
            self._move_to_active_or_backoff(queued_pod)

    def resume(self, key: Key) -> None:
        """Try a pod again that is no longer blocked."""
        if key == self._in_flight:
            self._moved_during_attempt = True
        elif key in self._unschedulable:
            self._move_to_active_or_backoff(self._unschedulable[key])

    async def pop(self) -> Key:
        """Wait for the next pod to schedule. The caller calls `add_unschedulable` or `delete`, and then `done`."""
        while True:
            while self._active:
                queued_pod = heapq.heappop(self._active)
                queued_pod.is_active = False
                if self._is_queued(queued_pod):
                    self._in_flight, self._moved_during_attempt, self._assigned_during_attempt = (
                        queued_pod.key,
                        False,
                        False,
                    )
                    queued_pod.attempts += 1
                    return queued_pod.key
            self._wake.clear()
            await self._wake.wait()

    def done(self) -> None:
        self._in_flight = None

    def add_unschedulable(self, key: Key, *, depends_on_pods: bool = False) -> None:
        """Add a pod for which no node is feasible. `depends_on_pods`: it has pod affinity or a spread constraint."""
        queued_pod = self._pods.get(key)
        if queued_pod is None:
            return
        backoff = min(INITIAL_BACKOFF * 2 ** (queued_pod.attempts - 1), MAX_BACKOFF)
        queued_pod.retry_at = self._clock.monotonic() + backoff
        self._unschedulable[key] = queued_pod
        if depends_on_pods:
            self._unschedulable_dependents.add(key)
        self._call_after(MAX_UNSCHEDULABLE_SECONDS, queued_pod, self._move_to_active_or_backoff)
        if self._moved_during_attempt or (depends_on_pods and self._assigned_during_attempt):
            self._move_to_active_or_backoff(queued_pod)

    def retry(self, key: Key) -> None:
        """Try a pod again after its backoff, because no change of the cluster may end the reason of the failure."""
        self._moved_during_attempt = True
        self.add_unschedulable(key)

    def _move_to_active_or_backoff(self, queued_pod: _QueuedPod) -> None:
        """Move a pod to the active ones, after its backoff."""
        if self._is_blocked(queued_pod.key):
            return
        self._remove_unschedulable(queued_pod.key)
        remaining = queued_pod.retry_at - self._clock.monotonic()
        if remaining > 0:
            self._call_after(remaining, queued_pod, self._activate)
        else:
            self._activate(queued_pod)

    def _remove_unschedulable(self, key: Key) -> None:
        self._unschedulable.pop(key, None)
        self._unschedulable_dependents.discard(key)

    def _activate(self, queued_pod: _QueuedPod) -> None:
        _cancel_timer(queued_pod)
        if self._is_queued(queued_pod) and not queued_pod.is_active:
            queued_pod.is_active = True
            heapq.heappush(self._active, queued_pod)
            self._wake.set()

    def _call_after(self, seconds: float, queued_pod: _QueuedPod, then: Callable[[_QueuedPod], None]) -> None:
        _cancel_timer(queued_pod)
        queued_pod.timer = self._clock.call_later(seconds, lambda: then(queued_pod))

    def _is_queued(self, queued_pod: _QueuedPod) -> bool:
        """Return whether a pod was neither deleted nor replaced by another one of its name."""
        return self._pods.get(queued_pod.key) is queued_pod


def _cancel_timer(queued_pod: _QueuedPod) -> None:
    if queued_pod.timer is not None:
        queued_pod.timer.cancel()
        queued_pod.timer = None
