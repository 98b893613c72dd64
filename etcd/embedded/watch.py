"""Watches over the embedded store: who hears of which revision, and when.

The hub is told of every revision once it counts (in memory at once, on disk after the fsync). Watches of the same
interval share a *channel*: each revision is matched and cut once for all of them, and each watch holds only a
position in the channel's log. An idle watch costs nothing, for a change finds its channels by looking its key up, not
by asking every channel. Watches that start in the past first read the store's own log, then join their channel.
"""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence
from typing import Self

from etcd.embedded.interest import Interest
from etcd.embedded.keys import holds, is_empty
from etcd.embedded.mvcc import FIRST_REVISION, Mvcc
from etcd.errors import Closed, Compacted, InvalidRequest, KVError, WatcherTooSlow
from etcd.kv import HEAD, Event, Revision, WatchBatch, WatchRequest

CATCH_UP = 4096
"""How many past revisions a watch looks through before it lets others run."""


class Channel:
    """The revisions that touched one interval, for every watch of it."""

    __slots__ = ("_batch", "_batch_span", "log", "previous", "revisions", "start", "watches")

    def __init__(self, *, previous: bool) -> None:
        self.previous = previous
        self.watches: dict[StoreWatch, None] = {}  # in the order they came
        self.start = (
            0  # the position of log[0]: positions count from the channel's beginning and never restart
        )
        self.log: list[Sequence[Event]] = []
        self.revisions: list[Revision] = []  # of each entry of log
        self._batch_span = (-1, -1)
        self._batch: WatchBatch | None = None

    @property
    def end(self) -> int:
        return self.start + len(self.log)

    def append(self, revision: Revision, events: Sequence[Event]) -> None:
        self.log.append(events if self.previous else [_without_previous(event) for event in events])
        self.revisions.append(revision)

    def batch(self, position: int) -> WatchBatch:
        """Everything from a position to the end; watches that stand at the same place are handed the same object."""
        span = (position, self.end)
        if self._batch is None or self._batch_span != span:
            entries = self.log[position - self.start :]
            events = entries[0] if len(entries) == 1 else [event for entry in entries for event in entry]
            self._batch = WatchBatch(revision=self.revisions[-1], events=events)
            self._batch_span = span
        return self._batch

    def position_of(self, revision: Revision) -> int:
        """Where the first entry at or after a revision stands, or will stand."""
        return self.start + bisect_left(self.revisions, revision)

    def trim(self, limit: int) -> None:
        """Drop what every watch has read, after cutting off those more than `limit` revisions behind."""
        for watch in list(self.watches):
            pending = self.end - watch.position
            if pending > limit:
                watch.cut_off(WatcherTooSlow(pending, limit))
        read = min((watch.position for watch in self.watches), default=self.end)
        del self.log[: read - self.start]
        del self.revisions[: read - self.start]
        self.start = read
        self._batch = None


class Hub:
    """All watches of one store."""

    def __init__(self, core: Mvcc, *, backlog: int) -> None:
        self.revision = core.revision
        """Watches know of everything up to here."""
        self._core = core
        self._backlog = backlog
        self._interest: Interest[Channel] = Interest()
        self._woken: list[Channel] = []
        self._turn: asyncio.Future[None] | None = None
        self._watches: set[StoreWatch] = set()
        self._progress: set[StoreWatch] = set()
        self._closed = False

    def publish(self, revision: Revision) -> None:
        """Let watches have everything up to `revision`, which counts from now on."""
        if self._interest:
            first = self.revision + 1
            for offset, events in enumerate(self._core.events(first, revision)):
                self._deliver(first + offset, events)
        self.revision = revision
        if self._turn is None:
            loop = asyncio.get_running_loop()
            self._turn = loop.create_future()
            loop.call_soon(self._end_turn)

    async def turn(self) -> None:
        """Wait until watches have been woken for what was published last."""
        if self._turn is not None:
            await asyncio.shield(self._turn)

    def open(self, request: WatchRequest) -> "StoreWatch":
        if self._closed:
            raise Closed("the store is closed")
        if not request.key or is_empty(request.key, request.range_end):
            raise InvalidRequest("a watch needs a key, and a range that could hold one")
        watch = StoreWatch(self, self._core, request)
        self._watches.add(watch)
        if request.progress:
            self._progress.add(watch)
        return watch

    def join(self, request: WatchRequest) -> Channel:
        """The channel of an interval, made if it is the first watch of it."""
        found = self._interest.at(request.key, request.range_end)
        for channel in found:
            if channel.previous == request.previous:
                return channel
        channel = Channel(previous=request.previous)
        self._interest.add(request.key, request.range_end, channel)
        return channel

    def leave(self, watch: "StoreWatch", channel: Channel | None) -> None:
        self._watches.discard(watch)
        self._progress.discard(watch)
        if channel is not None:
            del channel.watches[watch]
            if not channel.watches:
                self._interest.remove(watch.request.key, watch.request.range_end, channel)

    def notify_progress(self) -> None:
        """Have every watch that asked for notifications told how far it is."""
        for watch in self._progress:
            watch.want_progress()

    def close(self) -> None:
        self._closed = True
        for watch in list(self._watches):
            watch.cut_off(Closed("the store is closed"))
        if self._turn is not None:
            self._end_turn()

    def _deliver(self, revision: Revision, events: Sequence[Event]) -> None:
        if len(events) == 1:
            for channel in self._interest.of(events[0].kv.key):
                self._append(channel, revision, events)
            return
        per_channel: dict[Channel, list[Event]] = {}
        for event in events:
            for channel in self._interest.of(event.kv.key):
                per_channel.setdefault(channel, []).append(event)
        for channel, matching in per_channel.items():
            self._append(channel, revision, matching)

    def _append(self, channel: Channel, revision: Revision, events: Sequence[Event]) -> None:
        channel.append(revision, events)
        self._woken.append(channel)
        if len(channel.log) > max(64, len(channel.watches)):
            channel.trim(self._backlog)

    def _end_turn(self) -> None:
        woken, self._woken = self._woken, []
        for channel in dict.fromkeys(woken):
            for watch in channel.watches:
                watch.wake()
        turn, self._turn = self._turn, None
        if turn is not None and not turn.done():
            turn.set_result(None)


