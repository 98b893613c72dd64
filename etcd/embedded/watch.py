"""A watch on the embedded store.

A watch that starts in the past first reads the store's own log, in pieces, then joins the hub's channel for its
interval; from then on it waits until the hub wakes it.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from mockube.etcd.errors import Compacted, InvalidRequest, KVError
from mockube.etcd.kv import FIRST_REVISION, HEAD, Revision, WatchBatch, WatchRequest

from .hub import Channel, Hub, without_previous
from .mvcc import Mvcc
from .versions import is_empty

CATCH_UP = 1024
"""The number of past revisions that a watch looks at before it yields to the event loop."""
CATCH_UP_EVENTS = 64
"""The number of events after which it does so: the values of old ones are compressed."""


class StoreWatch:
    """One watch, with one reader."""

    def __init__(self, hub: Hub, core: Mvcc, request: WatchRequest) -> None:
        if not request.key or is_empty(request.key, request.range_end):
            raise InvalidRequest("a watch needs a key, and a range that could hold one")
        self.request = request
        self.position = 0
        self._hub = hub
        self._core = core
        self._channel: Channel | None = None
        self._next: Revision = request.start_revision
        """While catching up: the next revision to read. Earlier ones are not delivered."""
        self._has_read_step = False
        """Whether other tasks run before the watch reads on in the past."""
        self._waiter: asyncio.Future[None] | None = None
        self._progress_wanted = False
        self._ended = False
        self._error: KVError | None = None
        hub.enter(self)
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
            if self._has_read_step:
                self._has_read_step = False
                await self._wait()
                continue
            batch = self._take() if self._channel is not None else self._catch_up()
            if batch is not None:
                return batch
            await self._wait()

    async def request_progress(self) -> None:
        self.schedule_progress()

    def take_pending(self, maximum: int) -> WatchBatch | None:
        """Return the published events without waiting for the hub to wake the watch."""
        channel = self._channel
        if channel is None or self._ended or self._error is not None:
            return None
        return self._take() if channel.size_from(self.position) <= maximum else None

    async def close(self) -> None:
        if not self._ended and self._error is None:
            self._ended = True
            self._leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    def schedule_progress(self) -> None:
        self._progress_wanted = True
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def abort(self, error: KVError) -> None:
        """End the watch on behalf of the store."""
        if not self._ended and self._error is None:
            self._error = error
            self._leave()

    def _take(self) -> WatchBatch | None:
        """Return the channel's events for this watch; without any, a progress notification if one was requested."""
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
        """Return the next matching past revisions; join the channel when the newest one was read."""
        if self._lost_history():
            return None
        request, first = self.request, max(self._next, FIRST_REVISION + 1)
        last = min(self._hub.revision, first + CATCH_UP - 1)
        matching_events, last = self._core.selected_events(
            first, last, key=request.key, range_end=request.range_end, limit=CATCH_UP_EVENTS
        )
        self._next = last + 1
        self._has_read_step = bool(matching_events) and last < self._hub.revision
        if last == self._hub.revision:
            self._join()
        if not matching_events:
            # Progress may have been requested while past events were read: nothing else would wake the watch.
            return self._take() if self._channel is not None else None
        if not request.previous:
            matching_events = [without_previous(event) for event in matching_events]
        return WatchBatch(revision=matching_events[-1].kv.mod_revision, events=matching_events)

    def _lost_history(self) -> bool:
        """Return whether compaction removed the next revision to read; if so, end the watch."""
        oldest = self._core.first_watchable
        if self._next < oldest:
            self.abort(Compacted(self._next, oldest))
        return self._next < oldest

    def _join(self) -> None:
        self._channel = channel = self._hub.join(self.request)
        channel.watches[self] = None
        self.position = channel.end

    def _leave(self) -> None:
        self._hub.leave(self, self._channel)
        self.wake()

    async def _wait(self) -> None:
        """Wait until the hub wakes the watch; while catching up, only let other tasks run."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        if self._channel is None:
            loop.call_soon(self.wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
