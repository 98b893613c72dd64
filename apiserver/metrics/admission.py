"""Durations of admission, and decisions of policies: upstream's metrics under upstream's names.

The durations of plugins are on the path of every write, so observing one is two additions; the metric families are
built at each scrape.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.exposition import cumulative_buckets

ADMIT, VALIDATE = "admit", "validate"
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
QUICK: Final = _BUCKETS[0]
_EXPRESSION_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget"


class Durations:
    """A histogram of durations. The path of every write adds to `quick` and `total` directly."""

    __slots__ = ("_buckets", "quick", "slow", "total")

    def __init__(self, buckets: Sequence[float] = _BUCKETS) -> None:
        self._buckets = buckets
        self.quick = 0
        """How many times at most as long as the first bucket goes."""
        self.slow = [0] * len(buckets)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        if seconds <= self._buckets[0]:
            self.quick += 1
        else:
            self.slow[bisect_left(self._buckets, seconds) - 1] += 1
        self.total += seconds

    @property
    def number(self) -> int:
        """How many there were."""
        return self.quick + sum(self.slow)

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the number of durations up to each bucket's bound."""
        return cumulative_buckets(self._buckets, (self.quick, *self.slow))


class AdmissionMetrics(Collector):
    """The durations of both steps of admission, and of each plugin in them."""

    def __init__(self) -> None:
        self._durations: dict[tuple[str, ...], Durations] = {}

    def durations(self, step: str, operation: str, plugin: str = "") -> tuple[Durations, Durations]:
        """Return where to observe what a plugin let pass, and what it rejected; without a plugin, of a whole step."""
        passed, rejected = (
            self._durations.setdefault((plugin, step, operation, rejected), Durations())
            for rejected in ("false", "true")
        )
        return passed, rejected

    def collect(self) -> Iterable[Metric]:
        steps = HistogramMetricFamily(
            "apiserver_admission_step_admission_duration_seconds",
            "Admission sub-step latency histogram in seconds, by operation and step.",
            labels=["type", "operation", "rejected"],
        )
        controllers = HistogramMetricFamily(
            "apiserver_admission_controller_admission_duration_seconds",
            "Admission controller latency histogram in seconds, by name, operation and step.",
            labels=["name", "type", "operation", "rejected"],
        )
        for (plugin, *rest), durations in self._durations.items():
            if durations.number:
                family, labels = (controllers, [plugin, *rest]) if plugin else (steps, rest)
                family.add_metric(labels, durations.cumulative(), durations.total)
        return steps, controllers


class PolicyMetrics(Collector):
    """What policies decided, by the names that an administrator gave them."""

    def __init__(self, sort: str, labels: tuple[str, ...] = ()) -> None:
        prefix = f"apiserver_{sort}_admission_policy"
        names = ("policy", "policy_binding", "error_type", *labels)
        text = "Admission policy checks, by policy, binding and kind of error."
        self._checks = Counter(f"{prefix}_check", text, names, registry=None)
        self._durations = Histogram(
            f"{prefix}_check_duration_seconds", text, names, buckets=_EXPRESSION_BUCKETS, registry=None
        )

    def observe(self, policy: str, binding: str, error_type: str, seconds: float, *labels: str) -> None:
        values = (policy, binding, error_type, *labels)
        self._checks.labels(*values).inc()
        self._durations.labels(*values).observe(seconds)

    def collect(self) -> Iterable[Metric]:
        yield from self._checks.collect()
        yield from self._durations.collect()


def error_type(message: str | None) -> str:
    """Return the label of what a policy's expression came to; a refusal by its value counts as an invalid one."""
    if message is None:
        return "no_error"
    if message.startswith("compilation"):
        return "compile_error"
    return "out_of_budget" if message.startswith(_OUT_OF_BUDGET) else "invalid_error"
