"""Record Events: enqueue them without waiting, and write them to the server in the background.

When the queue is full, an Event is dropped and counted: Events never block a controller.
"""

import asyncio
import logging
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta, randomness
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import EVENTS, SCHEDULING_EVENTS
from mockube.client.metrics import families
from mockube.client.resources import AnyResource, Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.supervision import start_in

from .correlation import (
    FINISHED_AFTER,
    CountCorrelator,
    EventCorrelator,
    EventWrite,
    Occurrence,
    SeriesCorrelator,
    reference,
)

LOG = logging.getLogger(__name__)

_LIMITS_EACH_TYPE_SINCE: Final = "1.32"
"""The first minor release with a rate limit for each type of the Events about an object."""
QUEUE_LENGTH: Final = 10_000
"""The maximum number of Events that wait to be written; upstream's is 1000 for each controller and each kubelet."""
BURST: Final = 100
"""The number of deferrable Events that are written at once, as a kubelet's `--event-burst`."""
BUSY_RATE: Final = 50.0
"""The number of deferrable Events that are written in a second after the burst, as a kubelet's `--event-qps`."""
QUIET_SECONDS: Final = 0.2
"""The time without new Events after which the rate no longer applies."""
MAX_ATTEMPTS: Final = 12
RETRY_SECONDS: Final = 10.0
"""The attempts of an Event, and the seconds between them, as in client-go (tools/record/event.go)."""


class _Component(Struct, frozen=True, kw_only=True):
    """The source of Events: its client, and how its Events are correlated."""

    client: Client
    resource: AnyResource
    correlator: EventCorrelator
    can_wait: bool = False
    """Whether its Events are deferrable while many are recorded: for components with an Event for each pod."""


class EventWriter:
    """The queues of all components' Events, and the tasks that write them; client-go's EventBroadcaster."""

    def __init__(self, clock: Clock, random: Random, metrics: MetricsRegistry) -> None:
        self._clock = clock
        self._random = random
        self._queue: asyncio.Queue[tuple[_Component, Occurrence]] = asyncio.Queue(QUEUE_LENGTH)
        self._deferred: asyncio.Queue[tuple[_Component, Occurrence]] = asyncio.Queue(QUEUE_LENGTH)
        """Deferrable Events."""
        self._recorded_at = 0.0
        """The time of the last deferrable Event."""
        self._tokens = float(BURST)
        """The number of deferrable Events that could be written at `_refilled_at`."""
        self._refilled_at = clock.coalescing.monotonic()
        self._components: list[_Component] = []
        self._last_nanoseconds = 0
        self._dropped = metrics.numbers(families.EVENTS_DROPPED).of()
        self._writing = False

    @property
    def is_idle(self) -> bool:
        """Whether no Event waits to be written, except for deferrable ones."""
        return self._queue.empty() and not self._writing

    def add(
        self, client: Client, resource: AnyResource, correlator: EventCorrelator, *, can_wait: bool = False
    ) -> "Recorder":
        component = _Component(client=client, resource=resource, correlator=correlator, can_wait=can_wait)
        self._components.append(component)
        return Recorder(self, component)

    def timestamp(self) -> tuple[datetime, int]:
        """Return the time, and the same time in nanoseconds, which are unique to each call."""
        now = self._clock.now()
        nanoseconds = int(now.timestamp()) * 10**9 + now.microsecond * 1000
        self._last_nanoseconds = max(nanoseconds, self._last_nanoseconds + 1)
        return now, self._last_nanoseconds

    def enqueue(self, component: _Component, occurrence: Occurrence) -> None:
        try:
            if component.can_wait:
                self._recorded_at = self._clock.coalescing.monotonic()
                self._deferred.put_nowait((component, occurrence))
            else:
                self._queue.put_nowait((component, occurrence))
        except asyncio.QueueFull:
            self._dropped.value += 1

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            start_in(group, "events/write", self._write_queued(), endless=True)
            start_in(group, "events/waiting", self._write_deferred(), endless=True)
            start_in(group, "events/series", self._write_due_series(), endless=True)

    async def _write_queued(self) -> None:
        while True:
            component, occurrence = await self._queue.get()
            self._writing = True
            try:
                await self._record(component, occurrence)
            finally:
                self._writing = False

    async def _write_deferred(self) -> None:
        while True:
            component, occurrence = await self._deferred.get()
            while (delay := self._deferral()) > 0:
                await self._clock.coalescing.sleep(delay)
            self._tokens = max(0.0, self._tokens - 1)
            await self._record(component, occurrence)

    def _deferral(self) -> float:
        """Return the seconds until the next deferrable Event is written."""
        now = self._clock.coalescing.monotonic()
        self._tokens = min(BURST, self._tokens + (now - self._refilled_at) * BUSY_RATE)
        self._refilled_at = now
        if self._tokens >= 1:
            return 0.0
        return min((1 - self._tokens) / BUSY_RATE, self._recorded_at + QUIET_SECONDS - now)

    async def _record(self, component: _Component, occurrence: Occurrence) -> None:
        write = component.correlator.write(occurrence)
        if write is not None:
            await self._write_with_retries(component, write)

    async def _write_due_series(self) -> None:
        while True:
            has_series = any(component.correlator.may_have_series for component in self._components)
            clock = self._clock if has_series else self._clock.routine
            await clock.sleep(FINISHED_AFTER.total_seconds())
            for component in self._components:
                for write in component.correlator.due_writes(self._clock.now()):
                    await self._write_with_retries(component, write)

    async def _write_with_retries(self, component: _Component, write: EventWrite) -> None:
        """Retry until the server responds; any response, even an error, is final."""
        # Random, so that not all managers write at once when the server is back.
        delay = RETRY_SECONDS * randomness.fraction(self._random)
        for _ in range(MAX_ATTEMPTS):
            try:
                await _write(component, write)
            except NoResponse:
                await self._clock.sleep(delay)
                delay = RETRY_SECONDS
            except ApiError as error:
                LOG.debug("Event %s was not written: %s", meta.name(write.body), error)
                return
            else:
                return
        self._dropped.value += 1


