"""A history of clients' requests and responses with their times: the only input of the checker.

Times are ticks of one counter, so they order everything in one event loop. A `Client` is a store that records.
"""

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from msgspec import Struct

from mockube.etcd.errors import KVError
from mockube.etcd.kv import (
    KV,
    Delete,
    DeleteResult,
    KeyValue,
    Lease,
    LeaseId,
    OperationResult,
    Put,
    PutResult,
    Range,
    RangeResult,
    Revision,
    Status,
    Txn,
    TxnResult,
    Watch,
    WatchBatch,
    WatchRequest,
)

NEVER = float("inf")


class Compact(Struct, frozen=True, kw_only=True):
    revision: Revision


class Revoke(Struct, frozen=True, kw_only=True):
    lease: LeaseId


@dataclass(slots=True, kw_only=True)
class Call:
    """One request. `answer` and `error` are both absent if there was no response."""

    client: str
    request: Range | Put | Delete | Txn | Compact | Revoke
    called: float
    returned: float = NEVER
    answer: Any = None
    error: KVError | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether it may have changed the store although no response says so."""
        if isinstance(self.request, Range):
            return False
        return self.returned == NEVER or (self.error is not None and self.error.outcome_unknown)

    @property
    def has_changed(self) -> bool:
        """Whether its response contains a revision that it created."""
        match self.answer:
            case TxnResult(results=results):
                return any(map(has_changed, results))
            case _:
                return has_changed(self.answer)


@dataclass(slots=True, kw_only=True)
class Stream:
    """One watch: the batches with their ticks, and how it ended if its client did not end it."""

    client: str
    request: WatchRequest
    called: float
    opened: float = NEVER
    batches: list[tuple[float, WatchBatch]] = field(default_factory=list)
    ended: float = NEVER
    error: KVError | None = None


def has_changed(answer: OperationResult | None) -> bool:
    return isinstance(answer, PutResult) or (isinstance(answer, DeleteResult) and answer.deleted > 0)


def kvs_of(answer: Any) -> list[KeyValue]:
    """Return the versions of keys that a read has returned."""
    match answer:
        case RangeResult(kvs=kvs):
            return list(kvs)
        case TxnResult(results=results):
            return [kv for result in results for kv in kvs_of(result)]
        case _:
            return []


class History:
    """All events of a store that was empty at revision `base`."""

    def __init__(self, base: Revision) -> None:
        self.base = base
        self.calls: list[Call] = []
        self.streams: list[Stream] = []
        self.ticks = itertools.count()
        self.first_batches_may_lack_previous = False
        """Etcd starts a watch before it notes that the client wants previous values."""

    def tick(self) -> int:
        return next(self.ticks)


class Client:
    """One client, which makes one call at a time. `pause` is awaited within each call, so that calls can overlap."""

    def __init__(self, name: str, store: KV, history: History, pause: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self.store = store
        self.history = history
        self.pause = pause

    async def range(self, request: Range) -> RangeResult:
        return await self._record(request, lambda: self.store.range(request))

    async def put(self, request: Put) -> PutResult:
        return await self._record(request, lambda: self.store.put(request))

    async def delete(self, request: Delete) -> DeleteResult:
        return await self._record(request, lambda: self.store.delete(request))

    async def txn(self, request: Txn) -> TxnResult:
        return await self._record(request, lambda: self.store.txn(request))

    async def compact(self, revision: Revision) -> None:
        await self._record(Compact(revision=revision), lambda: self.store.compact(revision))

    async def revoke(self, lease: LeaseId) -> None:
        await self._record(Revoke(lease=lease), lambda: self.store.revoke(lease))

    async def grant(self, ttl: int) -> Lease:
        return await self.store.grant(ttl)

    async def status(self) -> Status:
        return await self.store.status()

    async def watch(self, request: WatchRequest) -> "RecordedWatch":
        stream = Stream(client=self.name, request=request, called=self.history.tick())
        self.history.streams.append(stream)
        await self.pause()
        watch = await self.store.watch(request)
        await self.pause()
        stream.opened = self.history.tick()
        return RecordedWatch(watch, stream, self.history)

    async def _record(self, request: Any, send: Callable[[], Awaitable[Any]]) -> Any:
        call = Call(client=self.name, request=request, called=self.history.tick())
        self.history.calls.append(call)
        await self.pause()
        try:
            call.answer = await send()
        except KVError as error:
            call.error = error
        await self.pause()
        call.returned = self.history.tick()
        if call.error is not None:
            raise call.error
        return call.answer


class RecordedWatch:
    def __init__(self, watch: Watch, stream: Stream, history: History) -> None:
        self.watch = watch
        self.stream = stream
        self.history = history

    def __aiter__(self) -> "RecordedWatch":
        return self

    async def __anext__(self) -> WatchBatch:
        try:
            batch = await anext(self.watch)
        except KVError as error:
            self.stream.ended, self.stream.error = self.history.tick(), error
            raise
        self.stream.batches.append((self.history.tick(), batch))
        return batch

    async def request_progress(self) -> None:
        await self.watch.request_progress()

    def take_pending(self, maximum: int) -> WatchBatch | None:
        batch = self.watch.take_pending(maximum)
        if batch is not None:
            self.stream.batches.append((self.history.tick(), batch))
        return batch

    async def close(self) -> None:
        await self.watch.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
