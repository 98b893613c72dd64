"""Authentication, impersonation and authorization of requests, and the tokens and certificates that they present."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, Protocol, TypeAlias

from mockube.component_base.metrics import Distribution, MetricsRegistry

from . import families

SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, DENIED, UNDECIDED = "allowed", "denied", "no-opinion"
_COUNTED_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)

Decisions = Callable[[], Mapping[tuple[str, str], tuple[int, int]]]
"""By type and name of an authorizer, the numbers of requests that it allowed and denied."""
Attempt: TypeAlias = tuple[str, str]
"""A mode of impersonation, and `allowed` or `denied`."""


class AccessMetrics:
    def __init__(
        self, decisions: Decisions, monotonic: Callable[[], float], metrics: MetricsRegistry
    ) -> None:
        self._decisions = decisions
        self.monotonic = monotonic
        authentications = metrics.distributions(families.AUTHENTICATION_DURATION)
        authorizations = metrics.distributions(families.AUTHORIZATION_DURATION)
        self.authentication = {result: authentications.of(result) for result in (SUCCESS, FAILURE, ERROR)}
        self.authorization = {
            result: authorizations.of(result) for result in (ALLOWED, DENIED, UNDECIDED, ERROR)
        }
        self.impersonation = ImpersonationMetrics(metrics)
        self._users = metrics.numbers(families.AUTHENTICATED_USERS)
        self._attempts = (
            (metrics.numbers(families.AUTHENTICATION_ATTEMPTS), self.authentication),
            (metrics.numbers(families.AUTHORIZATION_ATTEMPTS), self.authorization),
        )
        self._decided = metrics.numbers(families.AUTHORIZATION_DECISIONS)
        metrics.on_collect(self._update)

    def record_user(self, user: str, began: float) -> None:
        """Count an authenticated user under one of few names."""
        name = user if user in _COUNTED_USERS else "email_id" if "@" in user else "other"
        self._users.of(name).value += 1
        self.authentication[SUCCESS].observe(self.monotonic() - began)

    def _update(self) -> None:
        for attempts, durations in self._attempts:
            attempts.replace(_counts(durations))
        self._decided.replace(
            ((*authorizer, decision), count)
            for authorizer, counts in self._decisions().items()
            for decision, count in zip((ALLOWED, DENIED), counts, strict=True)
            if count
        )


def _counts(durations: Mapping[str, Distribution]) -> Iterable[tuple[tuple[str, ...], float]]:
    return [((result,), found.count) for result, found in durations.items() if found.count]


class ImpersonationMetrics:
    def __init__(self, metrics: MetricsRegistry) -> None:
        self._attempts = metrics.timed_operations(
            families.IMPERSONATION_ATTEMPTS, families.IMPERSONATION_DURATION
        )
        self._checks = metrics.timed_operations(
            families.IMPERSONATION_CHECKS, families.IMPERSONATION_CHECK_DURATION
        )

    def note(self, attempt: Attempt, seconds: float, checks: Iterable[tuple[Attempt, float]]) -> None:
        """Observe an attempt, and its authorization checks."""
        self._attempts.observe(seconds, *attempt)
        for check, check_seconds in checks:
            self._checks.observe(check_seconds, *check)


# --- credentials


class AuthenticatorCounts(Protocol):
    """The numbers that authenticators count."""

    tokens: Counter[str]
    fetches: Counter[str]
    cache_hits: int
    active_fetches: int


class CredentialMetrics:
    """Observes durations, and reports the numbers that authenticators count."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._metrics = metrics
        self._requests = metrics.distributions(families.TOKEN_CACHE_DURATION)
        self._fetches = self._requests.of("miss")
        self.observe_certificate = metrics.distributions(families.CLIENT_CERTIFICATE_EXPIRATION).of().observe

    def report(self, counts: AuthenticatorCounts) -> None:
        self._metrics.on_collect(partial(self._update, counts))

    def observe_fetch(self, seconds: float) -> None:
        self._fetches.observe(int(seconds * 1000) / 1000)  # upstream counts whole milliseconds

    def _update(self, counts: AuthenticatorCounts) -> None:
        metrics = self._metrics
        for name, family in families.TOKEN_USES.items():
            metrics.numbers(family).set(counts.tokens[name])
        self._requests.of("hit").counts[0] = counts.cache_hits
        found = {status: self._requests.of(status) for status in ("hit", "miss")}
        metrics.numbers(families.TOKEN_CACHE_REQUESTS).replace(_counts(found))
        fetches = (((status,), count) for status, count in counts.fetches.items() if count)
        metrics.numbers(families.TOKEN_CACHE_FETCHES).replace(fetches)
        if self._fetches.count or counts.active_fetches:
            for status in ("blocked", "in_flight"):
                metrics.numbers(families.TOKEN_CACHE_ACTIVE).set(counts.active_fetches, status)
