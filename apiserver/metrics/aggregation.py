"""Aggregation: which APIServices are unavailable."""

from mockube.component_base.metrics import MetricsRegistry

from . import families


class UnavailableServices:
    def __init__(self, metrics: MetricsRegistry) -> None:
        self._unavailable = metrics.numbers(families.UNAVAILABLE_API_SERVICE)
        self._total = metrics.numbers(families.UNAVAILABLE_API_SERVICE_TOTAL)

    def record(self, name: str, reason: str) -> None:
        """Record the result of a check; the reason is empty if the APIService is available."""
        number = self._unavailable.of(name)
        if reason and not number.value:
            self._total.add(1, name, reason)
        number.value = int(bool(reason))

    def forget(self, name: str) -> None:
        self._unavailable.by_labels.pop((name,), None)
