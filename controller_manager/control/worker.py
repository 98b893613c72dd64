"""The loop of a controller: it takes keys, reconciles each key once at a time, and requeues it with backoff after a
failure.

Independent of what is reconciled.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import ApiError, Conflict
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.metrics.queues import Metrics
from mockube.controller_manager.metrics.reconciles import AGAIN, ERROR, SUCCESS, UNOBSERVED, Runs
from mockube.controller_manager.queue.delaying import Debouncer, DelayingQueue
from mockube.controller_manager.queue.rate_limiting import RateLimiter
from mockube.controller_manager.queue.workqueue import WorkQueue
from mockube.controller_manager.supervision import start, yield_to_loop

LOG = logging.getLogger(__name__)

Reconcile = Callable[[Key], Awaitable[timedelta | None]]
"""Returns after which time the key is requeued, if at all. After an exception the key is requeued with backoff."""


class TryAgain(Exception):
    """Raised by a reconciliation that cannot do anything now; its key is requeued with backoff."""


class Loop:
    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int,
        clock: Clock,
        metrics: Metrics,
        runs: Runs = UNOBSERVED,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self._runs = runs
        self._numbers = metrics.queues.of(name)
        self._queue = WorkQueue[Key](self._numbers)
        self._delaying = DelayingQueue[Key](self._queue.add, clock)
        self._settling = Debouncer[Key](self._queue.add, clock)
        self.limiter = RateLimiter[Key](clock)

    def add(self, key: Key) -> None:
        self._queue.add(key)

    def add_after(self, key: Key, delay: timedelta) -> None:
        self._delaying.add_after(key, delay.total_seconds())

    def add_debounced(self, key: Key, *, quiet: timedelta, max_delay: timedelta) -> None:
        self._settling.add_after_quiet(key, quiet=quiet.total_seconds(), max_delay=max_delay.total_seconds())

    async def run(self) -> None:
        """Work until cancelled; then take no more keys, and finish the current one. A second cancellation interrupts
        that, too.
        """
        workers = [start(f"{self.name}/{number}", self._work()) for number in range(self._workers)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._delaying.close()
            self._settling.close()
            self._queue.close()
            await asyncio.gather(*workers)
            self._numbers.forget_waiting()

    async def _work(self) -> None:
        while (key := await self._queue.take()) is not None:
            try:
                await self._handle(key)
            finally:
                self._queue.done(key)
            await (
                yield_to_loop()
            )  # a thousand keys that need nothing shall not keep the lease from being renewed

    async def _handle(self, key: Key) -> None:
        began, result = self._runs.start(), ERROR
        try:
            again_after = await self._reconcile(key)
            result = AGAIN if again_after else SUCCESS
        except Exception as error:  # noqa: BLE001 - whatever goes wrong with one key is no reason to leave the others alone
            self._fail(key, error)
            return
        finally:
            self._runs.finish(began, result)
        self.limiter.forget(key)
        if again_after is not None:
            self.add_after(key, again_after)

    def _fail(self, key: Key, error: Exception) -> None:
        self._numbers.retries += 1
        if isinstance(error, Conflict):
            LOG.debug("%s: %s: another client changed the object first: %s", self.name, key, error)
        elif isinstance(error, ApiError | NoAnswer | TryAgain):
            LOG.warning("%s: %s: %s", self.name, key, error)
        else:
            self._runs.record_panic()
            LOG.error("%s: %s: reconciling failed", self.name, key, exc_info=error)
        self._delaying.add_after(key, self.limiter.when(key))
