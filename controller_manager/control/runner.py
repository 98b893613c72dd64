"""Run a controller: `ControllerRunner` runs a `Controller` in a `ReconcileLoop`.

The runner maps changes to keys, waits until the caches are current for a key, calls `reconcile` and executes the plan. It
is independent of the controllers, which are records of data and functions.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import partial

from mockube.client.cache.revisions import EXPIRY_SECONDS
from mockube.client.cache.store import Change
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.queue.workqueue import RateLimiter
from mockube.client.resources import Key
from mockube.component_base.supervision import start_in, timeout

from .action_summary import summarize
from .actions import Plan, PlanResult
from .controller import Controller, OutcomeMetrics, ToKeys, Watch
from .executor import Executor, ignore
from .own_writes import OwnWrites
from .runnable import Context


def delay_of(watch: Watch, counted: int) -> timedelta:
    """Return the delay of a change whose key looked at so many objects last."""
    return max(watch.delay, counted * watch.pause)


class ControllerRunner:
    """Runs one controller. It is created before the informers start, so that its handlers see every change."""

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
        self._counted: dict[Key, int] = {}
        """How many objects the last reconciliation of a key looked at."""
        self._recent = context.metrics.recent.of(controller.queue)
        make_metrics, registry = controller.outcome_metrics, context.metrics.registry
        self._outcome_metrics = make_metrics(registry) if make_metrics else None
        self.loop = ReconcileLoop(
            controller.queue,
            self._reconcile,
            workers=controller.workers,
            clock=context.clock,
            metrics=context.metrics,
            observer=context.metrics.reconciles.of(controller.metrics_name, controller.workers),
        )
        self.loop.limiter = RateLimiter(context.clock, controller.retries)
        self._register_handlers()

    async def run(self) -> None:
        for informer in self._informers.values():
            await informer.wait_synced()
        async with AsyncExitStack() as stack:
            if self._outcome_metrics is not None:
                stack.callback(self._context.metrics.registry.on_collect(self._outcome_metrics.update))
            self._waits = await stack.enter_async_context(asyncio.TaskGroup())
            await self.loop.run()

    def _register_handlers(self) -> None:
        # Indexes first: the handlers map changes to keys by them.
        for resource, indexes in self._controller.indexes.items():
            for name, function in indexes.items():
                self._informers[resource].add_index(name, function)
        for resource, tallies in self._controller.tallies.items():
            for name, classify in tallies.items():
                self._informers[resource].add_tally(name, classify)
        for watch in self._controller.watches:
            if watch.keys is not None:
                self._informers[watch.resource].add_handler(self._handler(watch, watch.keys))

    def _handler(self, watch: Watch, keys: ToKeys) -> Callable[[Change], None]:
        def handle(change: Change) -> None:
            for key in keys(self._caches, change):
                if watch.max_delay:
                    self.loop.add_debounced(key, quiet=watch.delay, max_delay=watch.max_delay)
                else:
                    self.loop.add_coalesced(key, delay_of(watch, self._counted.get(key, 0)))

        return handle

    async def _reconcile(self, key: Key) -> timedelta | None:
        await self._own_writes.resolve(key)
        if self._own_writes.pending_writes(key):
            self._park(key)
            return None
        plan = self._plan(key)
        if plan.counted:
            self._counted[key] = plan.counted
        else:
            self._counted.pop(key, None)
        count = ignore if self._outcome_metrics is None else self._observe_outcome(key, self._outcome_metrics)

        def observe(outcome: PlanResult) -> None:
            count(outcome)
            if actions := summarize(plan, outcome):
                self._recent.note_actions(key, actions)

        writes, remember = self._own_writes.of(key), partial(self._store_memory, key)
        await self._executor.execute(plan, writes, remember, observe)
        return plan.requeue_after

    def _observe_outcome(self, key: Key, metrics: OutcomeMetrics) -> Callable[[PlanResult], None]:
        """Return a callback that records the outcome of a reconciliation that starts now."""
        clock = self._context.clock
        started_at, primary = (
            clock.real.monotonic(),
            self._caches.of(self._controller.watches[0].resource).get(*key),
        )

        def observe(outcome: PlanResult) -> None:
            metrics.observe(primary, outcome, clock.real.monotonic() - started_at, clock.now())

        return observe

    def _plan(self, key: Key) -> Plan:
        memory = (self._memories.get(key),) if self._controller.has_memory else ()
        return self._controller.reconcile(self._caches, key, self._context.clock.now(), *memory)

    def _store_memory(self, key: Key, memory: object) -> None:
        if memory is None:
            self._memories.pop(key, None)
        else:
            self._memories[key] = memory

    def _park(self, key: Key) -> None:
        """Requeue the key when the caches contain its writes, without keeping a worker waiting."""
        if key not in self._parked:
            self._parked.add(key)
            start_in(self._waits, f"{self._controller.name}/parked", self._requeue_when_current(key))

    async def _requeue_when_current(self, key: Key) -> None:
        with suppress(TimeoutError):  # the writes have expired
            async with timeout(self._context.clock, EXPIRY_SECONDS):
                await self._own_writes.wait(key)
        self._parked.discard(key)
        self.loop.add(key)
