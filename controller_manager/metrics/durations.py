"""Histograms of durations as plain numbers: an observation costs two additions, and families are built on collection."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.component_base.exposition import cumulative_buckets


class Histogram(Collector):
    """A histogram without labels."""

    def __init__(self, name: str, text: str, buckets: Sequence[float]) -> None:
        self._name = name
        self._text = text
        self.durations = Durations(buckets)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._text)
        self.durations.add_to(family, ())
        yield family


class LabelledDurations:
    """A counter and a histogram of operations, by labels."""

    def __init__(self, counter: str, histogram: str, labels: Sequence[str], buckets: Sequence[float]) -> None:
        self._names = counter, histogram
        self._labels = labels
        self._buckets = buckets
        self._durations: dict[tuple[str, ...], Durations] = {}

    def observe(self, labels: tuple[str, ...], seconds: float) -> None:
        if labels not in self._durations:
            self._durations[labels] = Durations(self._buckets)
        self._durations[labels].observe(seconds)

    def collect(self) -> Iterable[Metric]:
        counter, histogram = self._names
        counts = CounterMetricFamily(counter, "Total number of operations.", labels=self._labels)
        histograms = HistogramMetricFamily(
            histogram, "Duration of operations, in seconds.", labels=self._labels
        )
        for labels, durations in self._durations.items():
            counts.add_metric(labels, durations.count)
            durations.add_to(histograms, labels)
        yield counts
        yield histograms


class Durations:
    """The counts of observations by bucket, and their sum in seconds."""

    __slots__ = ("_buckets", "_counts", "_total")

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._buckets, seconds)] += 1
        self._total += seconds

    @property
    def count(self) -> int:
        return sum(self._counts)

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        family.add_metric(labels, cumulative_buckets(self._buckets, self._counts), self._total)
