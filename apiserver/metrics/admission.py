"""Admission: its steps, plugins, policies, and admission and conversion webhooks."""

from typing import Final

from mockube.component_base.metrics import Distribution, MetricsRegistry

from . import families

ADMIT, VALIDATE = "admit", "validate"
QUICK: Final = families.ADMISSION_STEP.buckets[0]
NO_ERROR, CALLING, INTERNAL = "no_error", "calling_webhook_error", "apiserver_internal_error"
_OUT_OF_BUDGET: Final = "validation failed due to running out of cost budget"


class AdmissionMetrics:
    """The durations of both steps of admission, and of each plugin in them; the checks of policies."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._steps = metrics.distributions(families.ADMISSION_STEP)
        self._plugins = metrics.distributions(families.ADMISSION_CONTROLLER)
        self.validating = metrics.timed_operations(*families.VALIDATING_POLICIES)
        self.mutating = metrics.timed_operations(*families.MUTATING_POLICIES)

    def durations(self, step: str, operation: str, plugin: str = "") -> tuple[Distribution, Distribution]:
        """Return the durations of what a plugin, or a whole step if there is none, allowed and rejected."""
        passed, rejected = (
            self._plugins.of(plugin, step, operation, rejected)
            if plugin
            else self._steps.of(step, operation, rejected)
            for rejected in ("false", "true")
        )
        return passed, rejected


def error_type(message: str | None) -> str:
    """Return the label of the result of a policy's expression; a denial counts as an invalid expression, as upstream."""
    if message is None:
        return "no_error"
    if message.startswith("compilation"):
        return "compile_error"
    return "out_of_budget" if message.startswith(_OUT_OF_BUDGET) else "invalid_error"


# --- webhooks


class WebhookMetrics:
    """The calls of admission webhooks, by the names in their configurations."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._duration = metrics.distributions(families.WEBHOOK_DURATION)
        self._requests = metrics.numbers(families.WEBHOOK_REQUESTS)
        self._rejections = metrics.numbers(families.WEBHOOK_REJECTIONS)
        self._failed_open = metrics.numbers(families.WEBHOOK_FAIL_OPEN)

    def observe(self, name: str, operation: str, code: int, seconds: float, **outcome: str) -> None:
        """Count one call; `outcome` has its `type`, and an `error_type` if it was rejected."""
        kind, error = outcome["type"], outcome.get("error_type", "")
        rejected = "true" if error else "false"
        self._duration.observe(seconds, name, kind, operation, rejected)
        self._requests.add(1, name, kind, operation, str(code), rejected)
        if error:
            self._rejections.add(1, name, kind, operation, error, str(min(code, 600)))

    def record_fail_open(self, name: str, kind: str) -> None:
        self._failed_open.add(1, name, kind)


class ConversionMetrics:
    def __init__(self, metrics: MetricsRegistry) -> None:
        self._reviews = metrics.timed_operations(families.CONVERSIONS, families.CONVERSION_DURATION)
        self._of_definitions = metrics.distributions(families.DEFINITION_CONVERSIONS)

    def observe(
        self, definition: str, from_version: str, to_version: str, failure: str, seconds: float
    ) -> None:
        """Count one review; `failure` is the reason of a failure, "" for none."""
        self._reviews.observe(seconds, "failure" if failure else "success", failure)
        succeeded = "false" if failure else "true"
        self._of_definitions.observe(seconds, definition, from_version, to_version, succeeded)
