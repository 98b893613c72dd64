"""A work queue with workers that reconcile its keys."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.client.kinds import SECRETS
from mockube.client.metrics import reconciliations
from mockube.client.metrics.process import Metrics
from mockube.client.metrics.reconciliations import ReconcileObserver
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.supervision import start

from .workqueue import Debouncer, DelayingQueue, RateLimiter, WorkQueue

LOG: Final = logging.getLogger(__name__)

Reconcile = Callable[[Key], Awaitable[timedelta | None]]
"""A function that reconciles a key, and returns the time after which to requeue it, or None.

If it raises an error, the key is requeued with backoff.
"""


class RequeueWithBackoff(Exception):
    """A reconciliation cannot do anything now; its key is requeued with backoff."""


class ReconcileLoop:
    """A work queue and its workers, which reconcile keys, and requeue failed ones with backoff."""

    def __init__(  # noqa: PLR0913 - each is a part of the loop
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int,
        clock: Clock,
        metrics: Metrics,
        observer: ReconcileObserver = reconciliations.NOOP_OBSERVER,
        requeue_clock: Clock | None = None,
    ) -> None:
        """Create a loop. `requeue_clock` is that of the times which `reconcile` returns, if it is not the clock of everything else."""
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self._observer = observer
        self._clock = clock
        self._stats = metrics.queues.of(name)
        self._recent = metrics.recent.of(name)
        self._queue = WorkQueue[Key](self._stats)
        self._delaying = DelayingQueue[Key](self._add_due, clock)
        self._requeues = (
            self._delaying if requeue_clock is None else DelayingQueue[Key](self._add_due, requeue_clock)
        )
        self._coalescing = DelayingQueue[Key](self._add_due, clock.coalescing)
        self._debouncer = Debouncer[Key](self._queue.add, clock.coalescing)
        self.limiter = RateLimiter[Key](clock)

    def add(self, key: Key) -> None:
        self._queue.add(key)

    def add_after(self, key: Key, delay: timedelta) -> None:
        self._add_after(self._delaying, key, delay)

    def add_coalesced(self, key: Key, delay: timedelta) -> None:
        """Add the key after a delay that spares the machine work, and that a pause of the cluster's clock does not hold back."""
        self._add_after(self._coalescing, key, delay)

    def add_debounced(self, key: Key, *, quiet: timedelta, max_delay: timedelta) -> None:
        self._debouncer.add_after_quiet(key, quiet=quiet.total_seconds(), max_delay=max_delay.total_seconds())

    def _add_after(self, queue: DelayingQueue[Key], key: Key, delay: timedelta) -> None:
        if delay:
            queue.add_after(key, delay.total_seconds())
        else:
            self._queue.add(key)

    def _add_due(self, key: Key) -> None:
        """Add a key whose delay is over. As in client-go a key waits once: what else it waits for, its reconciliation decides anew."""
        self._delaying.discard(key)
        self._requeues.discard(key)
        self._coalescing.discard(key)
        self._queue.add(key)

    async def run(self) -> None:
        """Reconcile keys until cancelled; then take no more keys, and finish the current ones.

        A second cancellation cancels those, too.
        """
        workers = [start(f"{self.name}/{number}", self._work()) for number in range(self._workers)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._delaying.close()
            self._requeues.close()
            self._coalescing.close()
            self._debouncer.close()
            self._queue.close()
            await asyncio.gather(*workers)
            self._stats.clear_waiting()

    async def _work(self) -> None:
        while (key := await self._queue.take()) is not None:
            try:
                await self._process(key)
            finally:
                self._queue.done(key)
            await yield_to_loop()  # many keys without actions must not delay the renewal of the lease

    async def _process(self, key: Key) -> None:
        started_at = self._observer.start()
        began, since = self._clock.now(), self._clock.real.monotonic()
        requeue_after, failure = None, None
        try:
            requeue_after = await self._reconcile(key)
        except asyncio.CancelledError:  # it has no result
            self._observer.cancel()
            self._recent.cancel(key)
            raise
        except Exception as error:  # noqa: BLE001 - a failure of one key does not affect others
            failure = error
        seconds = self._clock.real.monotonic() - since
        if failure is not None:
            self._observer.finish(started_at, reconciliations.ERROR)
            self._recent.finish(key, began, seconds, reconciliations.ERROR, _text_of(failure, key))
            self._fail(key, failure)
            return
        result = reconciliations.REQUEUE_AFTER if requeue_after else reconciliations.SUCCESS
        self._observer.finish(started_at, result)
        self._recent.finish(key, began, seconds, result)
        self.limiter.forget(key)
        if requeue_after is not None:
            self._add_after(self._requeues, key, requeue_after)

    def _fail(self, key: Key, error: Exception) -> None:
        self._stats.retries.value += 1
        if _is_overtaken(error, key):
            LOG.debug("%s: %s: another client changed or deleted the object: %s", self.name, key, error)
        elif isinstance(error, ApiError | NoResponse | RequeueWithBackoff):
            LOG.warning("%s: %s: %s", self.name, key, error)
        else:
            self._observer.record_panic()
            LOG.error("%s: %s: reconciling failed", self.name, key, exc_info=error)
        self._delaying.add_after(key, self.limiter.when(key))


def _text_of(error: Exception, key: Key) -> str:
    """Return an error for people who read the newest reconciliations; "" for one that belongs to the work.

    It quotes no value of a Secret: an error that is not foreseen may quote whatever was read, and only the log has its text.
    """
    if isinstance(error, RequeueWithBackoff) or _is_overtaken(error, key):
        return ""
    is_foreseen = isinstance(error, ApiError | NoResponse) and not _is_about_secret(error)
    return f"{type(error).__name__}: {error}" if is_foreseen else type(error).__name__


def _is_about_secret(error: Exception) -> bool:
    details = error.details if isinstance(error, ApiError) else None
    return details is not None and SECRETS.is_called(details.group, details.kind)


def _is_overtaken(error: Exception, key: Key) -> bool:
    """Return whether another client changed or deleted the object while it was reconciled."""
    return isinstance(error, Conflict) or _is_gone(error, key)


def _is_gone(error: Exception, key: Key) -> bool:
    """Return whether the object of a key was deleted while it was reconciled; an object that it needs is not meant."""
    return isinstance(error, NotFound) and error.details is not None and error.details.name == key.name
