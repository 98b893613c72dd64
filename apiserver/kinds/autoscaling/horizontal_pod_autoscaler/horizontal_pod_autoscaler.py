"""HorizontalPodAutoscaler, in v2, which is stored, and in v1. The default metric is the CPU utilization."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from msgspec import DecodeError
from msgspec.json import decode

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import ages, cells
from mockube.apiserver.kinds.common.defaults import FILLED_BY_OWNER, defaults_table
from mockube.apiserver.kinds.kind import Conversion, Kind
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .conversion import to_v1, to_v2, without_annotations
from .validation import VALIDATION

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


# --- the column with targets

_UNKNOWN: Final = "<unknown>"


def _targets(specs: Sequence[Any], statuses: Sequence[Any]) -> str:
    """Format metrics of v2 as `cpu: 40%/80%, 12/50 (avg) + 1 more...`. The n-th status belongs to the n-th metric."""
    texts = [_target(spec, status) for spec, status in zip_longest(specs, statuses[: len(specs)])]
    return cells.join_shortened(texts, maximum=2, separator=", ") or "<none>"


def _target(spec: Any, status: Any) -> str:
    kind = cells.text(spec, "type")
    if kind not in _SOURCES:
        return "<unknown type>"
    field, describe = _SOURCES[kind]
    return describe(cells.part(spec, field), cells.part(status, field))


def _value(source: Any, status: Any) -> str:
    """Format a metric of an object other than a pod: its value, or its value divided by the number of pods."""
    average = cells.part(source, "target", "averageValue")
    if average is not None:
        current = cells.part(status, "current", "averageValue")
        return f"{_UNKNOWN if current is None else _amount(current)}/{_amount(average)} (avg)"
    current = _UNKNOWN if status is None else _amount(cells.part(status, "current", "value"))
    return f"{current}/{_amount(cells.part(source, 'target', 'value'))}"


def _average(source: Any, status: Any) -> str:
    current = _UNKNOWN if status is None else _amount(cells.part(status, "current", "averageValue"))
    return f"{current}/{_amount(cells.part(source, 'target', 'averageValue'))}"


def _resource(source: Any, status: Any) -> str:
    name = cells.text(source, "name")
    if cells.part(source, "target", "averageValue") is not None:
        return f"{name}: {_average(source, status)}"
    current = _percent(cells.part(status, "current", "averageUtilization"), _UNKNOWN)
    return f"{name}: {current}/{_percent(cells.part(source, 'target', 'averageUtilization'), '<auto>')}"


_SOURCES: Final[Mapping[str, tuple[str, Callable[[Any, Any], str]]]] = {
    "External": ("external", _value),
    "Object": ("object", _value),
    "Pods": ("pods", _average),
    "Resource": ("resource", _resource),
    "ContainerResource": ("containerResource", _resource),
}
"""The field of each type of metric, and the function that formats it."""


def _amount(value: Any) -> str:
    return "<nil>" if value is None else str(quantity.from_json(value))


def _percent(value: int | None, default: str) -> str:
    return default if value is None else f"{value}%"


_Metric: TypeAlias = dict[str, str | dict[str, Any]]
"""A metric: its type, and a source under the type's name."""

_ANNOTATION_STATUSES: Final = "autoscaling.alpha.kubernetes.io/current-metrics"

_TARGET: Final = {
    "targetAverageUtilization": "averageUtilization",
    "targetAverageValue": "averageValue",
    "targetValue": "value",
    "averageValue": "averageValue",
}
_CURRENT: Final = {
    "currentAverageUtilization": "averageUtilization",
    "currentAverageValue": "averageValue",
    "currentValue": "value",
    "averageValue": "averageValue",
}
"""The v2 names of the v1 fields, in `target` and in `current`."""


def _metric_specs(tree: Tree) -> Sequence[Any]:
    """Return the metrics in the form of v2.

    v1 has a field for the CPU, and all other metrics as JSON in annotations, in an older form. An annotation with anything
    but metrics is ignored.
    """
    cpu = cells.part(tree, "spec", "targetCPUUtilizationPercentage")
    annotated = _read_annotation(tree, _METRICS_ANNOTATION, "target", _TARGET)
    return cells.items(tree, "spec", "metrics") or [*annotated, *_cpu("target", cpu)]


def _metric_statuses(tree: Tree) -> Sequence[Any]:
    cpu = cells.part(tree, "status", "currentCPUUtilizationPercentage")
    annotated = _read_annotation(tree, _ANNOTATION_STATUSES, "current", _CURRENT)
    return cells.items(tree, "status", "currentMetrics") or annotated or _cpu("current", cpu)


def _cpu(side: str, utilization: int | None) -> list[Any]:
    if utilization is None:
        return []
    return [{"type": "Resource", "resource": {"name": "cpu", side: {"averageUtilization": utilization}}}]


def _read_annotation(tree: Tree, annotation: str, side: str, names: Mapping[str, str]) -> list[Any]:
    try:
        metrics = decode(meta.annotations(tree).get(annotation) or "[]", type=list[_Metric])
        return [_rename_fields(metric, side, names) for metric in metrics]
    except (DecodeError, quantity.QuantityError):
        return []


def _rename_fields(metric: _Metric, side: str, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        field: source if isinstance(source, str) else {**source, side: _values(source, names)}
        for field, source in metric.items()
    }


def _values(source: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the values as quantities. Utilization is a number, whose quantity prints the same."""
    new_values = {names[old]: value for old, value in source.items() if old in names and value is not None}
    return {name: str(quantity.from_json(value)) for name, value in new_values.items()}


# --- columns


def _cells(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        f"{cells.text(tree, 'spec', 'scaleTargetRef', 'kind')}/{cells.text(tree, 'spec', 'scaleTargetRef', 'name')}",
        _targets(_metric_specs(tree), _metric_statuses(tree)),
        cells.text(tree, "spec", "minReplicas", default="<unset>"),
        cells.number(tree, "spec", "maxReplicas"),
        cells.number(tree, "status", "currentReplicas"),
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
        AGE_COLUMN,
    ),
    cells=_cells,
)


def _rewrite_annotations(autoscaler: Tree) -> None:
    """Decode the annotations of v1 and encode them again, which drops what cannot be decoded."""
    autoscaler.update(to_v1(to_v2(autoscaler)))


def _drop_annotations(autoscaler: Tree) -> None:
    autoscaler.update(without_annotations(autoscaler))


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
    strategy=Strategy(generation=SPEC, first_generation=1),
    validation=VALIDATION,
    printer=_PRINTER,
    defaults=defaults_table(
        "io.k8s.api.autoscaling.v2",
        {
            "HorizontalPodAutoscalerSpec": ({"minReplicas": 1}, _default_metrics),
            "HorizontalPodAutoscalerBehavior": _default_behavior,
            "HPAScalingRules": FILLED_BY_OWNER,
        },
    ),
    internal_changes=(_drop_annotations,),
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
    defaults=defaults_table(
        "io.k8s.api.autoscaling.v1",
        {
            "HorizontalPodAutoscaler": _default_cpu_target,
            "HorizontalPodAutoscalerSpec": {"minReplicas": 1},
        },
    ),
    internal_changes=(_rewrite_annotations,),
)
