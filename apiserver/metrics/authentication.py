"""Authenticators of JSON Web Tokens, and their configuration file."""

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from . import families
from .config_reload import ConfigReloadMetrics, digest


class AuthenticationMetrics:
    """The metrics of authentication; `server` is the identity of this server."""

    def __init__(self, server: str, clock: Clock, metrics: MetricsRegistry) -> None:
        self._server = digest(server)
        self._clock = clock
        self._key_sets: dict[str, str] = {}
        self._latency = metrics.distributions(families.JWT_LATENCY)
        self._fetched = metrics.numbers(families.JWT_FETCHED)
        self._keys = metrics.numbers(families.JWT_KEY_SETS)
        self._file = ConfigReloadMetrics("authentication", server, clock, metrics)
        self.record_config, self.record_reload = self._file.record_config, self._file.record_reload

    def record_authentication(self, issuer: str, seconds: float, *, success: bool) -> None:
        self._latency.observe(seconds, _result(success=success), digest(issuer))

    def record_fetch(self, issuer: str, body: bytes | None) -> None:
        """Record a fetch of an issuer's keys; `body` is None if the fetch failed."""
        name = digest(issuer)
        if body is not None:
            self._key_sets[name] = digest(body)
            self._keys.replace(
                ((issuer_hash, self._server, keys), 1) for issuer_hash, keys in self._key_sets.items()
            )
        self._fetched.set(
            self._clock.now().timestamp(), _result(success=body is not None), name, self._server
        )


def _result(*, success: bool) -> str:
    return "success" if success else "failure"
