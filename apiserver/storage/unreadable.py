"""Stored values that are not the object of their key, such as those that another program wrote into etcd.

Each is counted, and named in the log once for each revision. Lists and watches leave it out; a get of it is an error;
it can be deleted by name.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

LOG = logging.getLogger(__name__)

MAX_REASON: Final = 300
"""Characters of an error that are logged: the value may be part of it."""
MAX_REPORTED: Final = 10_000
"""Objects that are remembered as logged; after so many the memory begins anew."""


class UnreadableObjects:
    """Those below one prefix of the store."""

    def __init__(self) -> None:
        self._revisions: dict[bytes, int] = {}
        self._reported: dict[bytes, int] = {}
        self.failures: Counter[bytes] = Counter()
        """Return the number of unreadable values by folder."""

    def __bool__(self) -> bool:
        return bool(self._revisions)

    @property
    def revisions(self) -> Mapping[bytes, int]:
        """The keys whose values cannot be read now, and since which revision."""
        return self._revisions

    def below(self, prefix: bytes) -> Sequence[bytes]:
        return sorted(key for key in self._revisions if key.startswith(prefix))

    def add(self, folder: bytes, key: bytes, revision: int, error: Exception) -> None:
        self._revisions[key] = revision
        self.report(folder, key, revision, error)

    def discard(self, key: bytes) -> None:
        self._revisions.pop(key, None)

    def clear(self) -> None:
        """Everything is about to be read anew."""
        self._revisions.clear()

    def report(self, folder: bytes, key: bytes, revision: int, error: Exception) -> None:
        """Count and log an object that cannot be read, or not be rendered for a client."""
        if self._reported.get(key) == revision:
            return
        if len(self._reported) >= MAX_REPORTED:
            self._reported.clear()
        self._reported[key] = revision
        self.failures[folder] += 1
        reason = f"{type(error).__name__}: {error}"[:MAX_REASON]
        LOG.error("The object at %s cannot be read: %s", key.decode(errors="replace"), reason)
