"""Convert HorizontalPodAutoscalers between autoscaling/v1 and v2.

v1 has one metric, the CPU utilization. The other fields of a v2 object are stored in annotations, as JSON, so that a
conversion to v1 and back loses nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.tree import Tree

from . import annotations

V1, V2 = "autoscaling/v1", "autoscaling/v2"

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT, CONDITIONS, BEHAVIOR = (
    f"{_PREFIX}{name}" for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_SHAPES: Final = {
    METRICS: annotations.SPECS,
    CURRENT: annotations.STATUSES,
    CONDITIONS: annotations.CONDITIONS,
    BEHAVIOR: annotations.BEHAVIOR,
}
_ANNOTATIONS: Final = (*_SHAPES, f"{_PREFIX}scale-down-tolerance", f"{_PREFIX}scale-up-tolerance")
CPU_UTILIZATION: Final = 80
"""The default target of an autoscaler without metrics, in percent."""

_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def to_v2(autoscaler: Tree) -> Tree:
    spec, status = autoscaler.get("spec", {}), autoscaler.get("status", {})
    annotated = {name: _read(autoscaler, name) for name in _SHAPES}
    v2_spec = _subset(spec, _SPEC)
    metric_specs = [_spec_to_v2(metric) for metric in annotated[METRICS] or ()]
    if (percentage := spec.get("targetCPUUtilizationPercentage")) is not None:
        metric_specs.append(_cpu_spec(percentage))
    v2_spec["metrics"] = metric_specs or [_cpu_spec(CPU_UTILIZATION)]
    if annotated[BEHAVIOR]:
        v2_spec["behavior"] = annotated[BEHAVIOR]
    v2_status = _subset(status, _STATUS) | {"currentMetrics": _current_metrics(status, annotated[CURRENT])}
    if not v2_status.get("currentReplicas"):
        v2_status.pop("currentReplicas", None)
    if annotated[CONDITIONS]:
        v2_status["conditions"] = annotated[CONDITIONS]
    converted = autoscaler | {"apiVersion": V2, "spec": v2_spec, "status": {"desiredReplicas": 0} | v2_status}
    return _with_annotations(converted, dict.fromkeys(_ANNOTATIONS))


def to_v1(autoscaler: Tree) -> Tree:
    spec, status = autoscaler.get("spec", {}), autoscaler.get("status", {})
    v1_spec = _subset(spec, _SPEC)
    v1_status = {"currentReplicas": 0, "desiredReplicas": 0} | _subset(status, _STATUS)
    metric_specs, metric_statuses = spec.get("metrics") or (), status.get("currentMetrics") or ()
    for metric in filter(_is_cpu_utilization, reversed(metric_specs)):  # the first has priority
        v1_spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
    for metric in filter(_is_current_cpu_utilization, metric_statuses):
        v1_status["currentCPUUtilizationPercentage"] = metric["resource"]["current"]["averageUtilization"]
    texts: dict[str, str | None] = dict.fromkeys(_ANNOTATIONS)
    for name, value in (
        (
            METRICS,
            [_metric_to_v1(metric, _SPECS) for metric in metric_specs if not _is_cpu_utilization(metric)],
        ),
        (CURRENT, [*map(_status_to_v1, metric_statuses)]),
        (CONDITIONS, status.get("conditions")),
    ):
        texts[name] = gotext.marshal(value) if value else None
    if (behavior := spec.get("behavior")) is not None:
        texts[BEHAVIOR] = annotations.write_behavior(behavior)
    converted = autoscaler | {"apiVersion": V1, "spec": v1_spec, "status": v1_status}
    return _with_annotations(converted, texts)


def without_annotations(autoscaler: Tree) -> Tree:
    """Return a v2 autoscaler without the annotations of v1."""
    return _with_annotations(autoscaler, dict.fromkeys(_ANNOTATIONS))


def _current_metrics(status: Tree, annotated: list[Tree] | None) -> list[Tree] | None:
    """Return the current metrics of the annotation, which has all of them, or of the field."""
    if annotated is not None:
        return [_metric_to_v2(_without_zero(metric), _STATUSES) for metric in annotated] or None
    percentage = status.get("currentCPUUtilizationPercentage")
    return None if percentage is None else [_current_cpu(percentage)]


def _without_zero(metric: Tree) -> Tree:
    """Return a resource metric without the average value that v1 writes as 0 if there is none."""
    resource = metric.get("resource") or {}
    if "currentAverageUtilization" not in resource or resource.get("currentAverageValue") != "0":
        return metric
    return metric | {"resource": {k: v for k, v in resource.items() if k != "currentAverageValue"}}


def _subset(tree: Tree, fields: tuple[str, ...]) -> Tree:
    return {field: tree[field] for field in fields if field in tree}


def _read(autoscaler: Tree, annotation: str) -> Any:
    """Return the value of an annotation, or None if it has another type."""
    text = meta.annotations(autoscaler).get(annotation)
    return annotations.read(text, _SHAPES[annotation]) if isinstance(text, str) else None


def _with_annotations(autoscaler: Tree, changes: dict[str, str | None]) -> Tree:
    present = meta.annotations(autoscaler)
    if not any(changes.values()) and not any(name in present for name in changes):
        return autoscaler
    return meta.with_annotations(autoscaler, changes)


# --- metrics, by a table of field names

_FieldPaths: TypeAlias = Sequence[tuple[str, tuple[str, ...]]]
"""The fields of a metric source in v1, each with its path in v2."""

_NAME: Final = ("metricName", ("metric", "name"))
_SELECTOR: Final = ("selector", ("metric", "selector"))

_SPECS: Final[Mapping[str, _FieldPaths]] = {
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


def _status_field(name: str, path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the field of a metric's status for a field of its specification, which may be in the target."""
    if path[0] != "target":
        return name, path
    return name.replace("target", "current"), ("current", *path[1:])


