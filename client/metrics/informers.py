"""Reflectors and informers. Every event is counted, so counting is a few additions to plain numbers."""

from typing import Final

from mockube.component_base.metrics import Distribution, MetricsRegistry, Number

from . import families


class InformerStats:
    """The statistics of the informer of one resource, which its reflector and its cache update."""

    def __init__(self, name: str = "", metrics: MetricsRegistry | None = None) -> None:
        self._name = name
        metrics = metrics or MetricsRegistry()
        self.lists = metrics.numbers(families.REFLECTOR_LISTS).of(name)
        self.watches = metrics.numbers(families.REFLECTOR_WATCHES).of(name)
        self.short_watches = metrics.numbers(families.REFLECTOR_SHORT_WATCHES).of(name)
        self.revision = metrics.numbers(families.REFLECTOR_REVISION).of(name)
        self.objects = metrics.numbers(families.INFORMER_OBJECTS).of(name)
        self.unusable: Number = metrics.numbers(families.INFORMER_UNUSABLE).of(name)
        """The number of object versions for which a view, an index or a handler failed."""
        self.lag: Distribution = metrics.distributions(families.INFORMER_LAG).of(name)
        """The durations of waits for a revision, until the cache reached it."""
        self.events = 0
        self._events_by_type = metrics.numbers(families.INFORMER_EVENTS)

    def record_event(self, event_type: str) -> None:
        self.events += 1
        self._events_by_type.of(self._name, event_type).value += 1


class InformerMetrics:
    """The metrics of all informers of a process, by resource."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self.registry = metrics
        self._stats: dict[str, InformerStats] = {}

    def of(self, resource: str) -> InformerStats:
        if resource not in self._stats:
            self._stats[resource] = InformerStats(resource, self.registry)
        return self._stats[resource]

    def forget(self, resource: str) -> None:
        if self._stats.pop(resource, None) is not None:
            for family in _INFORMER_FAMILIES:
                self.registry.forget(family, resource)


_INFORMER_FAMILIES: Final = (
    families.REFLECTOR_LISTS,
    families.REFLECTOR_WATCHES,
    families.REFLECTOR_SHORT_WATCHES,
    families.REFLECTOR_REVISION,
    families.INFORMER_OBJECTS,
    families.INFORMER_UNUSABLE,
    families.INFORMER_LAG,
    families.INFORMER_EVENTS,
)
