"""Upstream's metrics of credentials, of JWT authenticators and of their configuration file, under upstream's names."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from prometheus_client import Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.component_base.clock import Clock

from .config_reload import ConfigReloadMetrics, digest
from .requests import Durations, counter, histogram

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
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
_JWT: Final = "apiserver_authentication_jwt_authenticator"


class AuthenticatorCounts(Protocol):
    """The numbers that authenticators count."""

    tokens: Counter[str]
    fetches: Counter[str]
    cache_hits: int
    active_fetches: int
    observe_fetch: Callable[[float], None]
    observe_certificate: Callable[[float], None]


class CredentialMetrics(Collector):
    def __init__(self, counts: AuthenticatorCounts) -> None:
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
        yield counter(f"{_CACHE}_request_total", "Requests to the token cache.", "status", counts)
        yield counter(
            f"{_CACHE}_fetch_total", "Tokens that were not in the cache.", "status", credential_counts.fetches
        )
        active = GaugeMetricFamily(
            f"{_CACHE}_active_fetch_count", "Tokens that are being checked.", labels=["status"]
        )
        if counts["miss"] or credential_counts.active_fetches:
            for status in ("blocked", "in_flight"):
                active.add_metric([status], credential_counts.active_fetches)
        yield active
        yield histogram(
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


class AuthenticationMetrics(Collector):
    """The metrics of authentication; `server` is the identity of this server."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = digest(server)
        self._clock = clock
        self._key_sets: dict[str, str] = {}
        self._latency = Histogram(
            f"{_JWT}_latency_seconds",
            "Latency of jwt authentication operations in seconds, of tokens that were not in the cache.",
            ["result", "jwt_issuer_hash"],
            buckets=_BUCKETS,
            registry=None,
        )
        self._fetched = Gauge(
            f"{_JWT}_jwks_fetch_last_timestamp_seconds",
            "Timestamp of the last fetch of an issuer's keys, by result, server and issuer.",
            ["result", "jwt_issuer_hash", "apiserver_id_hash"],
            registry=None,
        )
        self._file = ConfigReloadMetrics("authentication", server, clock)
        self.record_config, self.record_reload = self._file.record_config, self._file.record_reload

    def record_authentication(self, issuer: str, seconds: float, *, success: bool) -> None:
        self._latency.labels(_result(success=success), digest(issuer)).observe(seconds)

    def record_fetch(self, issuer: str, body: bytes | None) -> None:
        """Record a fetch of an issuer's keys; `body` is None if the fetch failed."""
        name = digest(issuer)
        if body is not None:
            self._key_sets[name] = digest(body)
        self._fetched.labels(_result(success=body is not None), name, self._server).set(
            self._clock.now().timestamp()
        )

    def collect(self) -> Iterable[Metric]:
        for metric in (self._latency, self._fetched, self._file):
            yield from metric.collect()
        keys = GaugeMetricFamily(
            f"{_JWT}_jwks_fetch_last_key_set_info",
            "The last keys of an issuer, by their digest.",
            labels=["jwt_issuer_hash", "apiserver_id_hash", "hash"],
        )
        for issuer, key_set_digest in self._key_sets.items():
            keys.add_metric([issuer, self._server, key_set_digest], 1)
        yield keys


def _result(*, success: bool) -> str:
    return "success" if success else "failure"
