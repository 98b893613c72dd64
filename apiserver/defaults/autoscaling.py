"""Defaults of autoscaling: HorizontalPodAutoscalers, which scale by CPU if nothing else is said, in both versions."""

from typing import Final

from apiserver.defaults.table import FILLED_BY_OWNER, Table, Tree, of

_CPU_UTILIZATION: Final = 80
_PERIOD_SECONDS: Final = 15
_METRICS_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/metrics"
"""Where version 1, which knows CPU only, keeps the other metrics."""


def _cpu_of_version_1(autoscaler: Tree) -> None:
    if _METRICS_ANNOTATION not in autoscaler["metadata"].get("annotations", {}):
        autoscaler["spec"].setdefault("targetCPUUtilizationPercentage", _CPU_UTILIZATION)


def _metrics(spec: Tree) -> None:
    if "metrics" not in spec:
        target = {"type": "Utilization", "averageUtilization": _CPU_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _behavior(behavior: Tree) -> None:
    """Up at once, by four pods or to the double; down to nothing, when the controller's own window has passed."""
    up = {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [_policy("Pods", 4), _policy("Percent", 100)],
    }
    down = {"selectPolicy": "Max", "policies": [_policy("Percent", 100)]}
    behavior["scaleUp"] = up | behavior.get("scaleUp", {})
    behavior["scaleDown"] = down | behavior.get("scaleDown", {})


def _policy(of_type: str, value: int) -> Tree:
    return {"type": of_type, "value": value, "periodSeconds": _PERIOD_SECONDS}


_V1: Final = of(
    "io.k8s.api.autoscaling.v1",
    {
        "HorizontalPodAutoscaler": _cpu_of_version_1,
        "HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    },
)

_V2: Final = of(
    "io.k8s.api.autoscaling.v2",
    {
        "HorizontalPodAutoscalerSpec": ({"minReplicas": 1}, _metrics),
        "HorizontalPodAutoscalerBehavior": _behavior,
        "HPAScalingRules": FILLED_BY_OWNER,
    },
)

DEFAULTS: Final[Table] = {**_V1, **_V2}
