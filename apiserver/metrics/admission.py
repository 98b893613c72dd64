"""Admission and its plugins: upstream's metrics under upstream's names.

Admission is on the path of every write, so observing it is a few additions; the metric families are built at each
scrape.
"""

from collections.abc import Iterable
from typing import Final

import prometheus_client
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from .requests import Durations

ADMIT, VALIDATE = "admit", "validate"
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
QUICK: Final = _BUCKETS[0]
_EXPRESSION_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget"


class AdmissionMetrics(Collector):
    """The durations of both steps of admission, and of each plugin in them."""

    def __init__(self) -> None:
        self._durations: dict[tuple[str, ...], Durations] = {}

    def durations(self, step: str, operation: str, plugin: str = "") -> tuple[Durations, Durations]:
        """Return the durations of what a plugin, or a whole step if there is none, allowed and rejected."""
        passed, rejected = (
            self._durations.setdefault((plugin, step, operation, rejected), Durations(_BUCKETS))
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
    """The decisions of policies, by policy and binding."""

    def __init__(self, sort: str, labels: tuple[str, ...] = ()) -> None:
        prefix = f"apiserver_{sort}_admission_policy"
        names = ("policy", "policy_binding", "error_type", *labels)
        text = "Admission policy checks, by policy, binding and kind of error."
        self._checks = prometheus_client.Counter(f"{prefix}_check", text, names, registry=None)
        self._durations = prometheus_client.Histogram(
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
    """Return the label of the result of a policy's expression; a denial counts as an invalid expression, as upstream."""
    if message is None:
        return "no_error"
    if message.startswith("compilation"):
        return "compile_error"
    return "out_of_budget" if message.startswith(_OUT_OF_BUDGET) else "invalid_error"
