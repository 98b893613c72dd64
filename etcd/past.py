"""A store as it was at one revision: a KV that can only be read, over the one that keeps the history."""

import asyncio
from collections.abc import Sequence
from typing import NoReturn, Self

from msgspec.structs import replace

from .errors import Closed, FutureRevision, Unsupported
from .kv import (
    HEAD,
    KV,
    NO_LEASE,
    Delete,
    DeleteResult,
    Lease,
    LeaseId,
    Put,
    PutResult,
    Range,
    RangeResult,
    Revision,
    Status,
    Txn,
    TxnResult,
    WatchBatch,
    WatchRequest,
)


class PastKV:
    """A KV whose newest revision is a past one. Nothing follows it: its watches wait until they are closed."""

    def __init__(self, kv: KV, revision: Revision) -> None:
        self._kv = kv
        self.revision = revision

    async def range(self, request: Range) -> RangeResult:
        if request.revision > self.revision:
            raise FutureRevision(request.revision, self.revision)
        revision = self.revision if request.revision <= HEAD else request.revision
        return replace(await self._kv.range(replace(request, revision=revision)), revision=self.revision)

    async def status(self) -> Status:
        return replace(await self._kv.status(), revision=self.revision)

    async def watch(self, request: WatchRequest) -> "PastWatch":  # noqa: ARG002 - nothing follows, whatever is watched
        return PastWatch(self.revision)

    async def leases(self) -> Sequence[LeaseId]:
        return ()

    async def put(self, request: Put) -> PutResult:
        self._refuse(request)

    async def delete(self, request: Delete) -> DeleteResult:
        self._refuse(request)

    async def txn(self, request: Txn) -> TxnResult:
        self._refuse(request)

    async def compact(self, revision: Revision) -> None:
        self._refuse(revision)

    async def grant(self, ttl: int, lease: LeaseId = NO_LEASE) -> Lease:
        self._refuse(ttl, lease)

    async def keep_alive(self, lease: LeaseId) -> Lease:
        self._refuse(lease)

    async def revoke(self, lease: LeaseId) -> None:
        self._refuse(lease)

    async def time_to_live(self, lease: LeaseId, *, keys: bool = False) -> Lease:
        self._refuse(lease, keys)

    async def close(self) -> None:
        """Do nothing: the store belongs to the present."""

    def _refuse(self, *_arguments: object) -> NoReturn:
        raise Unsupported(f"the store at revision {self.revision} is the past: it cannot be changed")


class PastWatch:
    """A watch of a past revision: nothing follows it, but a requested progress notification."""

    def __init__(self, revision: Revision) -> None:
        self._revision = revision
        self._is_closed = False
        self._batches: asyncio.Queue[WatchBatch | None] = asyncio.Queue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchBatch:
        batch = None if self._is_closed else await self._batches.get()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def request_progress(self) -> None:
        if self._is_closed:
            raise Closed("the watch is closed")
        if self._batches.empty():
            self._batches.put_nowait(WatchBatch(revision=self._revision))

    def take_pending(self, maximum: int) -> WatchBatch | None:  # noqa: ARG002 - there is none
        return None

    async def close(self) -> None:
        self._is_closed = True
        self._batches.put_nowait(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()
