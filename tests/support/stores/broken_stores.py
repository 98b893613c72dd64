"""Stores that each break one guarantee of the contract now and then, as real stores have done.

The history checker must find the fault of every one: that measures the checker. Each wraps a
correct store, and names the fault that the checker must report.
"""

import asyncio
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from mockube.component_base.clock import SteppedClock
from mockube.etcd.embedded.store import MemoryStore
from mockube.etcd.errors import Compacted
from mockube.etcd.kv import (
    HEAD,
    KV,
    Put,
    PutResult,
    Range,
    RangeResult,
    Txn,
    TxnResult,
)
from tests.support.event_loop import yield_to_loop
from tests.support.stores.wrapped import WrappedStore


class BrokenStore(WrappedStore):
    fault: ClassVar[str]
    """The prefix of the fault that the checker must report."""


# --- responses


class ReadsThePast(BrokenStore):
    """A stale read: a member that was paused serves its data without a check that it is the newest."""

    fault = "stale read"

    async def range(self, request: Range) -> RangeResult:
        newest = (await self.store.range(request)).revision
        if request.revision != HEAD or next(self.turn) % 5:
            return await self.store.range(request)
        try:
            past = await self.store.range(replace(request, revision=newest - 2))
        except Compacted:
            return await self.store.range(request)
        return replace(past, revision=newest - 2)


class ReadsThePastAsPresent(BrokenStore):
    """A cache that is stale, and reports a current revision."""

    fault = "wrong answer"

    async def range(self, request: Range) -> RangeResult:
        newest = await self.store.range(request)
        if request.revision != HEAD or next(self.turn) % 5:
            return newest
        try:
            past = await self.store.range(replace(request, revision=newest.revision - 2))
        except Compacted:
            return newest
        return replace(past, revision=newest.revision)


class TearsRanges(BrokenStore):
    """Reads key by key, with writes between."""

    fault = "wrong answer"

    async def range(self, request: Range) -> RangeResult:
        first = await self.store.range(request)
        await yield_to_loop(6)
        then = await self.store.range(request)
        return replace(then, kvs=[*first.kvs[:1], *then.kvs[1:]])


class CountsWhatItShows(BrokenStore):
    """With a limit, counts the returned keys instead of all keys."""

    fault = "wrong answer"

    async def range(self, request: Range) -> RangeResult:
        result = await self.store.range(request)
        return result if request.count_only else replace(result, count=len(result.kvs))


class ReadsTheForgotten(BrokenStore):
    """Continues to serve compacted revisions."""

    fault = "read of the forgotten"

    async def range(self, request: Range) -> RangeResult:
        try:
            return await self.store.range(request)
        except Compacted:
            newest = await self.store.range(replace(request, revision=HEAD))
            return replace(newest, kvs=(), count=0)


class IgnoresComparisons(BrokenStore):
    """Two concurrent compare-and-swap writes both succeed."""

    fault = "lost update"

    async def txn(self, request: Txn) -> TxnResult:
        return await self.store.txn(replace(request, compare=()))


class ForgetsWrites(BrokenStore):
    """Acknowledges a write before it is durable, and then loses it."""

    fault = "revision reused"

    async def put(self, request: Put) -> PutResult:
        if next(self.turn) % 10:
            return await self.store.put(request)
        return PutResult(revision=(await self.store.status()).revision)


class ReusesRevisions(BrokenStore):
    """Assigns wrong revisions."""

    fault = "revision reused"

    async def put(self, request: Put) -> PutResult:
        result = await self.store.put(request)
        return result if next(self.turn) % 10 else replace(result, revision=result.revision - 1)


class SkipsRevisions(BrokenStore):
    """Uses a second revision for a write, now and then."""

    fault = "revision from nowhere"

    async def put(self, request: Put) -> PutResult:
        if next(self.turn) % 10 == 0:
            await self.store.put(replace(request, value=b"somebody else's"))
        return await self.store.put(request)


class SpreadsTransactions(BrokenStore):
    """Executes the operations of a transaction one by one, each at its own revision."""

    fault = "revision from nowhere"

    async def txn(self, request: Txn) -> TxnResult:
        result = await self.store.txn(replace(request, then=request.then[:1]))
        if not result.succeeded:
            return result
        others = [await self.store.txn(Txn(then=[operation])) for operation in request.then[1:]]
        newest = others[-1].revision if others else result.revision
        results = [*result.results, *(each.results[0] for each in others)]
        return replace(result, revision=newest, results=results)


class RefusesWhatItHas(BrokenStore):
    """Reports old revisions as compacted."""

    fault = "unjustified refusal"

    async def range(self, request: Range) -> RangeResult:
        result = await self.store.range(request)
        if HEAD < request.revision < result.revision - 5:
            raise Compacted(request.revision, result.revision - 5)
        return result


# --- what a restart preserves


class Restarts(WrappedStore):
    """A correct store that restarts after every n writes from the log of all writes. Its time stands still."""

    writes: ClassVar = frozenset({"put", "delete", "txn", "compact", "grant", "revoke"})
    retained_log: ClassVar = slice(None)
    """The part of the log that a restart preserves."""

    def __init__(self, store: KV) -> None:  # noqa: ARG002 -- the subclass must be able to restart it
        super().__init__(MemoryStore(clock=SteppedClock()))
        self.log: list[tuple[str, Any]] = []
        self.writing = asyncio.Lock()

    def __getattr__(self, name: str) -> Any:
        return partial(self.write, name) if name in self.writes else getattr(self.store, name)

    async def write(self, name: str, argument: Any) -> Any:
        async with self.writing:
            answer = await getattr(self.store, name)(argument)
            self.log.append((name, argument))
            if len(self.log) % 40 == 0:
                await self.restart()
            return answer

    async def restart(self) -> None:
        before, after = self.store, MemoryStore(clock=SteppedClock())
        self.log = self.log[self.retained_log]
        for name, argument in self.log:
            await getattr(after, name)(argument)
        self.store = after
        await before.close()


class LosesItsTail(Restarts, BrokenStore):
    """Responds before the write is on disk."""

    fault = "revision reused"
    retained_log = slice(-1)
