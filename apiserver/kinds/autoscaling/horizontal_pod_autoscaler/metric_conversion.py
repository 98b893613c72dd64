"""Convert the metrics of HorizontalPodAutoscalers between v1 and v2, by a table of field names."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery import meta
from mockube.apimachinery.tree import Tree

FieldPaths: TypeAlias = Sequence[tuple[str, tuple[str, ...]]]
"""The fields of a metric source in v1, each with its path in v2."""

_NAME: Final = ("metricName", ("metric", "name"))
_SELECTOR: Final = ("selector", ("metric", "selector"))

_SPECS: Final[Mapping[str, FieldPaths]] = {
    "resource": (
        ("name", ("name",)),
        ("targetAverageUtilization", ("target", "averageUtilization")),
        ("targetAverageValue", ("target", "averageValue")),
    ),
    "containerResource": (
        ("name", ("name",)),
        ("targetAverageUtilization", ("target", "averageUtilization")),
        ("targetAverageValue", ("target", "averageValue")),
        ("container", ("container",)),
    ),
    "pods": (_NAME, ("targetAverageValue", ("target", "averageValue")), _SELECTOR),
    "object": (
        ("target", ("describedObject",)),
        _NAME,
        ("targetValue", ("target", "value")),
        _SELECTOR,
        ("averageValue", ("target", "averageValue")),
    ),
    "external": (
        ("metricName", ("metric", "name")),
        ("metricSelector", ("metric", "selector")),
        ("targetValue", ("target", "value")),
        ("targetAverageValue", ("target", "averageValue")),
    ),
}
_STATUSES: Final[Mapping[str, FieldPaths]] = {
    "resource": (
        ("name", ("name",)),
        ("currentAverageUtilization", ("current", "averageUtilization")),
        ("currentAverageValue", ("current", "averageValue")),
    ),
    "containerResource": (
        ("name", ("name",)),
        ("currentAverageUtilization", ("current", "averageUtilization")),
        ("currentAverageValue", ("current", "averageValue")),
        ("container", ("container",)),
    ),
    "pods": (_NAME, ("currentAverageValue", ("current", "averageValue")), _SELECTOR),
    "object": (
        ("target", ("describedObject",)),
        _NAME,
        ("currentValue", ("current", "value")),
        _SELECTOR,
        ("averageValue", ("current", "averageValue")),
    ),
    "external": (
        ("metricName", ("metric", "name")),
        ("metricSelector", ("metric", "selector")),
        ("currentValue", ("current", "value")),
        ("currentAverageValue", ("current", "averageValue")),
    ),
}
_WRITTEN_IF_ABSENT: Final = frozenset(
    {
        *(("object", "targetValue"), ("pods", "targetAverageValue"), ("object", "currentValue")),
        *(("pods", "currentAverageValue"), ("resource", "currentAverageValue")),
        ("containerResource", "currentAverageValue"),
    }
)
"""Quantities that v1 writes as 0 if they are absent."""
_ORDER: Final = ("type", "object", "pods", "resource", "containerResource", "external")
_TARGET_TYPES: Final = (
    ("averageUtilization", "Utilization"),
    ("averageValue", "AverageValue"),
    ("value", "Value"),
)
"""The type of a target by its field; the first field that is present decides."""


def spec_to_v2(metric: Tree) -> Tree:
    v2_metric = _to_v2(metric, _SPECS)
    for source in _sources(v2_metric, _SPECS):
        target = v2_metric[source].get("target", {})
        kind = next((name for field, name in _TARGET_TYPES if field in target), "")
        v2_metric[source]["target"] = {"type": kind} | target
    return v2_metric


def spec_to_v1(metric: Tree) -> Tree:
    return _to_v1(metric, _SPECS)


def status_to_v2(metric: Tree) -> Tree:
    return _to_v2(metric, _STATUSES)


def status_to_v1(metric: Tree) -> Tree:
    return _to_v1(metric, _STATUSES)


def cpu_spec(percentage: int) -> Tree:
    target = {"type": "Utilization", "averageUtilization": percentage}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def current_cpu(percentage: int) -> Tree:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": percentage}},
    }


def is_cpu_utilization(metric: Tree) -> bool:
    """Return whether this is the one metric for which v1 has a field."""
    return _is_cpu(metric, "target")


def is_current_cpu_utilization(metric: Tree) -> bool:
    return _is_cpu(metric, "current")


def _is_cpu(metric: Tree, part: str) -> bool:
    resource = metric.get("resource") or {}
    measured = resource.get(part) or {}
    return resource.get("name") == "cpu" and measured.get("averageUtilization") is not None


def _sources(metric: Tree, table: Mapping[str, FieldPaths]) -> list[str]:
    return [source for source in table if metric.get(source)]


def _to_v2(metric: Tree, table: Mapping[str, FieldPaths]) -> Tree:
    v2_metric: dict[str, Any] = dict(metric)
    for source in _sources(metric, table):
        v2_source: dict[str, Any] = {}
        for field, path in table[source]:
            if field in metric[source]:
                v2_source = meta.with_value(v2_source, path, metric[source][field])
        v2_metric[source] = v2_source
    return v2_metric


def _to_v1(metric: Tree, table: Mapping[str, FieldPaths]) -> Tree:
    v1_metric: dict[str, Any] = {name: metric[name] for name in _ORDER if name in metric}
    for source in _sources(metric, table):
        values = {field: _get(metric[source], path) for field, path in table[source]}
        zeros = {field: "0" for field in values if (source, field) in _WRITTEN_IF_ABSENT}
        v1_metric[source] = {
            field: value if value is not None else zeros[field]
            for field, value in values.items()
            if value is not None or field in zeros
        }
    return v1_metric


def _get(tree: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree
