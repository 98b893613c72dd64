"""Stores and watches that wrap others, and change one behaviour."""

from collections.abc import AsyncIterator, Callable, Collection
from itertools import count
from typing import Any, Self

from msgspec.structs import replace

from mockube.etcd.errors import Interrupted
from mockube.etcd.kv import KV, Txn, TxnResult, Watch, WatchBatch, WatchRequest


class WrappedStore:
    """A store that wraps another, except for the methods of a subclass."""

    def __init__(self, store: KV) -> None:
        self.store = store
        self.turn = count(1)
        """Counts calls, so that a subclass can alter every n-th."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


class AlteredWatch:
    """A watch that wraps another, except for the batches that it delivers."""

    def __init__(self, watch: Watch, change_batches: Callable[[Watch], AsyncIterator[WatchBatch]]) -> None:
        self.watch = watch
        self.batches = change_batches(watch)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchBatch:
        return await anext(self.batches)

    async def request_progress(self) -> None:
        await self.watch.request_progress()

    def take_pending(self, _most: int) -> WatchBatch | None:
        return None

    async def close(self) -> None:
        await self.watch.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


class LosesAnswers(WrappedStore):
    """A correct store over a bad connection: now and then a transaction or its response is lost."""

    async def txn(self, request: Txn) -> TxnResult:
        turn = next(self.turn)
        if turn % 10 == 5:
            raise Interrupted("lost on the way there")
        result = await self.store.txn(request)
        if turn % 10 == 0:
            raise Interrupted("lost on the way back")
        return result


class StoreWithLostEvents(WrappedStore):
    """A correct store whose watches do not deliver some keys."""

    lost: Collection[bytes] = ()

    async def watch(self, request: WatchRequest) -> AlteredWatch:
        async def change_batches(watch: Watch) -> AsyncIterator[WatchBatch]:
            async for batch in watch:
                delivered_events = [event for event in batch.events if event.kv.key not in self.lost]
                yield replace(batch, events=delivered_events)

        return AlteredWatch(await self.store.watch(request), change_batches)
