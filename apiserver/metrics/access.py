"""Credentials, authentication, impersonation and authorization: upstream's metrics under upstream's names.

They are on the path of every request, so observing is a few additions; the metric families are built at each
scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
_ATTEMPT_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
_NAMED: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)
SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, DENIED, UNDECIDED = "allowed", "denied", "no-opinion"

Decisions = Callable[[], Mapping[tuple[str, str], tuple[int, int]]]
"""By type and name of an authorizer, how often it allowed and denied."""


class Counts(Protocol):
    """What is counted where credentials are read."""

    tokens: Counter[str]
    fetches: Counter[str]
    cache_hits: int
    active_fetches: int
    observe_fetch: Callable[[float], None]
    observe_certificate: Callable[[float], None]


class CredentialMetrics(Collector):
    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._fetches = Durations(_CACHE_BUCKETS)
        self._certificates = Durations(_CERTIFICATE_BUCKETS)
        counts.observe_fetch = self._observe_fetch
        counts.observe_certificate = self._certificates.observe

    def _observe_fetch(self, seconds: float) -> None:
        self._fetches.observe(int(seconds * 1000) / 1000)  # upstream counts whole milliseconds

    def collect(self) -> Iterable[Metric]:
        credential_counts = self._counts
        for name, text in _TOKENS.items():
            yield CounterMetricFamily(f"serviceaccount_{name}", text, value=credential_counts.tokens[name])
        hits = Durations(_CACHE_BUCKETS)
        hits.quick = credential_counts.cache_hits
        requests = {"hit": hits, "miss": self._fetches}
        counts = {status: durations.number for status, durations in requests.items()}
        yield _counter(f"{_CACHE}_request_total", "Requests to the token cache.", "status", counts)
        yield _counter(
            f"{_CACHE}_fetch_total", "Tokens that were not in the cache.", "status", credential_counts.fetches
        )
        active = GaugeMetricFamily(
            f"{_CACHE}_active_fetch_count", "Tokens that are being checked.", labels=["status"]
        )
        if counts["miss"] or credential_counts.active_fetches:
            for status in ("blocked", "in_flight"):
                active.add_metric([status], credential_counts.active_fetches)
        yield active
        yield _histogram(
            f"{_CACHE}_request_duration_seconds",
            "How long requests to the token cache took.",
            "status",
            requests,
        )
        yield HistogramMetricFamily(
            "apiserver_client_certificate_expiration_seconds",
            "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
            buckets=self._certificates.cumulative(),
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
        self._attempts.setdefault(attempt, Durations(_ATTEMPT_BUCKETS)).observe(seconds)
        for check, check_seconds in checks:
            self._checks.setdefault(check, Durations(_ATTEMPT_BUCKETS)).observe(check_seconds)

    def collect(self) -> Iterable[Metric]:
        yield from _impersonations("attempts", "impersonation attempts", self._attempts)
        yield from _impersonations("authorization_attempts", "authorization checks of them", self._checks)


def _impersonations(
    name: str, subject: str, durations_by_attempt: Mapping[Attempt, Durations]
) -> Iterable[Metric]:
    labels = ["mode", "decision"]
    name = f"apiserver_impersonation_{name}"
    counted = CounterMetricFamily(name, f"Total number of {subject}.", labels=labels)
    latency = HistogramMetricFamily(f"{name}_duration_seconds", f"Latency of {subject}.", labels=labels)
    for attempt, durations in durations_by_attempt.items():
        counted.add_metric(attempt, durations.number)
        latency.add_metric(attempt, durations.cumulative(), durations.total)
    yield counted
    yield latency


class AccessMetrics(Collector):
    def __init__(self, decisions: Decisions, monotonic: Callable[[], float]) -> None:
        self._decisions = decisions
        self.monotonic = monotonic
        self.authentication = {result: Durations(_ATTEMPT_BUCKETS) for result in (SUCCESS, FAILURE, ERROR)}
        self.authorization = {
            result: Durations(_ATTEMPT_BUCKETS) for result in (ALLOWED, DENIED, UNDECIDED, ERROR)
        }
        self.impersonation = ImpersonationMetrics()
        self._users: Counter[str] = Counter()

    def record_user(self, user: str, began: float) -> None:
        """Count an authenticated user under one of few names."""
        self._users[user if user in _NAMED else "email_id" if "@" in user else "other"] += 1
        self.authentication[SUCCESS].observe(self.monotonic() - began)

    def collect(self) -> Iterable[Metric]:
        yield _counter(
            "authenticated_user_requests", "Authenticated requests, by username.", "username", self._users
        )
        yield from _attempts("authentication", "authentication_attempts", self.authentication)
        yield from _attempts("authorization", "authorization_attempts_total", self.authorization)
        decided = CounterMetricFamily(
            "apiserver_authorization_decisions",
            "Decisions of authorizers, by their type and name.",
            labels=["type", "name", "decision"],
        )
        for (sort, name), counts in self._decisions().items():
            for decision, count in zip((ALLOWED, DENIED), counts, strict=True):
                if count:
                    decided.add_metric([sort, name, decision], count)
        yield decided
        yield from self.impersonation.collect()


def _attempts(subsystem: str, name: str, durations_by_result: Mapping[str, Durations]) -> Iterable[Metric]:
    counts = {result: durations.number for result, durations in durations_by_result.items()}
    yield _counter(name, f"Attempts of {subsystem}, by result.", "result", counts)
    yield _histogram(
        f"{subsystem}_duration_seconds",
        f"How long {subsystem} took, by result.",
        "result",
        durations_by_result,
    )


def _counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    """Return a counter whose name need not end in _total, as some of upstream's do not."""
    family = Metric(name.removesuffix("_total"), text, "counter")
    for value, count in counts.items():
        if count:
            family.add_sample(name, {label: value}, count)
    return family


def _histogram(name: str, text: str, label: str, durations_by_label: Mapping[str, Durations]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=[label])
    for value, durations in durations_by_label.items():
        if durations.number:
            family.add_metric([value], durations.cumulative(), durations.total)
    return family
