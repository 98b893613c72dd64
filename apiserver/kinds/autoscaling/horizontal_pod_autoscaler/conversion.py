"""Convert HorizontalPodAutoscalers between autoscaling/v1 and v2.

v1 has one metric, the CPU utilization. The other fields of a v2 object are stored in annotations, as JSON, so that a
conversion to v1 and back loses nothing.
"""

from typing import Any, Final

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler import annotations
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler import metric_conversion as metrics

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
    metric_specs = [metrics.spec_to_v2(metric) for metric in annotated[METRICS] or ()]
    if (percentage := spec.get("targetCPUUtilizationPercentage")) is not None:
        metric_specs.append(metrics.cpu_spec(percentage))
    v2_spec["metrics"] = metric_specs or [metrics.cpu_spec(CPU_UTILIZATION)]
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
    for metric in filter(metrics.is_cpu_utilization, reversed(metric_specs)):  # the first has priority
        v1_spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
    for metric in filter(metrics.is_current_cpu_utilization, metric_statuses):
        v1_status["currentCPUUtilizationPercentage"] = metric["resource"]["current"]["averageUtilization"]
    texts: dict[str, str | None] = dict.fromkeys(_ANNOTATIONS)
    for name, value in (
        (
            METRICS,
            [metrics.spec_to_v1(metric) for metric in metric_specs if not metrics.is_cpu_utilization(metric)],
        ),
        (CURRENT, [*map(metrics.status_to_v1, metric_statuses)]),
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
        return [metrics.status_to_v2(_without_zero(metric)) for metric in annotated] or None
    percentage = status.get("currentCPUUtilizationPercentage")
    return None if percentage is None else [metrics.current_cpu(percentage)]


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
