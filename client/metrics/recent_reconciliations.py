"""The newest reconciliations of each queue, with what they did: for the kind Controller, which people read."""

from collections import deque
from datetime import datetime
from typing import Any, Final, TypeAlias

from msgspec import Struct

Key: TypeAlias = tuple[str, str]
"""The namespace and the name of an object, as those of `client.resources`."""

MAX_PER_QUEUE: Final = 20
"""How many reconciliations of a queue are kept."""
MAX_ACTIONS: Final = 10
"""How many actions of a reconciliation are kept."""
MAX_ERROR: Final = 300
"""The characters of an error that are kept."""


class Reconciliation(Struct, frozen=True, gc=False):
    """What one worker did for one key."""

    key: Key
    began: datetime
    """By the clock of the cluster."""
    seconds: float
    """By the clock of the machine."""
    result: str
    actions: tuple[str, ...]
    """What was done, as `create pods: 3`; empty if nothing was, or if the controller is a runnable, whose decisions are not data."""
    error: str

    def tree(self) -> dict[str, Any]:
        namespace, name = self.key
        tree = {
            "namespace": namespace,
            "name": name,
            "time": self.began,
            "seconds": round(self.seconds, 6),
            "result": self.result,
            "actions": self.actions,
            "error": self.error,
        }
        return {field: value for field, value in tree.items() if value or field in ("name", "seconds")}


class RecentReconciliations:
    """The newest reconciliations of one queue, and what those in progress have done."""

    def __init__(self) -> None:
        self._newest: deque[Reconciliation] = deque(maxlen=MAX_PER_QUEUE)
        self._actions: dict[Key, tuple[str, ...]] = {}

    def note_actions(self, key: Key, actions: tuple[str, ...]) -> None:
        """Note what a reconciliation in progress has done."""
        self._actions[key] = actions

    def finish(self, key: Key, began: datetime, seconds: float, result: str, error: str = "") -> None:
        actions = self._actions.pop(key, ())[:MAX_ACTIONS]
        self._newest.append(Reconciliation(key, began, seconds, result, actions, error[:MAX_ERROR]))

    def cancel(self, key: Key) -> None:
        """Forget what a reconciliation has done that was cancelled, and has no result."""
        self._actions.pop(key, None)

    def newest(self) -> list[Reconciliation]:
        """Return those that are kept, the newest first."""
        return [*reversed(self._newest)]


class RecentByQueue:
    """The newest reconciliations of all queues of a process, by name."""

    def __init__(self) -> None:
        self.queues: dict[str, RecentReconciliations] = {}

    def of(self, name: str) -> RecentReconciliations:
        if name not in self.queues:
            self.queues[name] = RecentReconciliations()
        return self.queues[name]
