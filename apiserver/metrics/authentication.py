"""Upstream's metrics of JWT authenticators and of their configuration file, under upstream's names."""

from collections.abc import Iterable
from typing import Final

from prometheus_client import Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.clock import Clock
from mockube.apiserver.metrics.config_reload import ConfigReloadMetrics, digest

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JWT: Final = "apiserver_authentication_jwt_authenticator"


class AuthenticationMetrics(Collector):
    """`server` is the identity of this server."""

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
        self._fetched.labels(_result(success=body is not None), name, self._server).set(self._now())

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

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _result(*, success: bool) -> str:
    return "success" if success else "failure"
