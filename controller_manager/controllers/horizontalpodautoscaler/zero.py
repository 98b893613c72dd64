"""Scaling to and from zero replicas, with the feature gate HPAScaleToZero. Reasons and messages are upstream's."""

from typing import Final

from mockube.apimachinery import conditions
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree

from .status import SCALED_TO_ZERO, AutoscalerStatus

GATE: Final = "HPAScaleToZero"
_REMEMBERS_ZERO: Final = "1.36"
"""The first minor release in which only an autoscaler that scaled to zero scales from zero."""
_METRICS_WITHOUT_PODS: Final = ("Object", "External")


def minimum(autoscaler: ReadOnlyTree) -> int:
    replicas = autoscaler["spec"].get("minReplicas")
    return 1 if replicas is None else int(replicas)


def leaves_zero(autoscaler: ReadOnlyTree, gates: FeatureGates) -> bool:
    """Return whether the metrics decide for a target with zero replicas; otherwise scaling is disabled."""
    if gates.is_before(_REMEMBERS_ZERO):
        return minimum(autoscaler) == 0
    is_own_zero = gates.is_on(GATE) and conditions.is_true(autoscaler, SCALED_TO_ZERO)
    return is_own_zero and (minimum(autoscaler) != 0 or _has_metrics_without_pods(autoscaler))


def record_disabled(status: AutoscalerStatus, gates: FeatureGates) -> None:
    if not gates.is_on(GATE):
        status.remove(SCALED_TO_ZERO)


def record_rescale(
    autoscaler: ReadOnlyTree, current: int, desired: int, status: AutoscalerStatus, gates: FeatureGates
) -> None:
    """Record whether the new scale is a zero that the autoscaler chose."""
    if not gates.is_on(GATE) or gates.is_before(_REMEMBERS_ZERO):
        status.remove(SCALED_TO_ZERO)
    elif current > 0 == desired == minimum(autoscaler) and _has_metrics_without_pods(autoscaler):
        message = "the HPA controller scaled the workload to zero"
        status.record(SCALED_TO_ZERO, "True", "ScaledToZero", message)
    else:
        message = "the HPA controller did not scale the workload to zero"
        status.record(SCALED_TO_ZERO, "False", "NotScaledToZero", message)


def _has_metrics_without_pods(autoscaler: ReadOnlyTree) -> bool:
    metrics = autoscaler["spec"].get("metrics") or ()
    return any(metric.get("type") in _METRICS_WITHOUT_PODS for metric in metrics)