async def _write(component: _Component, write: EventWrite) -> None:
    resource, body = component.resource, write.body
    if write.patch is not None:
        key = Key.of(body)
        try:
            await component.client.patch(resource, key, write.patch, kind="strategic")
        except NotFound:
            LOG.debug("Event %s no longer exists and is created again", key)
        else:
            return
    await component.client.create(resource, body)


class Recorder:
    """Records the Events of one component; client-go's EventRecorder."""

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
        """Record an Event about an object. Only Events of events.k8s.io have `action` and `related`."""
        occurrence = self._occurrence(reference(about), type_, reason, message)
        related_reference = None if related is None else reference(related)
        self._writer.enqueue(self._component, replace(occurrence, action=action, related=related_reference))

    def record_on(
        self, host: str, about: ReadOnlyTree, type_: str, reason: str, message: str, *, part: str = ""
    ) -> None:
        """Record an Event of a component on a host; `part` is a field of the object, such as `spec.containers{web}`."""
        subject = {**reference(about, part), "uid": kubelet_uid(about)}
        occurrence = self._occurrence(subject, type_, reason, message)
        self._writer.enqueue(self._component, replace(occurrence, host=host))

    def _occurrence(self, about: ReadOnlyTree, type_: str, reason: str, message: str) -> Occurrence:
        now, nanoseconds = self._writer.timestamp()
        return Occurrence(
            time=now, nanoseconds=nanoseconds, about=about, type=type_, reason=reason, message=message
        )


class Recorders(Struct, frozen=True, kw_only=True):
    """Creates the recorders of components that share a client; a component may be named unlike the service account."""

    writer: EventWriter
    client: Client
    minor: str

    def of(self, component: str, *, can_wait: bool = False) -> Recorder:
        """Return a recorder of Events of core/v1."""
        limits_each_type = not minors.is_before(self.minor, _LIMITS_EACH_TYPE_SINCE)
        correlator = CountCorrelator(component, limits_each_type=limits_each_type)
        return self.writer.add(self.client, EVENTS, correlator, can_wait=can_wait)

    def series_of(self, component: str, instance: str, *, can_wait: bool = False) -> Recorder:
        """Return a recorder of Events of events.k8s.io/v1, as kube-scheduler uses."""
        return self.writer.add(
            self.client, SCHEDULING_EVENTS, SeriesCorrelator(component, instance), can_wait=can_wait
        )
