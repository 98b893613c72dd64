"""The subscribers to the changes of one resource. None blocks: each has its own bounded queue."""

import logging
from collections.abc import Iterator
from typing import Final, Protocol

from .recent_changes import Change

LOG: Final = logging.getLogger(__name__)


class CacheWatcher(Protocol):
    """A subscriber to every change below a prefix."""

    prefix: bytes

    def handle_change(self, change: Change) -> None:
        """Receive a change; must not wait."""

    def handle_missed_change(self) -> None:
        """Handle the loss of a change, after `handle_change` raised an error."""


class CacheWatchers:
    """The watchers of a resource, of its namespaces and of single objects, by what they watch."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._watchers: dict[bytes, list[CacheWatcher]] = {}

    def __iter__(self) -> Iterator[CacheWatcher]:
        return iter([watcher for watchers in self._watchers.values() for watcher in watchers])

    def __bool__(self) -> bool:
        return bool(self._watchers)

    def add(self, watcher: CacheWatcher) -> None:
        self._watchers.setdefault(watcher.prefix, []).append(watcher)

    def remove(self, watcher: CacheWatcher) -> None:
        watchers = self._watchers[watcher.prefix]
        watchers.remove(watcher)
        if not watchers:
            del self._watchers[watcher.prefix]

    def notify(self, change: Change) -> bool:
        """Offer a change to the watchers of its key; return whether there is one."""
        if not self._watchers:
            return False
        key = change.after.key
        # A watcher may be added or removed meanwhile.
        watchers = list(self._watchers.get(self._prefix, ()))
        slash = key.rfind(b"/") + 1
        if slash > len(self._prefix):
            watchers += self._watchers.get(key[:slash], ())
        watchers += self._watchers.get(key, ())
        for watcher in watchers:
            try:
                watcher.handle_change(change)
            except Exception:
                LOG.exception("a watch could not process the change of %s", key.decode(errors="replace"))
                watcher.handle_missed_change()
        return bool(watchers)
