"""What the client counts: upstream's metrics under upstream's names.

Counting is on the way of every request, so it is a few additions to plain numbers; families are made when asked for.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Seconds; upstream's."""
NO_CODE: Final = "<error>"
"""The code of what was not answered."""

Labels: TypeAlias = tuple[str, ...]


class Durations:
    """A histogram for each set of labels."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str]) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = labels
        self._counts: dict[Labels, list[int]] = {}
        self._totals: Counter[Labels] = Counter()

    def observe(self, under: Labels, seconds: float) -> None:
        counts = self._counts.get(under)
        if counts is None:
            counts = self._counts[under] = [0] * (len(BUCKETS) + 1)
        counts[bisect_left(BUCKETS, seconds)] += 1
        self._totals[under] += seconds  # type: ignore[assignment]  # a Counter of numbers

    def family(self) -> Metric:
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        bounds = [*map(str, BUCKETS), "+Inf"]
        for under, counts in self._counts.items():
            family.add_metric(under, list(zip(bounds, accumulate(counts), strict=True)), self._totals[under])
        return family


class ClientMetrics(Collector):
    def __init__(self) -> None:
        self._requests: Counter[Labels] = Counter()
        self._retries: Counter[Labels] = Counter()
        self._durations = Durations(
            "rest_client_request_duration_seconds", "How long requests took.", ("host", "verb")
        )
        self._waits = Durations(
            "rest_client_rate_limiter_duration_seconds",
            "How long requests were held back by the limit of their rate.",
            ("host", "verb"),
        )

    def answered(self, *, code: int | None, host: str, method: str, seconds: float) -> None:
        """An attempt is over; without a code when there was no answer."""
        self._requests[NO_CODE if code is None else str(code), host, method] += 1
        self._durations.observe((host, method), seconds)

    def retried(self, *, code: int | None, host: str, method: str) -> None:
        self._retries[NO_CODE if code is None else str(code), host, method] += 1

    def held_back(self, *, host: str, method: str, seconds: float) -> None:
        self._waits.observe((host, method), seconds)

    def collect(self) -> Iterable[Metric]:
        yield _counts("rest_client_requests", "Requests by how they ended.", "method", self._requests)
        yield _counts("rest_client_request_retries", "Requests that were sent again.", "verb", self._retries)
        yield self._durations.family()
        yield self._waits.family()


def _counts(name: str, documentation: str, method: str, counts: Counter[Labels]) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=("code", "host", method))
    for under, count in counts.items():
        family.add_metric(under, count)
    return family
