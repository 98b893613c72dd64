"""Stores whose watches break one guarantee of the contract, as the watches of real stores have done."""

from collections.abc import AsyncIterator

from msgspec.structs import replace

from mockube.etcd.errors import Compacted
from mockube.etcd.kv import (
    FROM_KEY,
    HEAD,
    Event,
    EventKind,
    Revision,
    Watch,
    WatchBatch,
    WatchRequest,
)
from tests.support.stores.broken_stores import BrokenStore
from tests.support.stores.wrapped import AlteredWatch


class BreaksWatches(BrokenStore):
    """Every watch passes through `change_batches`."""

    async def watch(self, request: WatchRequest) -> AlteredWatch:
        return AlteredWatch(await self.store.watch(request), self.change_batches)

    def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        raise NotImplementedError


class DropsEventsAtCompaction(BreaksWatches):
    """Each watch loses an event when history is compacted."""

    fault = "missing event"
    compactions = 0

    async def compact(self, revision: Revision) -> None:
        await self.store.compact(revision)
        self.compactions += 1

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        known = self.compactions
        async for batch in watch:
            lost = batch.events and known < self.compactions
            known = self.compactions if lost else known
            yield replace(batch, events=batch.events[1:]) if lost else batch


class DropsTheFirst(BreaksWatches):
    """Starts to watch only after it has reported that it does."""

    fault = "missing event"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        first = await anext(watch)
        yield WatchBatch(revision=first.revision)
        async for batch in watch:
            yield batch


class SplitsRevisions(BreaksWatches):
    """Splits batches by size, also within a revision."""

    fault = "split revision"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            for event in batch.events:
                yield WatchBatch(revision=event.kv.mod_revision, events=[event])
            if not batch.events:
                yield batch


class PromisesAhead(BreaksWatches):
    """A progress notification arrives before the events that it covers."""

    fault = "progress ahead"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            yield WatchBatch(revision=batch.revision)
            yield batch


class PromisesTheFuture(BreaksWatches):
    """Reports progress to a revision before it is reached."""

    fault = "progress ahead"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            yield replace(batch, revision=batch.revision + 1)


class TakesProgressBack(BreaksWatches):
    """Reports progress from stale data."""

    fault = "progress backwards"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            yield batch
            yield WatchBatch(revision=batch.revision - 1)


class RepeatsEvents(BreaksWatches):
    """Sends events again that it may have sent already."""

    fault = "repeated event"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            yield batch
            if next(self.turn) % 10 == 0:
                yield batch


class TravelsBack(BreaksWatches):
    """Sends an older event after a newer one."""

    fault = "old event"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            yield replace(batch, events=batch.events[::-1])


class MistakesPrevious(BreaksWatches):
    """Returns the current value as the previous value."""

    fault = "wrong previous value"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            yield replace(
                batch, events=[replace(each, previous=each.previous and each.kv) for each in batch.events]
            )


class MistakesValues(BreaksWatches):
    """Returns a newer value in an older event."""

    fault = "wrong event"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            newest = {event.kv.key: event.kv for event in batch.events}
            yield replace(batch, events=[replace(each, kv=newest[each.kv.key]) for each in batch.events])


class CancelsForNothing(BreaksWatches):
    """Cancels a slow watch as if its revision were compacted."""

    fault = "unjustified cancellation"

    async def change_batches(self, watch: Watch) -> AsyncIterator[WatchBatch]:
        async for batch in watch:
            yield batch
            if next(self.turn) % 20 == 0:
                raise Compacted(batch.revision + 1, batch.revision + 2)


class HidesExpiry(BrokenStore):
    """Deletes the keys of a lease without events."""

    fault = "missing event"

    async def watch(self, request: WatchRequest) -> AlteredWatch:
        def is_delivered(event: Event) -> bool:
            return event.kind is EventKind.PUT or not (event.previous and event.previous.lease)

        async def change_batches(watch: Watch) -> AsyncIterator[WatchBatch]:
            async for batch in watch:
                events = [
                    replace(e, previous=e.previous if request.previous else None)
                    for e in batch.events
                    if is_delivered(e)
                ]
                yield replace(batch, events=events)

        return AlteredWatch(await self.store.watch(replace(request, previous=True)), change_batches)


class MissesDeletesAtCompaction(BrokenStore):
    """A watch that starts at the very revision of compaction misses its deletions."""

    fault = "missing event"

    async def watch(self, request: WatchRequest) -> AlteredWatch:
        forgotten = (await self.store.status()).compact_revision

        def is_delivered(event: Event) -> bool:
            return event.kind is EventKind.PUT or event.kv.mod_revision != forgotten

        async def change_batches(watch: Watch) -> AsyncIterator[WatchBatch]:
            async for batch in watch:
                yield replace(batch, events=[event for event in batch.events if is_delivered(event)])

        return AlteredWatch(await self.store.watch(request), change_batches)


class RepeatsOnResume(BrokenStore):
    """Handles the start revision as the last one that was delivered."""

    fault = "event before the start"

    async def watch(self, request: WatchRequest) -> Watch:
        return await self.store.watch(replace(request, start_revision=max(HEAD, request.start_revision - 1)))


class ForgetsTheFuture(BrokenStore):
    """Handles a start revision in the future as the current one."""

    fault = "event before the start"

    async def watch(self, request: WatchRequest) -> Watch:
        newest = (await self.store.status()).revision
        start = HEAD if request.start_revision > newest else request.start_revision
        return await self.store.watch(replace(request, start_revision=start))


class LeaksOverThePrefix(BrokenStore):
    """Ignores the end of a prefix."""

    fault = "foreign event"

    async def watch(self, request: WatchRequest) -> Watch:
        return await self.store.watch(replace(request, range_end=request.range_end and FROM_KEY))
