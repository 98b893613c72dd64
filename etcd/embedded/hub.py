"""Deliver the changes of each revision to the watches.

The hub receives every revision when it is published (in memory at once, on disk after the fsync). Watches of the same
interval share a *channel*: each revision is matched and filtered once for all of them, and each watch has only a
position in the channel's log. An idle watch costs nothing, because the channels of a changed key are looked up by the
key; the hub does not iterate over all channels.
"""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from mockube.etcd.errors import Closed, KVError, WatcherTooSlow
from mockube.etcd.kv import Event, Revision, WatchBatch, WatchRequest, prefix_end

from .mvcc import Mvcc
from .versions import covers

TRIM = 64
"""A channel with fewer entries is not trimmed."""

Guard: TypeAlias = Callable[[Callable[[], None]], Callable[[], None]]
"""Returns a callback for the event loop, whose errors are reported."""


T = TypeVar("T")
K = TypeVar("K")


class IntervalMap(Generic[T]):
    """A map from intervals of keys to their watches.

    Kubernetes watches single keys and prefixes, so these two are hashed: a key is looked up as a whole, and once for
    each length of prefix in use. Other intervals are rare and are compared one by one.
    """

    __slots__ = ("_count_of_length", "_lengths", "_others", "_prefixes", "_singles")

    def __init__(self) -> None:
        self._singles: dict[bytes, list[T]] = {}
        self._prefixes: dict[bytes, list[T]] = {}
        self._count_of_length: Counter[int] = Counter()  # of the prefixes
        self._lengths: Sequence[int] = ()  # the same, shortest first
        self._others: dict[tuple[bytes, bytes], list[T]] = {}

    def __bool__(self) -> bool:
        return bool(self._singles or self._prefixes or self._others)

    def add(self, key: bytes, range_end: bytes | None, value: T) -> None:
        if range_end is None:
            self._singles.setdefault(key, []).append(value)
        elif range_end == prefix_end(key):
            self._prefixes.setdefault(key, []).append(value)
            self._count(len(key), 1)
        else:
            self._others.setdefault((key, range_end), []).append(value)

    def remove(self, key: bytes, range_end: bytes | None, value: T) -> None:
        if range_end is None:
            _remove_from(self._singles, key, value)
        elif range_end == prefix_end(key):
            _remove_from(self._prefixes, key, value)
            self._count(len(key), -1)
        else:
            _remove_from(self._others, (key, range_end), value)

    def at(self, key: bytes, range_end: bytes | None) -> Sequence[T]:
        """Return the members of exactly this interval."""
        if range_end is None:
            return self._singles.get(key, ())
        if range_end == prefix_end(key):
            return self._prefixes.get(key, ())
        return self._others.get((key, range_end), ())

    def of(self, key: bytes) -> list[T]:
        """Return the members whose intervals contain a key."""
        members = list(self._singles.get(key, ()))
        for length in self._lengths:
            if length > len(key):
                break
            members += self._prefixes.get(key[:length], ())
        for (start, end), values in self._others.items():
            if covers(start, end, key):
                members += values
        return members

    def _count(self, length: int, change: int) -> None:
        self._count_of_length[length] += change
        # Lengths change only when the first prefix of a length is added or the last one is removed.
        if self._count_of_length[length] <= 1:
            self._lengths = sorted(+self._count_of_length)


def _remove_from(table: dict[K, list[T]], key: K, value: T) -> None:
    """Remove a value from the list of a key, and the key with its last value."""
    values = table[key]
    values.remove(value)
    if not values:
        del table[key]


class Subscriber(Protocol):
    """The interface of a watch that subscribes to the hub."""

    request: WatchRequest
    position: int
    """The position of the watch in its channel: the entries before it were read."""

    def wake(self) -> None: ...

    def schedule_progress(self) -> None: ...

    def abort(self, error: KVError) -> None:
        """End the watch on behalf of the store, and remove it from the hub."""


class Channel:
    """The revisions that changed keys of one interval, for all its watches."""

    __slots__ = ("_batch", "_batch_span", "_long", "log", "previous", "revisions", "start", "watches")

    def __init__(self, *, previous: bool) -> None:
        self.previous = previous
        self.watches: dict[Subscriber, None] = {}  # in the order in which they were added
        # The position of log[0]: positions count from the creation of the channel and are never reused.
        self.start = 0
        self.log: list[Sequence[Event]] = []
        self.revisions: list[Revision] = []  # the revision of each entry of log
        self._batch_span = (-1, -1)
        self._batch: WatchBatch | None = None
        self._long = TRIM

    @property
    def end(self) -> int:
        return self.start + len(self.log)

    def append(self, revision: Revision, events: Sequence[Event]) -> None:
        self.log.append(events if self.previous else [without_previous(event) for event in events])
        self.revisions.append(revision)

    def batch(self, position: int) -> WatchBatch:
        """Return everything from a position to the end; watches at the same position get the same object."""
        span = (position, self.end)
        if self._batch is None or self._batch_span != span:
            entries = self.log[position - self.start :]
            events = entries[0] if len(entries) == 1 else [event for entry in entries for event in entry]
            self._batch = WatchBatch(revision=self.revisions[-1], events=events)
            self._batch_span = span
        return self._batch

    def size_from(self, position: int) -> int:
        """Return the number of events at and after a position."""
        return sum(map(len, self.log[position - self.start :]))

    def position_of(self, revision: Revision) -> int:
        """Return the position of the first entry at or after a revision."""
        return self.start + bisect_left(self.revisions, revision)

    def needs_trimming(self) -> bool:
        """Return whether to trim: trimming visits every watch, so it is done once for at least as many entries."""
        return len(self.log) > self._long

    def trim(self, limit: int) -> None:
        """End the watches that are more than `limit` revisions behind, and drop the entries that all others have read."""
        for watch in list(self.watches):  # `abort` removes it
            pending = self.end - watch.position
            if pending > limit:
                watch.abort(WatcherTooSlow(pending, limit))
        read = min((watch.position for watch in self.watches), default=self.end)
        del self.log[: read - self.start]
        del self.revisions[: read - self.start]
        self.start = read
        self._long = 2 * len(self.log) + max(TRIM, len(self.watches))


