"""Authorization webhooks, their conditions and their configuration file."""

from typing import Final

from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from . import families
from .config_reload import ConfigReloadMetrics

_TYPE: Final = "Webhook"


class AuthorizationMetrics:
    """The metrics of authorization; `server` is the identity of this server."""

    def __init__(self, server: str, clock: Clock, metrics: MetricsRegistry) -> None:
        self._file = ConfigReloadMetrics("authorization", server, clock, metrics)
        self.record_config, self.record_reload = self._file.record_config, self._file.record_reload
        self._evaluations = metrics.timed_operations(
            families.WEBHOOK_EVALUATIONS, families.WEBHOOK_EVALUATION_DURATION
        )
        self._failed_open = metrics.numbers(families.WEBHOOK_EVALUATIONS_FAIL_OPEN)
        self._failures = metrics.numbers(families.MATCH_CONDITION_ERRORS)
        self._exclusions = metrics.numbers(families.MATCH_CONDITION_EXCLUSIONS)
        self._conditions = metrics.distributions(families.MATCH_CONDITION_DURATION)

    def record_evaluation(self, name: str, result: str, seconds: float) -> None:
        self._evaluations.observe(seconds, name, result)

    def record_fail_open(self, name: str, result: str) -> None:
        self._failed_open.add(1, name, result)

    def record_match(self, name: str, seconds: float, *, failed: bool, excluded: bool) -> None:
        self._conditions.observe(seconds, _TYPE, name)
        if failed:
            self._failures.add(1, _TYPE, name)
        if excluded:
            self._exclusions.add(1, _TYPE, name)
