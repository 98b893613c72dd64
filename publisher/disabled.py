"""The publisher of a manager that publishes nothing."""

from datetime import timedelta

from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key

from .bindings import NAME
from .record import Record
from .settings import PublisherContext


class DisabledPublisher:
    """Deletes what an earlier run has written, and publishes nothing."""

    def __init__(self, context: PublisherContext) -> None:
        self._loop = ReconcileLoop(NAME, self._sync, workers=1, clock=context.clock, metrics=context.metrics)
        self._record = Record(context, self._loop)

    async def run(self) -> None:
        await self._record.wait_synced()
        await self._loop.run()

    async def _sync(self, _: Key) -> timedelta | None:
        return await self._record.write()
