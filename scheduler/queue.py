"""The scheduling queue: active pods, pods in backoff, and unschedulable pods that wait for a change of the cluster.

Upstream: pkg/scheduler/backend/queue. Pods of higher priority are first, then those that have waited longest.
"""

import asyncio
import heapq
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from mockube.client.resources import Key
from mockube.component_base.clock import Clock, Timer

from .requeueing import ANYTHING, ClusterEvent

DEFAULT_BACKOFF: Final = (1.0, 10.0)
"""The default podInitialBackoffSeconds and podMaxBackoffSeconds of kube-scheduler."""
MAX_UNSCHEDULABLE_SECONDS: Final = 300.0
"""The time after which an unschedulable pod is tried again even without a change."""
MAX_EARLY: Final = 64
"""The number of pods in backoff up to which they are tried before their backoff ends, if no other pod is active."""
_MAX_EVENTS: Final = 1000
"""The number of events during an attempt beyond which the pod is tried again whatever they are."""


class _QueuedPod(Struct, eq=False):
    key: Key
    priority: int
    sequence_number: int
    """The order in which pods were added."""
    failures: int = 0
    """The number of attempts in which plugins rejected the pod."""
    errors: int = 0
    """The number of attempts in a row that ended with an error."""
    plugins: frozenset[str] = frozenset()
    """The plugins that rejected the pod in its last attempt; none after an error."""
    is_active: bool = False
    retry_at: float = 0.0
    timer: Timer | None = None
    attempts: int = 0
    first_attempt_at: float = 0.0

    def __lt__(self, other: "_QueuedPod") -> bool:
        return (-self.priority, self.sequence_number) < (-other.priority, other.sequence_number)


