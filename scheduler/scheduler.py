"""Schedule pods one after the other, each on a snapshot of the cluster, and bind them concurrently.

The parts are made here. Upstream: scheduler.go, and ScheduleOne in schedule_one.go.
"""

import logging
from typing import Any, Final

from mockube.client.cache.informer import Informer
from mockube.client.component import ComponentContext
from mockube.client.kinds import PODS

from . import watched
from .algorithm import SchedulingAlgorithm
from .binder import Binder, BindingSlots
from .binding_cycle import BindingCycle
from .cluster_state import ClusterState
from .event_handlers import EventHandlers
from .failure_handler import FailureHandler
from .monitor import SchedulerMonitor
from .preemption_executor import PreemptionExecutor, PreemptionsInProgress
from .profiles import DEFAULT_SETTINGS, SchedulerSettings
from .queue import SchedulingQueue
from .reporting import PodReporter
from .scheduling_cycle import SchedulingCycle

LOG: Final = logging.getLogger(__name__)
_MAX_BINDINGS: Final = 32
"""The maximum number of bindings that send requests at the same time; further decisions wait."""


class Scheduler:
    """Takes pods from its queue, decides on each, and starts its binding."""

    def __init__(self, context: ComponentContext, settings: SchedulerSettings = DEFAULT_SETTINGS) -> None:
        for warning in settings.warnings:
            LOG.warning("--scheduler-config: %s", warning)
        pods, gates = context.informers.of(PODS), context.informers.caches.gates
        self._informers: list[Informer[Any]] = [pods, *map(context.informers.of, watched.WATCHED)]
        self._extenders = None
        if settings.extenders:
            from .extenders.chain import Extenders  # noqa: PLC0415 - few have extenders

            self._extenders = Extenders(settings.extenders)
        self._state = ClusterState(context.informers, settings.profiles)
        self._monitor = SchedulerMonitor(context.clock.monotonic, context.metrics.registry)
        preempting = PreemptionsInProgress(pods.lister)
        self._queue = SchedulingQueue(
            context.clock,
            preempting.is_blocked,
            self._state.pending.is_worth_requeuing,
            pops_from_backoff=gates.is_on("SchedulerPopFromBackoffQ"),
            backoff=(settings.initial_backoff, settings.max_backoff),
        )
        reporter = PodReporter(context, settings.profiles)
        algorithm = SchedulingAlgorithm(self._state.cache, self._monitor, self._extenders)
        self._slots = BindingSlots(_MAX_BINDINGS)
        binder = Binder(context, self._slots, self._extenders)
        self._handlers = EventHandlers(context.informers, self._state, self._queue, algorithm)
        self._preemptions = PreemptionExecutor(context, preempting, reporter.recorder_of, self._queue.resume)
        failures = FailureHandler(
            context, self._state, self._preemptions, self._extenders, reporter, self._monitor
        )
        self._scheduling = SchedulingCycle(
            context, self._state, self._queue, algorithm, failures, self._monitor
        )
        self._binding = BindingCycle(context, self._state, self._handlers, binder, reporter, self._monitor)
        self._failures = context.metrics.task_restarts.of("scheduler/schedule")
        self._stop_reporting = context.metrics.registry.on_collect(self._report_state)

    async def run(self) -> None:
        """Schedule pods until cancelled, then wait for the bindings and preemptions that are sending requests."""
        for informer in self._informers:
            await informer.wait_synced()
        try:
            while True:
                await self._slots.acquire()
                await self._schedule_one()
        finally:
            self._stop_reporting()
            try:
                self._slots.cancel_waiting()
                await self._binding.finish()
                await self._preemptions.finish()
            finally:
                if self._extenders is not None:
                    await self._extenders.close()

    async def _schedule_one(self) -> None:
        """Take a pod, decide on it, and start its binding. Releases the slot of the caller, now or after the binding."""
        key, assumed = await self._queue.pop(), None
        try:
            assumed = await self._scheduling.schedule(key)
            if assumed is not None:
                self._binding.start(assumed).add_done_callback(lambda _: self._slots.release())
        except Exception:
            # The pod is tried again with backoff, and others are scheduled meanwhile.
            LOG.exception("scheduler: %s: scheduling failed and is retried", key)
            self._failures.value += 1
            self._queue.retry(key)
        finally:
            self._queue.done()
            if assumed is None:
                self._slots.release()

    def _report_state(self) -> None:
        rejected = [
            (self._state.pending.profile_name(key), plugins) for key, plugins in self._queue.rejected()
        ]
        self._monitor.report_state(
            self._queue.pending(self._handlers.gated), rejected, self._state.cache.sizes()
        )
