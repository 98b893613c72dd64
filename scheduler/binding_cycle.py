"""Bind an assumed pod to its node in the background, and take the assumption back if that fails.

Upstream: bindingCycle in schedule_one.go.
"""

import asyncio
import logging
from typing import Final

from mockube.client.component import ComponentContext
from mockube.component_base.supervision import start

from .binder import Binder, BindingFailure
from .cluster_state import ClusterState
from .event_handlers import EventHandlers
from .failure import SchedulingFailure
from .monitor import ERROR, SCHEDULED, SchedulerMonitor
from .reporting import PodReporter
from .scheduling_cycle import AssumedPod

LOG: Final = logging.getLogger(__name__)


class BindingCycle:
    """The bindings in progress."""

    def __init__(
        self,
        context: ComponentContext,
        state: ClusterState,
        handlers: EventHandlers,
        binder: Binder,
        reporter: PodReporter,
        monitor: SchedulerMonitor,
    ) -> None:
        self._failures = context.metrics.task_restarts.of("scheduler/bind")
        self._state = state
        self._handlers = handlers
        self._binder = binder
        self._reporter = reporter
        self._monitor = monitor
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, assumed: AssumedPod) -> asyncio.Task[None]:
        """Start to bind a pod."""
        task = start(f"scheduler/bind {assumed.pod.view.key}", self._bind(assumed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _bind(self, assumed: AssumedPod) -> None:
        """Write the allocations of devices, and bind the pod. Allocations that were not written are released."""
        pod, profile, monitor = assumed.pod, assumed.profile, self._monitor
        try:
            if assumed.devices is not None:
                await assumed.devices.bind()
            binding_began = monitor.monotonic()
            await self._binder.bind(pod, assumed.node, assumed.volumes, profile.bind_timeout)
            monitor.record_extension_point("Bind", binding_began, profile.name)
        except BindingFailure as error:
            await self._handle_failure(assumed, error)
        except Exception as error:
            LOG.exception("scheduler: %s: binding failed and is retried", pod.view.key)
            self._failures.value += 1
            await self._handle_failure(assumed, BindingFailure.of_plugin("Bind", "DefaultBinder", error))
        else:
            monitor.record_attempt(SCHEDULED, assumed.began, profile.name)
            monitor.record_bound(assumed.attempts, assumed.first_attempt_at)
            self._reporter.report_bound(pod, assumed.node)
        finally:
            self._state.end_binding(pod)
            if assumed.devices is not None:
                assumed.devices.finish()

    async def _handle_failure(self, assumed: AssumedPod, error: BindingFailure) -> None:
        """Drop the assumption that the pod runs on the node. If it is bound nevertheless, the next event corrects that."""
        view = assumed.pod.view
        self._monitor.record_attempt(ERROR, assumed.began, assumed.profile.name)
        if assumed.devices is not None:
            await assumed.devices.withdraw()
        if not self._state.cache.is_assumed(view.uid):
            return
        LOG.info("scheduler: %s: binding failed: %s", view.key, error)
        latest = self._handlers.forget_assumed_pod(view)
        if latest is not None:
            failure = SchedulingFailure(message=str(error))
            await self._reporter.report_failure(latest, failure, "", "SchedulerError")