class SchedulingQueue:
    def __init__(
        self,
        clock: Clock,
        is_blocked: Callable[[Key], bool] = lambda _: False,
        is_worth: Callable[[Key, Collection[str], ClusterEvent], bool] = lambda _, __, ___: True,
        *,
        pops_from_backoff: bool = True,
        backoff: tuple[float, float] = DEFAULT_BACKOFF,
    ) -> None:
        """Create an empty queue.

        A blocked pod is not tried again until it is resumed. `is_worth` returns whether an event may make a pod schedulable that
        plugins rejected. With `pops_from_backoff`, a pod in backoff after a rejection is tried if no pod is active. `backoff` is the
        first one of a pod and the longest one, in seconds.
        """
        self._clock = clock
        self._is_blocked = is_blocked
        self._is_worth = is_worth
        self._pops_from_backoff = pops_from_backoff
        self._initial_backoff, self._max_backoff = backoff
        self._pods: dict[Key, _QueuedPod] = {}
        self._active: list[_QueuedPod] = []
        self._in_backoff: dict[Key, _QueuedPod] = {}
        """The pods in backoff that plugins rejected, without those after an error."""
        self._unschedulable: dict[Key, _QueuedPod] = {}
        self._in_flight: Key | None = None
        self._events: list[ClusterEvent] = []
        """The events during the attempt in progress."""
        self._count = 0
        self._wake = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Whether no pod is being scheduled or can be tried now. Others may be due later."""
        can_try = any(self._is_queued(entry) for entry in self._active) or self._can_pop_early()
        return self._in_flight is None and not can_try

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
            self._events.append(ANYTHING)

    def delete(self, key: Key) -> None:
        """Remove a pod that is deleted or bound."""
        queued_pod = self._pods.pop(key, None)
        self._unschedulable.pop(key, None)
        self._in_backoff.pop(key, None)
        if queued_pod is not None:
            _cancel_timer(queued_pod)

    def move(self, event: ClusterEvent = ANYTHING) -> None:
        """Try the unschedulable pods again that an event may make schedulable."""
        if self._in_flight is not None:
            if len(self._events) >= _MAX_EVENTS:
                self._events = [ANYTHING]
            self._events.append(event)
        for queued_pod in [*self._unschedulable.values()]:  # a pod that is moved is removed
            if self._is_worth(queued_pod.key, queued_pod.plugins, event):
                self._move_to_active_or_backoff(queued_pod)

    def resume(self, key: Key) -> None:
        """Try a pod again that is no longer blocked."""
        if key == self._in_flight:
            self._events.append(ANYTHING)
        elif key in self._unschedulable:
            self._move_to_active_or_backoff(self._unschedulable[key])

    async def pop(self) -> Key:
        """Wait for the next pod to schedule. The caller calls `add_unschedulable` or `delete`, and then `done`."""
        while True:
            while self._active or self._can_pop_early():
                queued_pod = heapq.heappop(self._active) if self._active else self._pop_early()
                queued_pod.is_active = False
                if self._is_queued(queued_pod):
                    if not queued_pod.attempts:
                        queued_pod.first_attempt_at = self._clock.monotonic()
                    queued_pod.attempts += 1
                    self._in_flight = queued_pod.key
                    self._events = []
                    return queued_pod.key
            self._wake.clear()
            await self._wake.wait()

    def attempts_of(self, key: Key) -> tuple[int, float]:
        """Return the number of attempts of a pod, and the time of the first one."""
        queued_pod = self._pods[key]
        return queued_pod.attempts, queued_pod.first_attempt_at

    def pending(self, gated: int) -> Mapping[str, int]:
        """Return the number of pods that wait, by upstream's names of the queues; gated ones are not in this one."""
        waiting, unschedulable = len(self._pods) - (self._in_flight in self._pods), len(self._unschedulable)
        active = sum(self._is_queued(queued_pod) for queued_pod in self._active)
        backoff = max(waiting - unschedulable - active, 0)
        return {"active": active, "backoff": backoff, "gated": gated, "unschedulable": unschedulable}

    def rejected(self) -> Iterable[tuple[Key, Collection[str]]]:
        """Return each unschedulable pod with the plugins that rejected it."""
        return [(key, queued_pod.plugins) for key, queued_pod in self._unschedulable.items()]

    def done(self) -> None:
        self._in_flight = None
        self._events = []

    def add_unschedulable(self, key: Key, plugins: Collection[str]) -> None:
        """Add a pod for which no node is feasible, because plugins rejected them."""
        queued_pod = self._pods.get(key)
        if queued_pod is None or queued_pod.is_active:  # a new pod of the same name was added
            return
        queued_pod.plugins = frozenset(plugins)
        queued_pod.failures, queued_pod.errors = queued_pod.failures + 1, 0
        self._back_off(queued_pod, queued_pod.failures)
        self._unschedulable[key] = queued_pod
        self._call_after(MAX_UNSCHEDULABLE_SECONDS, queued_pod, self._move_to_active_or_backoff)
        if any(self._is_worth(key, queued_pod.plugins, event) for event in self._events):
            self._move_to_active_or_backoff(queued_pod)

    def retry(self, key: Key) -> None:
        """Try a pod again after its backoff, because no change of the cluster may end the reason of the failure."""
        queued_pod = self._pods.get(key)
        if queued_pod is None or queued_pod.is_active:  # as above
            return
        queued_pod.plugins = frozenset()
        queued_pod.errors += 1
        self._back_off(queued_pod, queued_pod.errors)
        self._unschedulable[key] = queued_pod
        self._move_to_active_or_backoff(queued_pod)

    def _back_off(self, queued_pod: _QueuedPod, attempts: int) -> None:
        backoff = min(self._initial_backoff * 2 ** min(attempts - 1, 64), self._max_backoff)
        queued_pod.retry_at = self._clock.monotonic() + backoff

    def _move_to_active_or_backoff(self, queued_pod: _QueuedPod) -> None:
        """Move a pod to the active ones, or to those in backoff."""
        if self._is_blocked(queued_pod.key):
            return
        self._unschedulable.pop(queued_pod.key, None)
        remaining = queued_pod.retry_at - self._clock.monotonic()
        if remaining <= 0:
            self._activate(queued_pod)
            return
        self._call_after(remaining, queued_pod, self._activate)
        if queued_pod.plugins:
            self._in_backoff[queued_pod.key] = queued_pod
            self._wake.set()

    def _can_pop_early(self) -> bool:
        return self._pops_from_backoff and 0 < len(self._in_backoff) <= MAX_EARLY

    def _pop_early(self) -> _QueuedPod:
        """Remove the pod whose backoff ends first; in the same second, the one that is first among active pods."""
        queued_pod = min(
            self._in_backoff.values(), key=lambda queued_pod: (int(queued_pod.retry_at), queued_pod)
        )
        del self._in_backoff[queued_pod.key]
        _cancel_timer(queued_pod)
        return queued_pod

    def _activate(self, queued_pod: _QueuedPod) -> None:
        _cancel_timer(queued_pod)
        self._in_backoff.pop(queued_pod.key, None)
        if not queued_pod.is_active:
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
