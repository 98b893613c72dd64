"""Metric families, and the registry of their numbers.

Families are declared in tables: a name, a type, a help text, labels, buckets. Counting is on the paths of requests and of
keys, so it is an addition to a plain number: `of` returns the number of some label values, which the caller may hold.
`mockube.component_base.exposition` formats what `MetricsRegistry.collect` returns.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

Type: TypeAlias = Literal["counter", "gauge", "histogram"]
LabelValues: TypeAlias = tuple[str, ...]


class Family(Struct, frozen=True):
    """The declaration of a family; label values are given in the order of `labels`."""

    name: str
    type: Type
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """The upper bounds of a histogram's buckets, without infinity."""
    hides_unused: bool = False
    """Whether label values without observations are not collected: they were prepared for the first observation."""


def counter(name: str, text: str, *labels: str) -> Family:
    return Family(name, "counter", text, labels)


def gauge(name: str, text: str, *labels: str) -> Family:
    return Family(name, "gauge", text, labels)


def histogram(
    name: str, text: str, buckets: Sequence[float], *labels: str, hides_unused: bool = False
) -> Family:
    return Family(name, "histogram", text, labels, tuple(buckets), hides_unused)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return the bounds of buckets as Go's client library computes them, with its rounding."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


class Number:
    """The number of a counter or a gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Distribution:
    """The observations of a histogram: their number in each bucket, and their sum."""

    __slots__ = ("buckets", "counts", "total")

    def __init__(self, buckets: Sequence[float]) -> None:
        self.buckets = buckets
        self.counts = [0] * (len(buckets) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.buckets, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


class Numbers:
    """The numbers of a counter or a gauge, by label values."""

    __slots__ = ("by_labels", "family")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.by_labels: dict[LabelValues, Number] = {}

    def of(self, *values: str) -> Number:
        """Return the number of these label values, which counts from zero if there was none."""
        number = self.by_labels.get(values)
        if number is None:
            assert len(values) == len(self.family.labels), self.family.name
            number = self.by_labels[values] = Number()
        return number

    def add(self, amount: float, *values: str) -> None:
        self.of(*values).value += amount

    def set(self, amount: float, *values: str) -> None:
        self.of(*values).value = amount

    def replace(self, amounts: Iterable[tuple[LabelValues, float]]) -> None:
        """Replace all numbers, for what is not counted here but read when it is collected."""
        self.by_labels.clear()
        for values, amount in amounts:
            self.of(*values).value = amount

    def collect(self) -> "Samples":
        return [(values, number.value) for values, number in self.by_labels.items()]


class Distributions:
    """The observations of a histogram, by label values."""

    __slots__ = ("by_labels", "family")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.by_labels: dict[LabelValues, Distribution] = {}

    def of(self, *values: str) -> Distribution:
        found = self.by_labels.get(values)
        if found is None:
            assert len(values) == len(self.family.labels), self.family.name
            found = self.by_labels[values] = Distribution(self.family.buckets)
        return found

    def observe(self, value: float, *values: str) -> None:
        self.of(*values).observe(value)

    def collect(self) -> "Samples":
        hides_unused = self.family.hides_unused
        return [
            (values, Buckets(tuple(found.counts), found.total))
            for values, found in self.by_labels.items()
            if not hides_unused or found.count
        ]


class TimedOperations:
    """The number and the durations of operations, by label values."""

    __slots__ = ("_durations", "_total")

    def __init__(self, total: Numbers, durations: Distributions) -> None:
        self._total = total
        self._durations = durations

    def observe(self, seconds: float, *values: str) -> None:
        self._total.add(1, *values)
        self._durations.observe(seconds, *values)


class Buckets(NamedTuple):
    """The number of observations in each bucket, the last of which has no bound, and their sum."""

    counts: Sequence[int]
    total: float


Samples: TypeAlias = Sequence[tuple[LabelValues, float | Buckets]]


class Collected(NamedTuple):
    """The samples of a family at one time."""

    family: Family
    samples: Samples


class MetricsRegistry:
    """The numbers of all families of a process; a family with a name is registered once."""

    def __init__(self) -> None:
        self._families: dict[str, Numbers | Distributions] = {}
        self._updates: list[Callable[[], None]] = []

    def on_collect(self, update: Callable[[], None]) -> Callable[[], None]:
        """Call a function before families are collected, which sets numbers that are not counted; return what ends that."""
        self._updates.append(update)
        return lambda: self._updates.remove(update)

    def numbers(self, family: Family) -> Numbers:
        found = self._register(family)
        assert isinstance(found, Numbers), family.name
        return found

    def distributions(self, family: Family) -> Distributions:
        found = self._register(family)
        assert isinstance(found, Distributions), family.name
        return found

    def timed_operations(self, total: Family, durations: Family) -> TimedOperations:
        assert total.labels == durations.labels, total.name
        return TimedOperations(self.numbers(total), self.distributions(durations))

    def forget(self, family: Family, first: str) -> None:
        """Remove the samples whose first label has this value, of something that is gone."""
        by_labels = self._register(family).by_labels
        for values in [values for values in by_labels if values[0] == first]:
            del by_labels[values]

    def collect(self) -> list[Collected]:
        for update in self._updates:
            update()
        return [Collected(found.family, found.collect()) for found in self._families.values()]

    def _register(self, family: Family) -> Numbers | Distributions:
        found = self._families.get(family.name)
        if found is None:
            found = (Distributions if family.type == "histogram" else Numbers)(family)
            self._families[family.name] = found
        return found
