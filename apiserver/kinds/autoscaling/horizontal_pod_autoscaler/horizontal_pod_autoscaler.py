"""HorizontalPodAutoscaler, in v2, which is stored, and in v1. The default metric is the CPU utilization."""

from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler.conversion import to_v1, to_v2
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler.metric_targets import (
    metric_specs,
    metric_statuses,
    targets,
)
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler.validation import VALIDATION
from mockube.apiserver.kinds.common import ages
from mockube.apiserver.kinds.common.cells import number, text
from mockube.apiserver.kinds.common.defaults import FILLED_BY_OWNER, of
from mockube.apiserver.kinds.kind import Conversion, Kind
from mockube.apiserver.wire.table import AGE, NAME, Column, Printer

# --- defaults

_CPU_UTILIZATION: Final = 80
_PERIOD_SECONDS: Final = 15
_METRICS_ANNOTATION: Final = "autoscaling.alpha.kubernetes.io/metrics"
"""The annotation in which v1 stores metrics other than the CPU utilization."""


def _default_cpu_target(autoscaler: Tree) -> None:
    if _METRICS_ANNOTATION not in autoscaler["metadata"].get("annotations", {}):
        autoscaler["spec"].setdefault("targetCPUUtilizationPercentage", _CPU_UTILIZATION)


def _default_metrics(spec: Tree) -> None:
    if "metrics" not in spec:
        target = {"type": "Utilization", "averageUtilization": _CPU_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]


def _default_behavior(behavior: Tree) -> None:
    """Set the defaults: scale up at once, by four pods or 100 %; scale down by 100 %, after the controller's default window."""
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


# --- columns


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        f"{text(tree, 'spec', 'scaleTargetRef', 'kind')}/{text(tree, 'spec', 'scaleTargetRef', 'name')}",
        targets(metric_specs(tree), metric_statuses(tree)),
        text(tree, "spec", "minReplicas", default="<unset>"),
        number(tree, "spec", "maxReplicas"),
        number(tree, "status", "currentReplicas"),
        ages.age(tree, now),
    ]


_PRINTER: Final = Printer(
    columns=(
        NAME,
        Column(name="Reference"),
        Column(name="Targets"),
        Column(name="MinPods"),
        Column(name="MaxPods"),
        Column(name="Replicas"),
        AGE,
    ),
    cells=_cells,
)


KIND: Final = Kind(
    resource=Resource(
        group="autoscaling",
        version="v2",
        name="horizontalpodautoscalers",
        kind="HorizontalPodAutoscaler",
        storage_version=("autoscaling", "v2"),
        categories=("all",),
        short_names=("hpa",),
        subresources=(STATUS,),
    ),
    validation=VALIDATION,
    printer=_PRINTER,
    defaults=of(
        "io.k8s.api.autoscaling.v2",
        {
            "HorizontalPodAutoscalerSpec": ({"minReplicas": 1}, _default_metrics),
            "HorizontalPodAutoscalerBehavior": _default_behavior,
            "HPAScalingRules": FILLED_BY_OWNER,
        },
    ),
)


KIND_V1: Final = Kind(
    resource=Resource(
        group="autoscaling",
        version="v1",
        name="horizontalpodautoscalers",
        kind="HorizontalPodAutoscaler",
        storage_version=("autoscaling", "v2"),
        categories=("all",),
        short_names=("hpa",),
        subresources=(STATUS,),
    ),
    printer=_PRINTER,
    conversion=Conversion(to_stored=to_v2, from_stored=to_v1),
    defaults=of(
        "io.k8s.api.autoscaling.v1",
        {
            "HorizontalPodAutoscaler": _default_cpu_target,
            "HorizontalPodAutoscalerSpec": {"minReplicas": 1},
        },
    ),
)
