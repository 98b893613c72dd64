"""The status of a HorizontalPodAutoscaler, while a reconciliation changes it. Reasons and messages are upstream's."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree

ABLE, ACTIVE, LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
SCALED_TO_ZERO = "ScaledToZero"
GENERATION = "HPAGeneration"
"""The feature gate with which autoscalers have a generation."""


class AutoscalerStatus:
    def __init__(self, autoscaler: ReadOnlyTree, gates: FeatureGates, now: datetime) -> None:
        self._autoscaler = autoscaler
        self._reports_generation = gates.is_on(GENERATION)
        self._now = now
        self._tree: dict[str, Any] = dict(autoscaler.get("status") or {})

    def record(self, condition: str, status: str, reason: str, message: str) -> None:
        updated = {"type": condition, "status": status, "reason": reason, "message": message}
        self._tree["conditions"] = conditions.set_condition(
            self._tree.get("conditions") or (), updated, self._now
        )

    def set_able(self, reason: str, message: str) -> None:
        self.record(ABLE, "True", reason, message)

    def unable_to_get_scale(self, error: Exception) -> None:
        message = f"the HPA controller was unable to get the target's current scale: {error}"
        self.record(ABLE, "False", "FailedGetScale", message)

    def remove(self, condition: str) -> None:
        entries = self._tree.get("conditions") or ()
        self._tree["conditions"] = [entry for entry in entries if entry.get("type") != condition]

    def set_replicas(
        self,
        current: int,
        metrics: Sequence[ReadOnlyTree],
        *,
        desired: int | None = None,
        rescaled: bool = False,
    ) -> None:
        self._tree |= {"currentReplicas": current, "currentMetrics": list(metrics) or None}
        self._tree.pop("observedGeneration", None)
        if self._reports_generation:
            self._tree["observedGeneration"] = meta.generation(self._autoscaler)
        if desired is not None:
            self._tree["desiredReplicas"] = desired
        if rescaled:
            self._tree["lastScaleTime"] = format_time(self._now)

    @property
    def updated_object(self) -> ReadOnlyTree | None:
        """The autoscaler with the new status; None if the status is the same."""
        if _without_empty(self._tree) == _without_empty(self._autoscaler.get("status") or {}):
            return None
        return {**self._autoscaler, "status": {"desiredReplicas": 0, "currentMetrics": None, **self._tree}}


def _without_empty(status: ReadOnlyTree) -> dict[str, Any]:
    """Return the status without empty fields; an observed generation of 0 is not empty."""
    return {
        name: value
        for name, value in status.items()
        if value not in (None, 0, []) or (value == 0 and name == "observedGeneration")
    }
