"""The stored values that cannot be read as an object."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from .stored_object import MAX_REASON

LOG: Final = logging.getLogger(__name__)
MAX_REPORTED: Final = 10_000
"""The number of logged objects after which the record of them is cleared."""


class UnreadableObjects:
    """Values below one prefix of the store that cannot be read as the object of their key.

    Each is counted, and logged once for each revision. Lists and watches omit it; a get returns an error; it can be
    deleted by name.
    """

    def __init__(self) -> None:
        self._revisions: dict[bytes, int] = {}
        self._reported: dict[bytes, int] = {}
        self.failures: Counter[bytes] = Counter()
        """The number of unreadable values by folder."""

    def __bool__(self) -> bool:
        return bool(self._revisions)

    @property
    def revisions(self) -> Mapping[bytes, int]:
        """The keys whose values cannot be read now, with their revisions."""
        return self._revisions

    def below(self, prefix: bytes) -> Sequence[bytes]:
        return sorted(key for key in self._revisions if key.startswith(prefix))

    def add(self, folder: bytes, key: bytes, revision: int, error: Exception) -> None:
        self._revisions[key] = revision
        self.report(folder, key, revision, error)

    def discard(self, key: bytes) -> None:
        self._revisions.pop(key, None)

    def clear(self) -> None:
        """Reset before everything is listed again."""
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