_STATUSES: Final[Mapping[str, _FieldPaths]] = {
    source: [_status_field(name, path) for name, path in fields] for source, fields in _SPECS.items()
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


def _spec_to_v2(metric: Tree) -> Tree:
    v2_metric = _metric_to_v2(metric, _SPECS)
    for source in _sources(v2_metric, _SPECS):
        target = v2_metric[source].get("target", {})
        kind = next((name for field, name in _TARGET_TYPES if field in target), "")
        v2_metric[source]["target"] = {"type": kind} | target
    return v2_metric


def _status_to_v1(metric: Tree) -> Tree:
    return _metric_to_v1(metric, _STATUSES)


def _cpu_spec(percentage: int) -> Tree:
    target = {"type": "Utilization", "averageUtilization": percentage}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _current_cpu(percentage: int) -> Tree:
    return {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": percentage}},
    }


def _is_cpu_utilization(metric: Tree) -> bool:
    """Return whether this is the one metric for which v1 has a field."""
    return _is_cpu(metric, "target")


def _is_current_cpu_utilization(metric: Tree) -> bool:
    return _is_cpu(metric, "current")


def _is_cpu(metric: Tree, part: str) -> bool:
    resource = metric.get("resource") or {}
    measured = resource.get(part) or {}
    return resource.get("name") == "cpu" and measured.get("averageUtilization") is not None


def _sources(metric: Tree, table: Mapping[str, _FieldPaths]) -> list[str]:
    return [source for source in table if metric.get(source)]


def _metric_to_v2(metric: Tree, table: Mapping[str, _FieldPaths]) -> Tree:
    v2_metric: dict[str, Any] = dict(metric)
    for source in _sources(metric, table):
        v2_source: dict[str, Any] = {}
        for field, path in table[source]:
            if field in metric[source]:
                v2_source = meta.with_value(v2_source, path, metric[source][field])
        v2_metric[source] = v2_source
    return v2_metric


def _metric_to_v1(metric: Tree, table: Mapping[str, _FieldPaths]) -> Tree:
    v1_metric: dict[str, Any] = {name: metric[name] for name in _ORDER if name in metric}
    for source in _sources(metric, table):
        values = {field: meta.value_at(metric[source], path) for field, path in table[source]}
        zeros = {field: "0" for field in values if (source, field) in _WRITTEN_IF_ABSENT}
        v1_metric[source] = {
            field: value if value is not None else zeros[field]
            for field, value in values.items()
            if value is not None or field in zeros
        }
    return v1_metric
