"""Tokens, client certificates and impersonation: upstream's metrics under upstream's names.

Tokens and certificates are on the way of every request, so observing is an addition or two; the families that
Prometheus reads are built at each scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, Protocol, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apiserver.metrics.admission import Durations

_TOKENS: Final = {
    "legacy_tokens": "Cumulative legacy service account tokens used",
    "stale_tokens": "Cumulative stale projected service account tokens used",
    "legacy_manual_token_uses": "Cumulative manually created legacy tokens used",
    "legacy_auto_token_uses": "Cumulative auto-generated legacy tokens used",
    "invalid_legacy_auto_token_uses": "Cumulative invalid auto-generated legacy tokens used",
    "valid_tokens": "Cumulative valid projected service account tokens used",
}
_CACHE: Final = "authentication_token_cache"
_CACHE_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
_CERTIFICATE_BUCKETS: Final = (
    *(0.0, _HOUR / 2, _HOUR, 2 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(days * _DAY for days in (1, 2, 4, 7, 30, 90, 180, 360)),
)
_IMPERSONATION_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))


class Counts(Protocol):
    """What is counted where credentials are read."""

    tokens: Counter[str]
    fetches: Counter[str]
    remembered: int
    looking: int
    observe_look: Callable[[float], None]
    observe_certificate: Callable[[float], None]


class CredentialMetrics(Collector):
    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._looks = Durations(_CACHE_BUCKETS)
        self._certificates = Durations(_CERTIFICATE_BUCKETS)
        counts.observe_look = self._observe_look
        counts.observe_certificate = self._certificates.observe

    def _observe_look(self, seconds: float) -> None:
        self._looks.observe(int(seconds * 1000) / 1000)  # upstream counts whole milliseconds

    def collect(self) -> Iterable[Metric]:
        for name, text in _TOKENS.items():
            yield CounterMetricFamily(f"serviceaccount_{name}", text, value=self._counts.tokens[name])
        found = self._counts
        misses = sum(self._looks.counts)
        counts = {"hit": found.remembered, "miss": misses}
        yield _counter(f"{_CACHE}_request", "Requests of the cache of tokens.", "status", counts)
        yield _counter(f"{_CACHE}_fetch", "Tokens that were not in the cache.", "status", found.fetches)
        active = GaugeMetricFamily(
            f"{_CACHE}_active_fetch_count", "Tokens that are looked at just now.", labels=["status"]
        )
        if misses or found.looking:
            for status in ("blocked", "in_flight"):
                active.add_metric([status], found.looking)
        yield active
        latency = HistogramMetricFamily(
            f"{_CACHE}_request_duration_seconds", "How long requests of the cache took.", labels=["status"]
        )
        hits = [found.remembered, *(0 for _ in _CACHE_BUCKETS)]
        for status, sums, total in (("hit", hits, 0.0), ("miss", self._looks.counts, self._looks.total)):
            if counts[status]:
                latency.add_metric([status], _sums(_CACHE_BUCKETS, sums), total)
        yield latency
        yield HistogramMetricFamily(
            "apiserver_client_certificate_expiration_seconds",
            "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
            buckets=_sums(_CERTIFICATE_BUCKETS, self._certificates.counts),
            sum_value=self._certificates.total,
        )


Attempt: TypeAlias = tuple[str, str]
"""A mode of impersonation, and `allowed` or `denied`."""


class ImpersonationMetrics(Collector):
    def __init__(self) -> None:
        self._attempts: dict[Attempt, Durations] = {}
        self._checks: dict[Attempt, Durations] = {}

    def note(self, attempt: Attempt, seconds: float, checks: Iterable[tuple[Attempt, float]]) -> None:
        """Observe an attempt, and the authorization checks that it made."""
        self._attempts.setdefault(attempt, Durations(_IMPERSONATION_BUCKETS)).observe(seconds)
        for check, check_seconds in checks:
            self._checks.setdefault(check, Durations(_IMPERSONATION_BUCKETS)).observe(check_seconds)

    def collect(self) -> Iterable[Metric]:
        yield from _impersonations("attempts", "impersonation attempts", self._attempts)
        yield from _impersonations("authorization_attempts", "authorization checks of them", self._checks)


def _impersonations(name: str, subject: str, found: Mapping[Attempt, Durations]) -> Iterable[Metric]:
    labels = ["mode", "decision"]
    name = f"apiserver_impersonation_{name}"
    counted = CounterMetricFamily(name, f"Total number of {subject}.", labels=labels)
    latency = HistogramMetricFamily(f"{name}_duration_seconds", f"Latency of {subject}.", labels=labels)
    for attempt, durations in found.items():
        counted.add_metric(attempt, sum(durations.counts))
        latency.add_metric(attempt, _sums(_IMPERSONATION_BUCKETS, durations.counts), durations.total)
    yield counted
    yield latency


def _sums(buckets: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    names = (*map(str, buckets), "+Inf")
    return [*zip(names, map(float, accumulate(counts)), strict=True)]


def _counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        if count:
            family.add_metric([value], count)
    return family
