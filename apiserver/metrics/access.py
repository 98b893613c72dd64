"""Credentials, authentication, impersonation, authorization and admission: upstream's metrics under upstream's names.

They are on the path of every request, so observing one is a few additions; the metric families are built at each
scrape.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.exposition import cumulative_buckets

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
_COUNTED_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)
SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, DENIED, UNDECIDED = "allowed", "denied", "no-opinion"
ADMIT, VALIDATE = "admit", "validate"
_ADMISSION_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 2.5)
QUICK: Final = _ADMISSION_BUCKETS[0]
_EXPRESSION_BUCKETS: Final = (0.0000005, 0.001, 0.01, 0.1, 1.0)
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget"

Decisions = Callable[[], Mapping[tuple[str, str], tuple[int, int]]]
"""By type and name of an authorizer, the numbers of requests that it allowed and denied."""


class Durations:
    """A histogram of durations. The path of every write adds to `quick` and `total` directly."""

    __slots__ = ("_buckets", "quick", "slow", "total")

    def __init__(self, buckets: Sequence[float] = _ADMISSION_BUCKETS) -> None:
        self._buckets = buckets
        self.quick = 0
        """The number of durations in the first bucket."""
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
        """The number of all durations."""
        return self.quick + sum(self.slow)

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the number of durations up to each bucket's bound."""
        return cumulative_buckets(self._buckets, (self.quick, *self.slow))


class Counts(Protocol):
    """The numbers that authenticators count."""

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
        """Observe an attempt, and its authorization checks."""
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
        self._users[user if user in _COUNTED_USERS else "email_id" if "@" in user else "other"] += 1
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


class AdmissionMetrics(Collector):
    """The durations of both steps of admission, and of each plugin in them."""

    def __init__(self) -> None:
        self._durations: dict[tuple[str, ...], Durations] = {}

    def durations(self, step: str, operation: str, plugin: str = "") -> tuple[Durations, Durations]:
        """Return the durations of what a plugin, or a whole step if there is none, allowed and rejected."""
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
