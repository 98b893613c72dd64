"""Upstream's metrics of the audit log, under upstream's names. Without a log they are zero."""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector


class AuditLogCounts(Protocol):
    events: int
    errors: int
    levels: Counter[str]


class AuditMetrics(Collector):
    def __init__(self, counts: AuditLogCounts) -> None:
        self._counts = counts

    def collect(self) -> Iterable[Metric]:
        name = "apiserver_audit"
        text = "Counter of audit events generated and sent to the audit backend."
        yield CounterMetricFamily(f"{name}_event", text, value=self._counts.events)
        text = "Counter of audit events that failed to be audited properly."
        errors = CounterMetricFamily(f"{name}_error", text, labels=["plugin"])
        if self._counts.errors:
            errors.add_metric(["log"], self._counts.errors)
        yield errors
        levels = CounterMetricFamily(
            f"{name}_level", "Counter of policy levels for audit events (1 per request).", labels=["level"]
        )
        for level, count in self._counts.levels.items():
            levels.add_metric([level], count)
        yield levels
        text = "Counter of apiserver requests rejected due to an error in audit logging backend."
        yield CounterMetricFamily(f"{name}_requests_rejected", text, value=0)
