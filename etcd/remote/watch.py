"""A watch on etcd that survives the loss of its connections.

A task reads a stream. When the stream fails, it resumes from the last position on another one, with
retries without end. It stops reading when the reader is `BACKLOG` batches behind, which causes backpressure on etcd.

A progress request depends on the release of etcd and on the connection:

* A release that responds in order (`WatchStream.answers_progress_in_order`) sends the progress notification. It sends
  none while the watch is not synchronised, so the request is repeated.
* The response of an earlier release has the revision of the member, not of the stream. Then all events since the
  position of the watch, of all keys, are read on a second stream: every revision has an event, so the event of the
  requested revision proves that all earlier ones were read. If some are compacted, the watch ends with `Compacted`.
* Over an authenticated connection progress cannot be requested: `Unsupported`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Self

from mockube.etcd.errors import Closed, Compacted, Interrupted, KVError, Timeout, Unavailable
from mockube.etcd.kv import FROM_KEY, Event, Range, Revision, WatchBatch, WatchRequest

from .clock import Clock
from .requests import RANGE, encode_range, encode_watch
from .responses import WatchResponse
from .transport import Transport
from .watch_stream import WatchStream

BACKLOG = 16
"""The number of batches that may wait for the reader. etcd puts up to a thousand revisions into one."""

PROGRESS_RETRY_SECONDS = 0.1
"""Seconds after which a request for progress is repeated: the interval at which etcd synchronises watches."""

RESUME_RETRY_SECONDS = 1.0
"""Seconds between two attempts to resume a watch. Each attempt tries all members until its deadline."""

FIRST_KEY = b"\x00"

_BROKEN = (Unavailable, Interrupted, Timeout)
"""The stream or its member failed; another one can be used."""


class RemoteWatch:
    @classmethod
    async def open(cls, transport: Transport, request: WatchRequest, start: Revision, clock: Clock) -> Self:
        stream = await transport.open_watch(encode_watch(request, start))
        return cls(transport, request, start, stream=stream, clock=clock)

    def __init__(
        self,
        transport: Transport,
        request: WatchRequest,
        start: Revision,
        *,
        stream: WatchStream,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._request = request
        self._stream = stream
        self._clock = clock
        self._order = EventOrder(request, start)
        self._inbox: asyncio.Queue[WatchBatch | None] = asyncio.Queue()
        """None marks the end of the watch."""
        self._drained = asyncio.Event()
        self._error: BaseException | None = None
        self._closed = False
        loop = asyncio.get_running_loop()
        self._progress_task: asyncio.Task[None] | None = None
        self._read_task = loop.create_task(self._read_streams(), name=f"watch {request.key!r}")
        self._read_task.add_done_callback(self._on_end)

    def __aiter__(self) -> AsyncIterator[WatchBatch]:
        return self

    async def __anext__(self) -> WatchBatch:
        batch = await self._inbox.get()
        if batch is not None and not self._closed:
            self._drained.set()
            return batch
        self._inbox.put_nowait(None)
        if self._error is not None and not self._closed:
            raise self._error
        raise StopAsyncIteration

    async def request_progress(self) -> None:
        if self._read_task.done():
            raise Closed("the watch has ended")
        head = await self._head()
        await self._ask_progress()
        self._put(self._order.request_progress(head))
        if self._progress_task is None or self._progress_task.done():
            self._progress_task = asyncio.get_running_loop().create_task(self._repeat_progress_requests())
            self._progress_task.add_done_callback(self._on_progress_task_end)

    def take_pending(self, maximum: int) -> WatchBatch | None:  # noqa: ARG002 - batches are not taken early
        return None

    async def close(self) -> None:
        self._closed = True
        await self._stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def abort(self, error: KVError) -> None:
        """End the watch on behalf of the store."""
        if self._error is None:
            self._error = error
        await self._stop()

    # --- the task that reads

    async def _read_streams(self) -> None:
        while True:
            try:
                while True:
                    await self._take(await self._stream.receive())
            except _BROKEN:
                await self._resume()

    async def _resume(self) -> None:
        await self._stream.close()
        self._transport.deprioritize(self._stream.gateway)
        while True:
            try:
                create = encode_watch(self._request, self._order.position + 1)
                self._stream = await self._transport.open_watch(create)
            except _BROKEN:
                await self._clock.sleep(RESUME_RETRY_SECONDS)
            else:
                return

    async def _take(self, answer: WatchResponse) -> None:
        if not answer.on_demand:
            await self._accept(answer)
        elif self._order.progress_revision:
            if await self._stream.answers_progress_in_order():
                await self._accept(answer)
            else:
                await self._catch_up()

    async def _catch_up(self) -> None:
        """Read the events of all keys from the position to the revision of the due notification."""
        every_key = WatchRequest(key=FIRST_KEY, range_end=FROM_KEY, previous=self._request.previous)
        stream = await self._transport.open_watch(encode_watch(every_key, self._order.position + 1))
        try:
            while self._order.progress_revision:
                await self._accept(await stream.receive())
        finally:
            await stream.close()

    async def _accept(self, answer: WatchResponse) -> None:
        if answer.compact_revision:
            raise Compacted(self._order.position + 1, answer.compact_revision)
        while self._inbox.qsize() >= BACKLOG:
            self._drained.clear()
            await self._drained.wait()
        # A response with events may not contain all of them up to its own revision: etcd splits long histories.
        reached = answer.events[-1].kv.mod_revision if answer.events else answer.revision
        self._put(self._order.accept(answer.events, reached))

    def _put(self, batches: Iterable[WatchBatch]) -> None:
        for batch in batches:
            self._inbox.put_nowait(batch)

    # --- progress on request

    async def _head(self) -> Revision:
        body = encode_range(Range(key=self._request.key, count_only=True))
        return (await self._transport.call(RANGE, body)).revision

    async def _ask_progress(self) -> None:
        # If the stream just broke, the request is sent on the next one.
        with suppress(*_BROKEN):
            await self._stream.ask_progress()

    async def _repeat_progress_requests(self) -> None:
        while self._order.progress_revision:
            await self._clock.sleep(PROGRESS_RETRY_SECONDS)
            await self._ask_progress()

    # --- the end of the watch

    async def _stop(self) -> None:
        for task in (self._read_task, self._progress_task):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])
        await self._stream.close()

    def _on_progress_task_end(self, task: asyncio.Task[None]) -> None:
        """End the watch after an unexpected error; otherwise its reader would wait for progress without end."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._read_task.cancel()

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self._error = task.exception()
        if self._progress_task is not None:
            self._progress_task.cancel()
        self._inbox.put_nowait(None)


class EventOrder:
    """Orders the events of a watch: each matching event is delivered once, in order, with the revision of the watch.

    It converts events and revisions to batches, without I/O. The streams of a watch may not be one sequence: a new
    stream begins at the last revision that was read, two streams may overlap, etcd repeats events after a member was
    restored from a snapshot, and it may send old events to a watch that starts in the future.
    """

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
        """Notify the watch when it has reached this revision; now if it has."""
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
