"""Configuration files that are reloaded after changes."""

import hashlib

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from . import families


class ConfigReloadMetrics:
    """The reloads of a configuration file.

    `subsystem` is `authentication` or `authorization`, `server` the identity of this server.
    """

    def __init__(self, subsystem: str, server: str, clock: Clock, metrics: MetricsRegistry) -> None:
        self._server = digest(server)
        self._clock = clock
        reloads, last_reload, config = families.reloads(subsystem)
        self._reloads = metrics.numbers(reloads)
        self._last_reload = metrics.numbers(last_reload)
        self._config = metrics.numbers(config)

    def record_config(self, data: bytes) -> None:
        config_hash = digest(data)
        self._config.replace([((self._server, config_hash), 1)] if config_hash else [])

    def record_reload(self, *, success: bool) -> None:
        status = "success" if success else "failure"
        self._reloads.add(1, status, self._server)
        self._last_reload.set(self._clock.now().timestamp(), status, self._server)


def digest(data: str | bytes) -> str:
    """Return a digest as the label value for data that is too long or too sensitive for a label."""
    text = data.encode() if isinstance(data, str) else data
    return f"sha256:{hashlib.sha256(text).hexdigest()}" if text else ""
