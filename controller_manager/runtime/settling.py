"""Keys of which changes come in swarms: each is let through once there is quiet, and in a long swarm now and then.

Knows nothing of what a key names, and forgets it when it lets it through.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from apimachinery.clock import Clock
from controller_manager.runtime.delaying import DelayingQueue

K = TypeVar("K", bound=Hashable)


class _Swarm:
    __slots__ = ("due", "until")

    def __init__(self, *, due: float, until: float) -> None:
        self.due = due
        self.until = until


class Settling(Generic[K]):
    """A change has its key wait anew. It is looked at when the wait is over, so that a change costs next to nothing."""

    def __init__(self, add: Callable[[K], None], clock: Clock) -> None:
        """`add` is called with a key when it is let through."""
        self._add = add
        self._clock = clock
        self._delaying = DelayingQueue[K](self._look, clock)
        self._swarms: dict[K, _Swarm] = {}

    def changed(self, key: K, *, quiet: float, longest: float) -> None:
        """Let the key through when nothing has changed for some seconds, and after so many at the latest."""
        now = self._clock.monotonic()
        swarm = self._swarms.get(key)
        if swarm is None:
            self._swarms[key] = _Swarm(due=now + quiet, until=now + longest)
            self._delaying.add_after(key, quiet)
        else:
            swarm.due = min(now + quiet, swarm.until)

    def close(self) -> None:
        """Forget every key, and take no more."""
        self._delaying.close()
        self._swarms.clear()

    def _look(self, key: K) -> None:
        rest = self._swarms[key].due - self._clock.monotonic()
        if rest > 0:
            self._delaying.add_after(key, rest)
            return
        del self._swarms[key]
        self._add(key)
