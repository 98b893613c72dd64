"""Record Events without ever waiting: they go into a bounded queue, from which one task writes them to the server.

When the queue is full, an event is dropped and counted: events never block a controller.
"""

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery import meta, randomness
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.kinds import EVENTS, SCHEDULING_EVENTS
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.client.wire import NoAnswer
from mockube.controller_manager.control.actions import AnyResource
from mockube.controller_manager.control.events.correlation import (
    FINISHED_AFTER,
    CountedEvents,
    EventWrite,
    Occurrence,
    Series,
    Shape,
    reference,
)
from mockube.controller_manager.supervision import start_in

LOG = logging.getLogger(__name__)

QUEUE_LENGTH: Final = 10_000
"""Events that wait to be written; upstream lets 1000 wait for each of its controllers and of its nodes."""
BURST: Final = 100
"""Of what can wait so many are written at once, as a kubelet's `--event-burst`,"""
BUSY_RATE: Final = 50.0
"""then so many a second, as its `--event-qps`,"""
QUIET_SECONDS: Final = 0.2
"""and all of them when nothing was added for so long."""
MAX_ATTEMPTS: Final = 12
RETRY_SECONDS: Final = 10.0


class _Component(Struct, frozen=True, kw_only=True):
    client: Client
    resource: AnyResource
    shape: Shape
    can_wait: bool = False
    """While much happens; for components with an event for each pod."""


class EventWriter(Collector):
    """The queues of all components, and the task that empties them."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._queue: asyncio.Queue[tuple[_Component, Occurrence]] = asyncio.Queue(QUEUE_LENGTH)
        self._waiting: asyncio.Queue[tuple[_Component, Occurrence]] = asyncio.Queue(QUEUE_LENGTH)
        """Events that can wait."""
        self._recorded_at = 0.0
        """When the last event was recorded."""
        self._allowed = float(BURST)
        """How many of it may be written at once, at `_counted_at`."""
        self._counted_at = clock.monotonic()
        self._components: list[_Component] = []
        self._latest = 0
        self._dropped = 0
        self._writing = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to be written at once."""
        return self._queue.empty() and not self._writing

    def add(
        self, client: Client, resource: AnyResource, shape: Shape, *, can_wait: bool = False
    ) -> "Recorder":
        component = _Component(client=client, resource=resource, shape=shape, can_wait=can_wait)
        self._components.append(component)
        return Recorder(self, component)

    def timestamp(self) -> tuple[datetime, int]:
        """The time, and in nanoseconds, which are different for each call."""
        now = self._clock.now()
        nanoseconds = int(now.timestamp()) * 10**9 + now.microsecond * 1000
        self._latest = max(nanoseconds, self._latest + 1)
        return now, self._latest

    def enqueue(self, component: _Component, occurrence: Occurrence) -> None:
        try:
            if component.can_wait:
                self._recorded_at = self._clock.monotonic()
                self._waiting.put_nowait((component, occurrence))
            else:
                self._queue.put_nowait((component, occurrence))
        except asyncio.QueueFull:
            self._dropped += 1

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            start_in(group, "events/write", self._empty(), endless=True)
            start_in(group, "events/waiting", self._empty_waiting(), endless=True)
            start_in(group, "events/series", self._finish_series(), endless=True)

    def collect(self) -> Iterable[Metric]:
        yield CounterMetricFamily(
            "mockube_events_dropped",
            "Events that were dropped because the queue was full.",
            value=self._dropped,
        )

    async def _empty(self) -> None:
        while True:
            component, occurrence = await self._queue.get()
            self._writing = True
            try:
                await self._record(component, occurrence)
            finally:
                self._writing = False

    async def _empty_waiting(self) -> None:
        while True:
            component, occurrence = await self._waiting.get()
            while (wait := self._must_wait()) > 0:
                await self._clock.sleep(wait)
            self._allowed = max(0.0, self._allowed - 1)
            await self._record(component, occurrence)

    def _must_wait(self) -> float:
        """Return how many seconds there are to wait before the next of what can wait is written."""
        now = self._clock.monotonic()
        self._allowed = min(BURST, self._allowed + (now - self._counted_at) * BUSY_RATE)
        self._counted_at = now
        if self._allowed >= 1:
            return 0.0
        return min((1 - self._allowed) / BUSY_RATE, self._recorded_at + QUIET_SECONDS - now)

    async def _record(self, component: _Component, occurrence: Occurrence) -> None:
        write = component.shape.write(occurrence)
        if write is not None:
            await self._retry_until_answered(component, write)

    async def _finish_series(self) -> None:
        while True:
            await self._clock.sleep(FINISHED_AFTER.total_seconds())
            for component in self._components:
                for write in component.shape.due_writes(self._clock.now()):
                    await self._retry_until_answered(component, write)

    async def _retry_until_answered(self, component: _Component, write: EventWrite) -> None:
        """Retry until the server answers; any answer, even an error, is final."""
        wait = RETRY_SECONDS * randomness.fraction(
            self._random
        )  # not all managers at once when the server is back
        for _ in range(MAX_ATTEMPTS):
            try:
                await _write(component, write)
            except NoAnswer:
                await self._clock.sleep(wait)
                wait = RETRY_SECONDS
            except ApiError as error:
                LOG.debug("event about %s not recorded: %s", meta.name(write.body), error)
                return
            else:
                return
        self._dropped += 1


async def _write(component: _Component, write: EventWrite) -> None:
    resource, body = component.resource, write.body
    if write.change is not None:
        key = Key.of(body)
        try:
            await component.client.patch(resource, key, write.change, kind="strategic")
        except NotFound:
            LOG.debug("event %s no longer exists and is created again", key)
        else:
            return
    await component.client.create(resource, body)


class Recorder:
    """Of one component."""

    def __init__(self, writer: EventWriter, component: _Component) -> None:
        self._writer = writer
        self._component = component

    def record(
        self,
        about: ReadOnlyTree,
        type_: str,
        reason: str,
        message: str,
        *,
        action: str = "",
        related: ReadOnlyTree | None = None,
    ) -> None:
        """`action` and `related` are fields of events.k8s.io only."""
        occurrence = self._occurrence(reference(about), type_, reason, message)
        other = None if related is None else reference(related)
        self._writer.enqueue(self._component, replace(occurrence, action=action, related=other))

    def record_on(
        self, host: str, about: ReadOnlyTree, type_: str, reason: str, message: str, *, part: str = ""
    ) -> None:
        """For a component that runs on several hosts; `part` is a field of the object, as `spec.containers{web}`."""
        occurrence = self._occurrence(reference(about, part), type_, reason, message)
        self._writer.enqueue(self._component, replace(occurrence, host=host))

    def _occurrence(self, about: ReadOnlyTree, type_: str, reason: str, message: str) -> Occurrence:
        now, nanoseconds = self._writer.timestamp()
        return Occurrence(
            at=now, nanoseconds=nanoseconds, about=about, type=type_, reason=reason, message=message
        )


class Recorders(Struct, frozen=True, kw_only=True):
    """Of one account; a component may record events under another name than its account's."""

    writer: EventWriter
    client: Client

    def of(self, component: str, *, can_wait: bool = False) -> Recorder:
        return self.writer.add(self.client, EVENTS, CountedEvents(component), can_wait=can_wait)

    def series_of(self, component: str, instance: str, *, can_wait: bool = False) -> Recorder:
        """As the scheduler does it: events of events.k8s.io."""
        return self.writer.add(self.client, SCHEDULING_EVENTS, Series(component, instance), can_wait=can_wait)
