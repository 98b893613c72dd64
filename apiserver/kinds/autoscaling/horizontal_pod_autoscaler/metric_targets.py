"""The `Targets` column of a HorizontalPodAutoscaler: `cpu: 40%/80%, 12/50 (avg) + 1 more...`.

The column is printed from metrics in the form of v2; the n-th status belongs to the n-th metric. v1 has a field for the
CPU, and all other metrics as JSON in annotations, in an older form. An annotation with anything but metrics is ignored.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, TypeAlias

from msgspec import DecodeError
from msgspec.json import decode

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.common.cells import items, join_shortened, part, text

_UNKNOWN: Final = "<unknown>"


def targets(specs: Sequence[Any], statuses: Sequence[Any]) -> str:
    texts = [_target(spec, status) for spec, status in zip_longest(specs, statuses[: len(specs)])]
    return join_shortened(texts, most=2, separator=", ") or "<none>"


def _target(spec: Any, status: Any) -> str:
    kind = text(spec, "type")
    if kind not in _SOURCES:
        return "<unknown type>"
    field, describe = _SOURCES[kind]
    return describe(part(spec, field), part(status, field))


def _value(source: Any, status: Any) -> str:
    """Format a metric of an object other than a pod: its value, or its value divided by the number of pods."""
    average = part(source, "target", "averageValue")
    if average is not None:
        current = part(status, "current", "averageValue")
        return f"{_UNKNOWN if current is None else _amount(current)}/{_amount(average)} (avg)"
    current = _UNKNOWN if status is None else _amount(part(status, "current", "value"))
    return f"{current}/{_amount(part(source, 'target', 'value'))}"


def _average(source: Any, status: Any) -> str:
    current = _UNKNOWN if status is None else _amount(part(status, "current", "averageValue"))
    return f"{current}/{_amount(part(source, 'target', 'averageValue'))}"


def _resource(source: Any, status: Any) -> str:
    name = text(source, "name")
    if part(source, "target", "averageValue") is not None:
        return f"{name}: {_average(source, status)}"
    current = _percent(part(status, "current", "averageUtilization"), _UNKNOWN)
    return f"{name}: {current}/{_percent(part(source, 'target', 'averageUtilization'), '<auto>')}"


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

_ANNOTATION_SPECS: Final = "autoscaling.alpha.kubernetes.io/metrics"
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


def metric_specs(tree: Tree) -> Sequence[Any]:
    cpu = part(tree, "spec", "targetCPUUtilizationPercentage")
    annotated = _read_annotation(tree, _ANNOTATION_SPECS, "target", _TARGET)
    return items(tree, "spec", "metrics") or [*annotated, *_cpu("target", cpu)]


def metric_statuses(tree: Tree) -> Sequence[Any]:
    cpu = part(tree, "status", "currentCPUUtilizationPercentage")
    annotated = _read_annotation(tree, _ANNOTATION_STATUSES, "current", _CURRENT)
    return items(tree, "status", "currentMetrics") or annotated or _cpu("current", cpu)


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
