"""Run controllers: the loop of workers that reconcile keys, and the runner of a controller that plans.

Changes become keys, a key becomes a plan when the caches are current, and the plan is executed. Independent of the
controllers: a `Controller` is a record of facts and functions.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import partial

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import ApiError, Conflict
from mockube.controller_manager.cache.store import Change
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.control.actions import Outcome, Plan
from mockube.controller_manager.control.controller import Controller, Observer, ToKeys, Watch
from mockube.controller_manager.control.executor import Executor, forget
from mockube.controller_manager.control.own_writes import EXPIRY_SECONDS, OwnWrites
from mockube.controller_manager.control.runnable import Context
from mockube.controller_manager.metrics.controllers import (
    ERROR,
    REQUEUE_AFTER,
    SUCCESS,
    UNOBSERVED,
    Metrics,
    Runs,
)
from mockube.controller_manager.queue.workqueue import Debouncer, DelayingQueue, RateLimiter, WorkQueue
from mockube.controller_manager.supervision import start, start_in, timeout, yield_to_loop

LOG = logging.getLogger(__name__)

Reconcile = Callable[[Key], Awaitable[timedelta | None]]
"""Returns after which time the key is requeued, if at all. After an exception the key is requeued with backoff."""


class RequeueWithBackoff(Exception):
    """Raised by a reconciliation that cannot do anything now; its key is requeued with backoff."""


class Loop:
    """Workers that take keys from a queue. A worker reconciles a key, and requeues it with backoff after a failure."""

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
        self._debouncer = Debouncer[Key](self._queue.add, clock)
        self.limiter = RateLimiter[Key](clock)

    def add(self, key: Key) -> None:
        self._queue.add(key)

    def add_after(self, key: Key, delay: timedelta) -> None:
        self._delaying.add_after(key, delay.total_seconds())

    def add_debounced(self, key: Key, *, quiet: timedelta, max_delay: timedelta) -> None:
        self._debouncer.add_after_quiet(key, quiet=quiet.total_seconds(), max_delay=max_delay.total_seconds())

    async def run(self) -> None:
        """Work until cancelled; then take no more keys, and finish the current one. A second cancellation interrupts
        that, too.
        """
        workers = [start(f"{self.name}/{number}", self._work()) for number in range(self._workers)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._delaying.close()
            self._debouncer.close()
            self._queue.close()
            await asyncio.gather(*workers)
            self._numbers.forget_waiting()

    async def _work(self) -> None:
        while (key := await self._queue.take()) is not None:
            try:
                await self._handle(key)
            finally:
                self._queue.done(key)
            await yield_to_loop()  # so that a thousand keys without actions do not delay the lease's renewal

    async def _handle(self, key: Key) -> None:
        began, result = self._runs.start(), ERROR
        try:
            again_after = await self._reconcile(key)
            result = REQUEUE_AFTER if again_after else SUCCESS
        except Exception as error:  # noqa: BLE001 - a failure of one key does not affect others
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
        elif isinstance(error, ApiError | NoAnswer | RequeueWithBackoff):
            LOG.warning("%s: %s: %s", self.name, key, error)
        else:
            self._runs.record_panic()
            LOG.error("%s: %s: reconciling failed", self.name, key, exc_info=error)
        self._delaying.add_after(key, self.limiter.when(key))


class ControllerRunner:
    """Runs one controller. It is created before the informers run, so that no change is missed."""

    def __init__(self, controller: Controller, context: Context) -> None:
        self._controller = controller
        self._context = context
        self._caches = context.informers.caches
        self._informers = {
            watch.resource: context.informers.of(watch.resource) for watch in controller.watches
        }
        self._executor = Executor(
            context.client,
            context.recorder.of(controller.event_source, can_wait=controller.events_can_wait),
        )
        self._own_writes = OwnWrites(self._informers, context.informers.list_uncached, context.clock)
        self._parked: set[Key] = set()
        self._memories: dict[Key, object] = {}
        self._observer = controller.observer() if controller.observer else None
        self.loop = Loop(
            controller.queue,
            self._reconcile,
            workers=controller.workers,
            clock=context.clock,
            metrics=context.metrics,
            runs=context.metrics.reconciles.of(controller.metrics_name, controller.workers),
        )
        self.loop.limiter = RateLimiter(context.clock, controller.retries)
        self._listen()

    async def run(self) -> None:
        for informer in self._informers.values():
            await informer.wait_synced()
        async with AsyncExitStack() as stack:
            if self._observer is not None:
                registry = self._context.metrics.registry
                registry.register(self._observer)
                stack.callback(registry.unregister, self._observer)
            self._parking = await stack.enter_async_context(asyncio.TaskGroup())
            await self.loop.run()

    def _listen(self) -> None:
        for resource, indexes in self._controller.indexes.items():
            for name, function in indexes.items():
                self._informers[resource].add_index(name, function)
        for watch in self._controller.watches:
            if watch.keys is not None:
                self._informers[watch.resource].add_handler(self._handler(watch, watch.keys))

    def _handler(self, watch: Watch, keys: ToKeys) -> Callable[[Change], None]:
        def handle(change: Change) -> None:
            for key in keys(self._caches, change):
                if watch.max_delay:
                    self.loop.add_debounced(key, quiet=watch.delay, max_delay=watch.max_delay)
                else:
                    self.loop.add_after(key, watch.delay)

        return handle

    async def _reconcile(self, key: Key) -> timedelta | None:
        await self._own_writes.resolve(key)
        if self._own_writes.pending_writes(key):
            self._park(key)
            return None
        plan = self._plan(key)
        observe = forget if self._observer is None else self._observation(key, self._observer)
        writes, remember = self._own_writes.of(key), partial(self._store_memory, key)
        await self._executor.execute(plan, writes, remember, observe)
        return plan.again_after

    def _observation(self, key: Key, observer: Observer) -> Callable[[Outcome], None]:
        """Report to the observer the outcome of a reconciliation that begins now."""
        clock = self._context.clock
        began, primary = clock.monotonic(), self._caches.of(self._controller.watches[0].resource).get(*key)

        def observe(outcome: Outcome) -> None:
            observer.observe(primary, outcome, clock.monotonic() - began, clock.now())

        return observe

    def _plan(self, key: Key) -> Plan:
        memory = (self._memories.get(key),) if self._controller.remembers else ()
        return self._controller.reconcile(self._caches, key, self._context.clock.now(), *memory)

    def _store_memory(self, key: Key, memory: object) -> None:
        if memory is None:
            self._memories.pop(key, None)
        else:
            self._memories[key] = memory

    def _park(self, key: Key) -> None:
        """Requeue the key when the caches have reached its writes; no worker waits for that."""
        if key not in self._parked:
            self._parked.add(key)
            start_in(self._parking, f"{self._controller.name}/parked", self._come_back(key))

    async def _come_back(self, key: Key) -> None:
        with suppress(TimeoutError):  # a write unseen for so long has expired
            async with timeout(self._context.clock, EXPIRY_SECONDS):
                await self._own_writes.wait(key)
        self._parked.discard(key)
        self.loop.add(key)
