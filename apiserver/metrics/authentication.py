"""Tokens of other issuers and the file that names these: upstream's metrics under upstream's names."""

import hashlib
from collections.abc import Iterable
from typing import Final

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apimachinery.clock import Clock

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JWT: Final = "apiserver_authentication_jwt_authenticator"
_FILE: Final = "apiserver_authentication_config_controller"


class AuthenticationMetrics(Collector):
    """`server` is the identity of this server."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = digest(server)
        self._clock = clock
        self._key_sets: dict[str, str] = {}
        self._file = ""
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
        self._reloads = Counter(
            f"{_FILE}_automatic_reloads",
            "Automatic reloads of the authentication configuration, by status and server.",
            ["status", "apiserver_id_hash"],
            registry=None,
        )
        self._reloaded = Gauge(
            f"{_FILE}_automatic_reload_last_timestamp_seconds",
            "Timestamp of the last automatic reload of the authentication configuration, by status and server.",
            ["status", "apiserver_id_hash"],
            registry=None,
        )

    def authenticated(self, issuer: str, seconds: float, *, success: bool) -> None:
        self._latency.labels(_result(success=success), digest(issuer)).observe(seconds)

    def fetched(self, issuer: str, body: bytes | None) -> None:
        """Note the keys of an issuer; None: they were not found."""
        name = digest(issuer)
        if body is not None:
            self._key_sets[name] = digest(body)
        self._fetched.labels(_result(success=body is not None), name, self._server).set(self._now())

    def applied(self, data: bytes) -> None:
        self._file = digest(data)

    def reloaded(self, *, success: bool) -> None:
        status = _result(success=success)
        self._reloads.labels(status, self._server).inc()
        self._reloaded.labels(status, self._server).set(self._now())

    def collect(self) -> Iterable[Metric]:
        for metric in (self._latency, self._fetched, self._reloads, self._reloaded):
            yield from metric.collect()
        keys = GaugeMetricFamily(
            f"{_JWT}_jwks_fetch_last_key_set_info",
            "The last keys of an issuer, by their digest.",
            labels=["jwt_issuer_hash", "apiserver_id_hash", "hash"],
        )
        for issuer, found in self._key_sets.items():
            keys.add_metric([issuer, self._server, found], 1)
        yield keys
        if self._file:
            info = GaugeMetricFamily(
                f"{_FILE}_last_config_info",
                "The last authentication configuration that was applied, by its digest.",
                labels=["apiserver_id_hash", "hash"],
            )
            info.add_metric([self._server, self._file], 1)
            yield info

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _result(*, success: bool) -> str:
    return "success" if success else "failure"


def digest(data: str | bytes) -> str:
    """Return a label's value for what is too long, or too telling, for one."""
    text = data.encode() if isinstance(data, str) else data
    return f"sha256:{hashlib.sha256(text).hexdigest()}" if text else ""
