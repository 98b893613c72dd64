"""Evict the victims of a preemption in the background, while the scheduler continues with other pods.

Upstream: framework/preemption/executor.go.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.client.cache.store import Lister
from mockube.client.component import ComponentContext
from mockube.client.component_helpers.disruption import disruption_status
from mockube.client.events.recorder import Recorder
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.supervision import start, start_in

from .podinfo import PodInfo
from .preemption import PREEMPTED, Candidate

LOG: Final = logging.getLogger(__name__)
PARALLELISM: Final = 16
"""The maximum number of concurrent evictions of one preemption."""


class PreemptionsInProgress:
    """The pods whose preemption is in progress. None is scheduled again before the last eviction has started."""

    def __init__(self, pods: Lister[PodView]) -> None:
        self._pods = pods
        self._last_victims: dict[Key, PodInfo | None] = {}
        """The last victim by the pod that preempts it; None until all other victims are evicted."""

    def is_blocked(self, key: Key) -> bool:
        """Return whether a pod waits for the evictions that it caused."""
        if key not in self._last_victims:
            return False
        victim = self._last_victims[key]
        if victim is None:
            return True
        cached = self._pods.get(*victim.view.key)
        return cached is not None and cached.uid == victim.view.uid and not cached.deleting

    def begin(self, key: Key) -> None:
        self._last_victims[key] = None

    def begin_last(self, key: Key, victim: PodInfo) -> None:
        """Note that only the last victim is left, whose deletion unblocks the pod."""
        self._last_victims[key] = victim

    def end(self, key: Key) -> None:
        self._last_victims.pop(key, None)


class PreemptionExecutor:
    """Evicts victims, and lets the pod that preempts them be scheduled again afterwards."""

    def __init__(
        self,
        context: ComponentContext,
        in_progress: PreemptionsInProgress,
        recorder_of: Callable[[PodView], Recorder],
        resume: Callable[[Key], None],
    ) -> None:
        """Create an executor. `recorder_of` returns the recorder for a pod that preempts others.

        `resume` tries a pod again that may have missed the event for which it waits.
        """
        self._in_progress = in_progress
        self._client = context.client
        self._clock = context.clock
        self._pods = context.informers.of(PODS).lister
        self._recorder_of = recorder_of
        self._resume = resume
        self._failures = context.metrics.task_restarts.of("scheduler/preempt")
        self._tasks: set[asyncio.Task[None]] = set()

    def preempt(self, pod: PodInfo, candidate: Candidate, nominees: Sequence[PodInfo]) -> None:
        """Start to evict the victims, and to clear the nominations of pods of lower priority."""
        victims = [victim for victim in candidate.victims if not victim.view.deleting]
        if not victims:
            return
        self._in_progress.begin(pod.view.key)
        work = self._preempt(pod, candidate.node, victims, nominees)
        task = start(f"scheduler/preempt for {pod.view.key}", work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        await asyncio.gather(*self._tasks)

    async def _preempt(
        self, pod: PodInfo, node: str, victims: Sequence[PodInfo], nominees: Iterable[PodInfo]
    ) -> None:
        key = pod.view.key
        *others, last = victims
        is_failed = True
        try:
            await self._clear_nominations(nominees)
            await self._evict_all(pod, node, others)
            # Last and alone, as upstream: its deletion is what unblocks the pod.
            self._in_progress.begin_last(key, last)
            await self._evict(pod, node, last)
            is_failed = False
        except (ApiError, NoResponse) as error:
            LOG.warning("scheduler: %s: preemption on node %s failed: %s", key, node, error)
        except Exception:
            LOG.exception("scheduler: %s: preemption on node %s failed", key, node)
            self._failures.value += 1
        finally:
            self._in_progress.end(key)
            if is_failed or self._pods.get(*last.view.key) is None:
                self._resume(key)

    async def _evict_all(self, pod: PodInfo, node: str, victims: Sequence[PodInfo]) -> None:
        """Evict victims concurrently; after a failure no further eviction starts."""
        waiting = iter(victims)
        errors: list[ApiError | NoResponse] = []

        async def evict_next() -> None:
            for victim in waiting:
                try:
                    await self._evict(pod, node, victim)
                except (ApiError, NoResponse) as error:
                    errors.append(error)
                if errors:
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(min(PARALLELISM, len(victims))):
                start_in(group, "scheduler/evict", evict_next())
        if errors:
            raise errors[0]

    async def _evict(self, pod: PodInfo, node: str, victim: PodInfo) -> None:
        """Set the condition DisruptionTarget, then delete the pod, unless it is deleted already."""
        view = victim.view
        message = f"{pod.spec['schedulerName']}: preempting to accommodate a higher priority pod"
        generation = meta.generation(view.object)
        now = self._clock.now()
        status = disruption_status(view.object, PREEMPTED, message, now, generation)
        try:
            if status:
                patch = {"metadata": {"uid": view.uid}, "status": status}
                await self._client.patch(PODS, view.key, patch, kind="strategic", subresource="status")
            await self._client.delete(PODS, view.key, uid=view.uid)
        except (NotFound, Conflict):
            return
        text = f"Preempted by pod {pod.view.uid} on node {node}"
        self._recorder_of(pod.view).record(
            view.object, "Normal", "Preempted", text, action="Preempting", related=pod.view.object
        )

    async def _clear_nominations(self, nominees: Iterable[PodInfo]) -> None:
        """Clear the nominations of pods that no longer fit on their node, so that they are scheduled to another one."""
        for nominee in nominees:
            view = nominee.view
            patch = {"metadata": {"uid": view.uid}, "status": {"nominatedNodeName": None}}
            try:
                await self._client.patch(PODS, view.key, patch, kind="strategic", subresource="status")
            except (ApiError, NoResponse) as error:
                LOG.warning("scheduler: %s: clearing the nomination failed: %s", view.key, error)
