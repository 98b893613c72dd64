"""Stores that each break one promise of the contract now and then, as real stores have done.

The history checker must catch every one of them: that is the measure of what it can see. Each stands in front of a
sound store, and names the fault that the checker shall find.
"""

import asyncio
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace

from mockube.apimachinery.clock import SteppedClock
from mockube.etcd.embedded.memory import MemoryStore
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
from tests.support.stores.wrapped import Wrapped
from tests.support.turns import turns


class Broken(Wrapped):
    fault: ClassVar[str]
    """How the sentence begins that the checker must say."""


# --- what clients are answered


class ReadsThePast(Broken):
    """A member that was paused: it serves what it has, and does not ask whether that is the newest."""

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


class ReadsThePastAsPresent(Broken):
    """A cache that is behind, and says that it is not."""

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


class TearsRanges(Broken):
    """Reads key by key, with writes between."""

    fault = "wrong answer"

    async def range(self, request: Range) -> RangeResult:
        first = await self.store.range(request)
        await turns(6)
        then = await self.store.range(request)
        return replace(then, kvs=[*first.kvs[:1], *then.kvs[1:]])


class CountsWhatItShows(Broken):
    """Under a limit, counts the keys shown, not those there are."""

    fault = "wrong answer"

    async def range(self, request: Range) -> RangeResult:
        result = await self.store.range(request)
        return result if request.count_only else replace(result, count=len(result.kvs))


class ReadsTheForgotten(Broken):
    """Goes on to serve what was compacted."""

    fault = "read of the forgotten"

    async def range(self, request: Range) -> RangeResult:
        try:
            return await self.store.range(request)
        except Compacted:
            newest = await self.store.range(replace(request, revision=HEAD))
            return replace(newest, kvs=(), count=0)


class IgnoresComparisons(Broken):
    """Two who swap at once both win."""

    fault = "lost update"

    async def txn(self, request: Txn) -> TxnResult:
        return await self.store.txn(replace(request, compare=()))


class ForgetsWrites(Broken):
    """Acknowledges a write before it is safe, and then loses it."""

    fault = "revision reused"

    async def put(self, request: Put) -> PutResult:
        if next(self.turn) % 10:
            return await self.store.put(request)
        return PutResult(revision=(await self.store.status()).revision)


class ReusesRevisions(Broken):
    """Counts its revisions without care."""

    fault = "revision reused"

    async def put(self, request: Put) -> PutResult:
        result = await self.store.put(request)
        return result if next(self.turn) % 10 else replace(result, revision=result.revision - 1)


class SkipsRevisions(Broken):
    """Takes a second revision for a write, now and then."""

    fault = "revision from nowhere"

    async def put(self, request: Put) -> PutResult:
        if next(self.turn) % 10 == 0:
            await self.store.put(replace(request, value=b"somebody else's"))
        return await self.store.put(request)


class SpreadsTransactions(Broken):
    """Does the operations of a transaction one after the other, each at its own revision."""

    fault = "revision from nowhere"

    async def txn(self, request: Txn) -> TxnResult:
        result = await self.store.txn(replace(request, then=request.then[:1]))
        if not result.succeeded:
            return result
        others = [await self.store.txn(Txn(then=[operation])) for operation in request.then[1:]]
        newest = others[-1].revision if others else result.revision
        results = [*result.results, *(each.results[0] for each in others)]
        return replace(result, revision=newest, results=results)


class RefusesWhatItHas(Broken):
    """Takes for compacted what is only old."""

    fault = "unjustified refusal"

    async def range(self, request: Range) -> RangeResult:
        result = await self.store.range(request)
        if HEAD < request.revision < result.revision - 5:
            raise Compacted(request.revision, result.revision - 5)
        return result


# --- what a restart keeps


class Restarts(Wrapped):
    """A sound store that is started again every so many writes from the log of all writes. Time stands still for it."""

    writes: ClassVar = frozenset({"put", "delete", "txn", "compact", "grant", "revoke"})
    retained_log: ClassVar = slice(None)
    """What a restart keeps of the log."""

    def __init__(self, store: KV) -> None:  # noqa: ARG002 -- it needs one that it can start again
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


class LosesItsTail(Restarts, Broken):
    """Answers before the disk has it."""

    fault = "revision reused"
    retained_log = slice(-1)