class StoreWatch:
    """One watch, with one reader."""

    def __init__(self, hub: Hub, core: Mvcc, request: WatchRequest) -> None:
        self.request = request
        self.position = 0
        self._hub = hub
        self._core = core
        self._channel: Channel | None = None
        self._next: Revision = request.start_revision
        """While catching up: the revision to look at next. Nothing before it is ever delivered."""
        self._waiter: asyncio.Future[None] | None = None
        self._progress_wanted = False
        self._ended = False
        self._error: KVError | None = None
        if self._next <= HEAD:
            self._next = hub.revision + 1
        if not self._lost_history() and self._next > hub.revision:
            self._join()

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        while True:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            batch = self._take() if self._channel is not None else self._catch_up()
            if batch is not None:
                return batch
            await self._wait()

    async def request_progress(self) -> None:
        self.want_progress()

    async def close(self) -> None:
        if not self._ended and self._error is None:
            self._ended = True
            self._leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def want_progress(self) -> None:
        self._progress_wanted = True
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def cut_off(self, error: KVError) -> None:
        """End the watch from the store's side."""
        if not self._ended and self._error is None:
            self._error = error
            self._leave()

    def _take(self) -> WatchBatch | None:
        """What the channel has for this watch, or a progress notification if that is wanted and there is nothing."""
        channel = self._channel
        assert channel is not None
        if channel.end > self.position and channel.revisions[-1] >= self._next:
            position = max(self.position, channel.position_of(self._next))
            batch = channel.batch(position)
            self.position = channel.end
            return batch
        self.position = channel.end
        if self._progress_wanted:
            self._progress_wanted = False
            return WatchBatch(revision=self._hub.revision)
        return None

    def _catch_up(self) -> WatchBatch | None:
        """The next matching past revisions; joins the channel once the present is reached."""
        if self._lost_history():
            return None
        request, first = self.request, max(self._next, FIRST_REVISION + 1)
        last = min(self._hub.revision, first + CATCH_UP - 1)
        found: list[Event] = []
        for events in self._core.events(first, last):
            found += [event for event in events if holds(request.key, request.range_end, event.kv.key)]
        self._next = last + 1
        if last == self._hub.revision:
            self._join()
        if not found:
            return None
        if not request.previous:
            found = [_without_previous(event) for event in found]
        return WatchBatch(revision=found[-1].kv.mod_revision, events=found)

    def _lost_history(self) -> bool:
        """Whether compaction took what was to be looked at next; if so the watch is over."""
        oldest = self._core.first_watchable
        if self._next < oldest:
            self.cut_off(Compacted(self._next, oldest))
        return self._next < oldest

    def _join(self) -> None:
        self._channel = channel = self._hub.join(self.request)
        channel.watches[self] = None
        self.position = channel.end

    def _leave(self) -> None:
        self._hub.leave(self, self._channel)
        self.wake()

    async def _wait(self) -> None:
        """Sleep until there may be something to do: at once while catching up, after all others had their turn."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        if self._channel is None:
            loop.call_soon(self.wake)
        try:
            await self._waiter
        finally:
            self._waiter = None


def _without_previous(event: Event) -> Event:
    return event if event.previous is None else Event(kind=event.kind, kv=event.kv)

