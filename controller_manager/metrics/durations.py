"""A histogram as plain numbers: an observation is two additions, and only who asks pays for the family."""

from bisect import bisect_left
from collections.abc import Sequence

from prometheus_client.core import HistogramMetricFamily


class Durations:
    __slots__ = ("_buckets", "_counts", "_total")

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets = buckets
        self._counts = [0] * (len(buckets) + 1)
        self._total = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._buckets, seconds)] += 1
        self._total += seconds

    def add_to(self, family: HistogramMetricFamily, labels: Sequence[str]) -> None:
        cumulative, below = [], 0
        for limit, count in zip((*map(str, self._buckets), "+Inf"), self._counts, strict=True):
            below += count
            cumulative.append((limit, float(below)))
        family.add_metric(labels, cumulative, self._total)
