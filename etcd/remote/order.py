"""The order of a watch's events: each matching event is delivered once, in order, with the revision that the watch has
reached.

Pure: events and revisions in, batches out. The streams of a watch are not assumed to be one sequence. A new stream
begins at the last revision that was read, two streams may overlap, and etcd repeats events after a member was restored
from a snapshot, and may send old events to a watch that starts in the future.
"""

from collections.abc import Sequence

from mockube.etcd.kv import FROM_KEY, Event, Revision, WatchBatch, WatchRequest


class Order:
    def __init__(self, request: WatchRequest, start: Revision) -> None:
        self.position = start - 1
        """Every matching event from the start to here was delivered."""
        self.progress_revision: Revision = 0
        """A progress notification of at least this revision is due; 0 if none is."""
        self._request = request
        self._start = start

    def accept(self, events: Sequence[Event], reached: Revision) -> list[WatchBatch]:
        """Take whole revisions from a stream that has all events between `position` and `reached`."""
        fresh = [event for event in events if self._is_fresh(event)]
        is_news = reached >= self.position
        self.position = max(self.position, reached)
        batches = []
        if fresh:
            batches.append(WatchBatch(revision=self.position, events=fresh))
        elif is_news and self._request.progress:
            batches.append(WatchBatch(revision=self.position))
        return batches + self._notify()

    def request_progress(self, revision: Revision) -> list[WatchBatch]:
        """Notify the watch once it has reached this revision; at once if it has."""
        self.progress_revision = max(self.progress_revision, revision)
        return self._notify()

    def _notify(self) -> list[WatchBatch]:
        if not self.progress_revision or self.position < self.progress_revision:
            return []
        # A watch that starts in the future misses no event before it, but the store has not reached it.
        revision = self.progress_revision if self.position < self._start else self.position
        self.progress_revision = 0
        return [WatchBatch(revision=revision)]

    def _is_fresh(self, event: Event) -> bool:
        return event.kv.mod_revision > self.position and self._holds(event.kv.key)

    def _holds(self, key: bytes) -> bool:
        first, end = self._request.key, self._request.range_end
        if end is None:
            return key == first
        return key >= first and (key < end or end == FROM_KEY)
