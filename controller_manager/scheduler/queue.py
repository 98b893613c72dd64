"""Pods that wait for a node: some to be tried now, some after a while, some until the cluster has changed.

Upstream: pkg/scheduler/backend/queue. Pods of higher priority come first, then those that wait longest.
"""

import asyncio
import heapq
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from mockube.apimachinery.clock import Clock, Timer
from mockube.controller_manager.client.resources import Key

FIRST_BACKOFF: Final = 1.0
MAX_BACKOFF: Final = 10.0
MAX_WAIT: Final = 300.0
"""Seconds after which a pod is tried again though nothing seems to have changed."""


class _Waiting(Struct, eq=False):
    key: Key
    priority: int
    since: int
    """A growing number: the order of arrival."""
    attempts: int = 0
    is_ready: bool = False
    retry_at: float = 0.0
    timer: Timer | None = None

    def __lt__(self, other: "_Waiting") -> bool:
        return (-self.priority, self.since) < (-other.priority, other.since)


class SchedulingQueue:
    def __init__(self, clock: Clock, is_blocked: Callable[[Key], bool] = lambda _: False) -> None:
        """A blocked pod is not tried again until it is resumed."""
        self._clock = clock
        self._is_blocked = is_blocked
        self._waiting: dict[Key, _Waiting] = {}
        self._ready: list[_Waiting] = []
        self._stuck: dict[Key, _Waiting] = {}
        self._stuck_dependents: set[Key] = set()
        """Pods of `_stuck` that depend on where other pods are."""
        self._in_hand: Key | None = None
        self._moved_meanwhile = False
        self._assigned_meanwhile = False
        self._count = 0
        self._wake = asyncio.Event()

    @property
    def is_idle(self) -> bool:
        """Nothing to try now; some may be due later."""
        return self._in_hand is None and not any(self._is_due(entry) for entry in self._ready)

    def put(self, key: Key, priority: int) -> None:
        """A pod was added or changed: it is tried without delay."""
        waiting = self._waiting.get(key)
        if waiting is None:
            self._count += 1
            waiting = self._waiting[key] = _Waiting(key, priority, self._count)
            self._activate(waiting)
        elif key in self._stuck:
            self._release(waiting)
        elif key == self._in_hand:
            self._moved_meanwhile = True

    def drop(self, key: Key) -> None:
        """Remove a pod that is deleted or bound."""
        waiting = self._waiting.pop(key, None)
        self._unstick(key)
        if waiting is not None:
            _stop(waiting)

    def pod_assigned(self) -> None:
        """A pod got a node: those that depend on other pods are tried again."""
        self._assigned_meanwhile = True
        for key in [*self._stuck_dependents]:
            self._release(self._stuck[key])

    def move_all(self) -> None:
        """The cluster changed in a way that may make unschedulable pods schedulable."""
        self._moved_meanwhile = True
        for waiting in [*self._stuck.values()]:
            self._release(waiting)

    def resume(self, key: Key) -> None:
        """A pod is no longer blocked."""
        if key == self._in_hand:
            self._moved_meanwhile = True
        elif key in self._stuck:
            self._release(self._stuck[key])

    async def take(self) -> Key:
        """Return the next pod to schedule. The caller ends with `add_unschedulable` or `drop`."""
        while True:
            while self._ready:
                waiting = heapq.heappop(self._ready)
                waiting.is_ready = False
                if self._is_due(waiting):
                    self._in_hand, self._moved_meanwhile, self._assigned_meanwhile = waiting.key, False, False
                    waiting.attempts += 1
                    return waiting.key
            self._wake.clear()
            await self._wake.wait()

    def done(self) -> None:
        self._in_hand = None

    def add_unschedulable(self, key: Key, *, depends_on_pods: bool = False) -> None:
        """No node can take it as things are; other pods may matter by affinity or an even spread."""
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        backoff = min(FIRST_BACKOFF * 2 ** (waiting.attempts - 1), MAX_BACKOFF)
        waiting.retry_at = self._clock.monotonic() + backoff
        self._stuck[key] = waiting
        if depends_on_pods:
            self._stuck_dependents.add(key)
        self._call_after(MAX_WAIT, waiting, self._release)
        if self._moved_meanwhile or (depends_on_pods and self._assigned_meanwhile):
            self._release(waiting)

    def retry(self, key: Key) -> None:
        """It failed for a reason that no change of the cluster may end: try it again after its backoff."""
        self._moved_meanwhile = True
        self.add_unschedulable(key)

    def _release(self, waiting: _Waiting) -> None:
        """Try it again, once its backoff is over."""
        if self._is_blocked(waiting.key):
            return
        self._unstick(waiting.key)
        rest = waiting.retry_at - self._clock.monotonic()
        if rest > 0:
            self._call_after(rest, waiting, self._activate)
        else:
            self._activate(waiting)

    def _unstick(self, key: Key) -> None:
        self._stuck.pop(key, None)
        self._stuck_dependents.discard(key)

    def _activate(self, waiting: _Waiting) -> None:
        _stop(waiting)
        if self._is_due(waiting) and not waiting.is_ready:
            waiting.is_ready = True
            heapq.heappush(self._ready, waiting)
            self._wake.set()

    def _call_after(self, seconds: float, waiting: _Waiting, then: Callable[[_Waiting], None]) -> None:
        _stop(waiting)
        waiting.timer = self._clock.call_later(seconds, lambda: then(waiting))

    def _is_due(self, waiting: _Waiting) -> bool:
        """Not dropped, nor replaced by another pod of its name."""
        return self._waiting.get(waiting.key) is waiting


def _stop(waiting: _Waiting) -> None:
    if waiting.timer is not None:
        waiting.timer.cancel()
        waiting.timer = None
