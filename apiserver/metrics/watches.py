"""Watches: the events that they send, and those that ended because the client did not read."""

from collections.abc import Sequence

from mockube.apiserver.kinds.api_resource import Resource
from mockube.component_base.metrics import Distribution, MetricsRegistry, Number

from . import families


class WatchMetrics:
    def __init__(self, metrics: MetricsRegistry) -> None:
        self._events = metrics.numbers(families.WATCH_EVENTS)
        self._sizes = metrics.distributions(families.WATCH_EVENT_SIZES)
        self._terminated = metrics.numbers(families.TERMINATED_WATCHERS)

    def of(self, resource: Resource) -> "SentEvents":
        labels = (resource.group, resource.version, resource.name)
        return SentEvents(self._events.of(*labels), self._sizes.of(*labels))

    def terminate(self, resource: Resource) -> None:
        """Count a watch that was closed because the client did not read."""
        self._terminated.add(1, resource.group, resource.name)


class SentEvents:
    """The events that were sent to the watches of a resource."""

    __slots__ = ("_number", "_sizes", "bytes")

    def __init__(self, number: Number, sizes: Distribution) -> None:
        self.bytes = 0
        """The bytes of the events that were added to this object."""
        self._number = number
        self._sizes = sizes

    def add(self, frames: Sequence[bytes]) -> None:
        self._number.value += len(frames)
        for frame in frames:
            size = len(frame)
            self.bytes += size
            self._sizes.observe(size)
