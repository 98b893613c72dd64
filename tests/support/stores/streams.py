"""Check one watch stream against the replay: filtered, ordered, unique, atomic, complete, with correct progress.

A resumed stream is a stream of its own, with a start revision: that it is complete from there proves that no event was
lost in between.
"""

from collections.abc import Iterator

from mockube.etcd.errors import Compacted
from mockube.etcd.kv import HEAD, Event, Revision, WatchBatch
from tests.support.stores.formatting import words
from tests.support.stores.history import Stream
from tests.support.stores.model import is_in_range
from tests.support.stores.replay import Replay, is_equal_result
from tests.support.stores.timeline import Timeline

Place = tuple[Revision, bytes]
"""A key changes at most once in a revision, so this names an event."""


class StreamCheck:
    """One pass over a stream from its beginning to its end."""

    def __init__(
        self,
        stream: Stream,
        replayed: Replay,
        timeline: Timeline,
        *,
        first_batch_may_lack_previous: bool = False,
    ) -> None:
        self.stream = stream
        self.request = stream.request
        self.model = replayed.model
        self.timeline = timeline
        self.promised: Revision = HEAD
        """The highest revision of a batch: everything up to it must have been delivered."""
        self.delivered: dict[Place, Event] = {}
        self._first_batch_may_lack_previous = first_batch_may_lack_previous
        self._first_events_at = next((tick for tick, batch in stream.batches if batch.events), None)
        self.newest: Revision = HEAD
        """The revision of the last delivered event."""

    def faults(self) -> Iterator[str]:
        for tick, batch in self.stream.batches:
            yield from self._batch(tick, batch)
        yield from self._missing_events()
        yield from self._end()

    def _batch(self, tick: float, batch: WatchBatch) -> Iterator[str]:
        newest_before = self.newest
        for event in batch.events:
            kind = self._position_fault(event, batch, newest_before)
            if kind:
                yield f"{kind}: {self._name()} delivered {words(event)} after revision {self.promised}"
            yield from self._content(event, tick)
            self.delivered[cluster_folder(event)] = event
            self.newest = max(self.newest, event.kv.mod_revision)
        if batch.revision < self.promised:
            yield f"progress backwards: {self._name()} was at {self.promised}, then at {batch.revision}"
        if batch.revision > self.model.revision or self.timeline.is_unwritten(batch.revision, tick):
            yield f"progress ahead: {self._name()} was at {batch.revision}, which was not yet written"
        self.promised = max(self.promised, batch.revision)

    def _position_fault(self, event: Event, batch: WatchBatch, newest_before: Revision) -> str | None:
        """Return the fault of an event's position in its stream, if any."""
        revision = event.kv.mod_revision
        checks = (
            ("foreign event", not is_in_range(self.request.key, self.request.range_end, event.kv.key)),
            ("event before the start", revision < self.request.start_revision),
            ("repeated event", cluster_folder(event) in self.delivered),
            ("old event", revision < self.newest),
            ("split revision", revision == newest_before),
            ("progress ahead", revision <= self.promised),
            ("batch behind its events", revision > batch.revision),
        )
        return next((kind for kind, is_so in checks if is_so), None)

    def _content(self, event: Event, tick: float) -> Iterator[str]:
        """The event equals the replay's; `previous` may be missing where it is compacted, and in a first batch of etcd."""
        revision, key = cluster_folder(event)
        truth = next((each for each in self.model.events.get(revision, ()) if each.kv.key == key), None)
        if truth is None or self.timeline.is_unwritten(revision, tick):
            yield f"event from nowhere: {self._name()} delivered {words(event)}"
            return
        if event.kind is not truth.kind or event.kv != truth.kv:
            yield f"wrong event: {self._name()} delivered {words(event)}; replayed it is {words(truth)}"
        previous = truth.previous if self.request.previous else None
        forgotten = event.previous is None and (
            revision <= self.timeline.compacting.before(tick)
            or (self._first_batch_may_lack_previous and tick == self._first_events_at)
        )
        if not forgotten and not is_equal_result(event.previous, previous):
            yield f"wrong previous value: {self._name()} delivered {words(event)}; replayed it is {words(truth)}"

    def _missing_events(self) -> Iterator[str]:
        """Everything from the start to the last progress was delivered, in the replay's order."""
        if not self.stream.batches:
            return
        expected_events = self.model.events_between(
            self.request.key, self.request.range_end, self._start() - 1, self.promised
        )
        places = [cluster_folder(event) for event in expected_events]
        missing = [place for place in places if place not in self.delivered]
        for revision, key in missing:
            yield f"missing event: {self._name()} promised all up to {self.promised} without {key!r} at {revision}"
        delivered = list(self.delivered)
        in_time = [revision for revision, _ in delivered] == [revision for revision, _ in places]
        if in_time and not missing and delivered != places:
            yield f"shuffled revision: {self._name()} delivered the changes of a revision in another order"

    def _start(self) -> Revision:
        """The first revision that the stream must deliver. A start at the head was fixed while it was opened."""
        if self.request.start_revision != HEAD:
            return self.request.start_revision
        earliest = self.timeline.known.before(self.stream.called) + 1
        latest = self.timeline.written.before(self.stream.opened) + 1
        first = next((revision for revision, _ in self.delivered), latest)
        return max(earliest, min(first, latest))

    def _end(self) -> Iterator[str]:
        """A stream is cancelled for compaction only if its next event was compacted."""
        error, following = self.stream.error, max(self.promised + 1, self.request.start_revision)
        if isinstance(error, Compacted) and self.timeline.compacting.before(self.stream.ended) <= following:
            yield f"unjustified cancellation: {self._name()} was to go on at {following}: {error}"

    def _name(self) -> str:
        return f"{self.stream.client}'s {words(self.request)}"


def cluster_folder(event: Event) -> Place:
    return event.kv.mod_revision, event.kv.key
