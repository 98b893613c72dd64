"""Upstream's metrics of a configuration file that is reloaded after changes."""

import hashlib
from collections.abc import Iterable

from prometheus_client import Counter, Gauge
from prometheus_client.core import GaugeMetricFamily, Metric

from mockube.component_base.clock import Clock


class ConfigReloadMetrics:
    """The reloads of a configuration file.

    `subsystem` is `authentication` or `authorization`, `server` the identity of this server.
    """

    def __init__(self, subsystem: str, server: str, clock: Clock) -> None:
        self._prefix = f"apiserver_{subsystem}_config_controller"
        self._subsystem = subsystem
        self._server = digest(server)
        self._clock = clock
        self._config_hash = ""
        self._reloads = Counter(
            f"{self._prefix}_automatic_reloads",
            f"Automatic reloads of {subsystem} configuration, by status and server.",
            ["status", "apiserver_id_hash"],
            registry=None,
        )
        self._last_reload = Gauge(
            f"{self._prefix}_automatic_reload_last_timestamp_seconds",
            f"Timestamp of the last automatic reload of {subsystem} configuration, by status and server.",
            ["status", "apiserver_id_hash"],
            registry=None,
        )

    def record_config(self, data: bytes) -> None:
        self._config_hash = digest(data)

    def record_reload(self, *, success: bool) -> None:
        status = "success" if success else "failure"
        self._reloads.labels(status, self._server).inc()
        self._last_reload.labels(status, self._server).set(self._clock.now().timestamp())

    def collect(self) -> Iterable[Metric]:
        yield from self._reloads.collect()
        yield from self._last_reload.collect()
        if self._config_hash:
            info = GaugeMetricFamily(
                f"{self._prefix}_last_config_info",
                f"The last {self._subsystem} configuration that was applied, by its digest.",
                labels=["apiserver_id_hash", "hash"],
            )
            info.add_metric([self._server, self._config_hash], 1)
            yield info


def digest(data: str | bytes) -> str:
    """Return a digest as the label value for data that is too long or too sensitive for a label."""
    text = data.encode() if isinstance(data, str) else data
    return f"sha256:{hashlib.sha256(text).hexdigest()}" if text else ""
