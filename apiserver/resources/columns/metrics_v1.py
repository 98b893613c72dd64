"""The metrics of a HorizontalPodAutoscaler of either version, in the form of v2.

v1 has the CPU in a field of its own, and all other metrics as JSON in annotations, in an older form. An annotation
that does not hold metrics counts as absent.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import DecodeError
from msgspec.json import decode

from apimachinery import meta, quantity
from apiserver.resources.columns.parts import items, part
from apiserver.wire.table import Tree

_Metric: TypeAlias = dict[str, str | dict[str, Any]]
"""Its type, and under the type's name what is measured."""

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
"""What the old fields are called inside of v2's `target` and `current`."""


def specs(tree: Tree) -> Sequence[Any]:
    cpu = part(tree, "spec", "targetCPUUtilizationPercentage")
    annotated = _annotated(tree, _ANNOTATION_SPECS, "target", _TARGET)
    return items(tree, "spec", "metrics") or [*annotated, *_cpu("target", cpu)]


def statuses(tree: Tree) -> Sequence[Any]:
    cpu = part(tree, "status", "currentCPUUtilizationPercentage")
    annotated = _annotated(tree, _ANNOTATION_STATUSES, "current", _CURRENT)
    return items(tree, "status", "currentMetrics") or annotated or _cpu("current", cpu)


def _cpu(side: str, utilization: int | None) -> list[Any]:
    if utilization is None:
        return []
    return [{"type": "Resource", "resource": {"name": "cpu", side: {"averageUtilization": utilization}}}]


def _annotated(tree: Tree, annotation: str, side: str, names: Mapping[str, str]) -> list[Any]:
    try:
        metrics = decode(meta.annotations(tree).get(annotation) or "[]", type=list[_Metric])
        return [_renamed(metric, side, names) for metric in metrics]
    except (DecodeError, quantity.QuantityError):
        return []


def _renamed(metric: _Metric, side: str, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        field: source if isinstance(source, str) else {**source, side: _values(source, names)}
        for field, source in metric.items()
    }


def _values(source: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Utilization is a number, and every other value a quantity; a number reads as the same quantity."""
    known = {names[old]: value for old, value in source.items() if old in names and value is not None}
    return {name: str(quantity.from_json(value)) for name, value in known.items()}