class PreparedEvents:
    """The events of one revision, matched with channels."""

    __slots__ = ("_events", "per_channel")

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.per_channel: dict[Channel, list[Event]] = {}

    def add(self, interest: IntervalMap[Channel], events: Sequence[Event]) -> None:
        self._events += events
        for event in events:
            for channel in interest.of(event.kv.key):
                matching = self.per_channel.setdefault(channel, [])
                matching.append(event if channel.previous else without_previous(event))

    def add_channel(self, request: WatchRequest, channel: Channel) -> None:
        """Match a channel that was created after some events had been added."""
        self.per_channel[channel] = [
            event if channel.previous else without_previous(event)
            for event in self._events
            if covers(request.key, request.range_end, event.kv.key)
        ]


class Hub:
    """All watches of one store."""

    def __init__(self, core: Mvcc, *, backlog: int, guard: Guard) -> None:
        self.revision = core.revision
        """The newest published revision."""
        self._core = core
        self._backlog = backlog
        self._interest: IntervalMap[Channel] = IntervalMap()
        self._woken: list[Channel] = []
        self._turn: asyncio.Future[None] | None = None
        self._watches: set[Subscriber] = set()
        self._progress: set[Subscriber] = set()
        self._prepared: PreparedEvents | None = None
        self._wake_channels = guard(self._end_turn)

    def prepare(self, events: Sequence[Event]) -> None:
        """Match some events of the revision that `publish` gets next, so that it takes less time. They are published or discarded."""
        if self._prepared is None:
            self._prepared = PreparedEvents()
        self._prepared.add(self._interest, events)

    def discard_prepared(self) -> None:
        self._prepared = None

    def publish(self, revision: Revision) -> None:
        """Publish all revisions up to `revision` to the watches."""
        if self._interest:
            first = self.revision + 1
            for newer, events in enumerate(self._core.events(first, revision), first):
                prepared = None
                if newer == revision:
                    prepared, self._prepared = self._prepared, None
                self._deliver(newer, events, prepared)
        self.revision = revision
        if self._turn is None:
            loop = asyncio.get_running_loop()
            self._turn = loop.create_future()
            # Writes that commit together wake the watches once.
            loop.call_soon(self._wake_channels)

    async def turn(self) -> None:
        """Wait until all watches were woken for the last published revision."""
        if self._turn is not None:
            await asyncio.shield(self._turn)  # the end of one caller must not cancel it for the others

    def enter(self, watch: Subscriber) -> None:
        self._watches.add(watch)
        if watch.request.progress:
            self._progress.add(watch)

    def join(self, request: WatchRequest) -> Channel:
        """Return the channel of an interval, which is created for its first watch."""
        channels = self._interest.at(request.key, request.range_end)
        for channel in channels:
            if channel.previous == request.previous:
                return channel
        channel = Channel(previous=request.previous)
        self._interest.add(request.key, request.range_end, channel)
        if self._prepared is not None:
            self._prepared.add_channel(request, channel)
        return channel

    def leave(self, watch: Subscriber, channel: Channel | None) -> None:
        self._watches.discard(watch)
        self._progress.discard(watch)
        if channel is not None:
            del channel.watches[watch]
            if not channel.watches:
                self._interest.remove(watch.request.key, watch.request.range_end, channel)

    def notify_progress(self) -> None:
        """Send a progress notification to every watch that requested them."""
        for watch in self._progress:
            watch.schedule_progress()

    def close(self) -> None:
        """End all watches. A turn that has begun ends by itself."""
        for watch in list(self._watches):  # `abort` removes it
            watch.abort(Closed("the store is closed"))

    def _deliver(self, revision: Revision, events: Sequence[Event], prepared: PreparedEvents | None) -> None:
        if len(events) == 1:
            for channel in self._interest.of(events[0].kv.key):
                self._append(channel, revision, events)
            return
        if prepared is None:
            prepared = PreparedEvents()
            prepared.add(self._interest, events)
        for channel, matching in prepared.per_channel.items():
            if matching:
                self._append(channel, revision, matching)

    def _append(self, channel: Channel, revision: Revision, events: Sequence[Event]) -> None:
        channel.append(revision, events)
        self._woken.append(channel)
        if channel.needs_trimming():
            channel.trim(self._backlog)

    def _end_turn(self) -> None:
        woken, self._woken = self._woken, []
        for channel in dict.fromkeys(woken):
            for watch in channel.watches:
                if watch.position < channel.end:
                    watch.wake()
        turn, self._turn = self._turn, None
        assert turn is not None, "publish first"
        turn.set_result(None)


def without_previous(event: Event) -> Event:
    return event if event.previous is None else Event(kind=event.kind, kv=event.kv)
