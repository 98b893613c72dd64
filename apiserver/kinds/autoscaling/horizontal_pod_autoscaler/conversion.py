"""Convert HorizontalPodAutoscalers between autoscaling/v1 and v2.

v1 knows one metric, the CPU's utilization. The rest of a v2 object is kept in annotations, as JSON, so that nothing
is lost on the way through v1.
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
_READ: Final = {
    METRICS: annotations.SPECS,
    CURRENT: annotations.STATUSES,
    CONDITIONS: annotations.CONDITIONS,
    BEHAVIOR: annotations.BEHAVIOR,
}
_ANNOTATIONS: Final = (*_READ, f"{_PREFIX}scale-down-tolerance", f"{_PREFIX}scale-up-tolerance")
CPU_UTILIZATION: Final = 80
"""Of an autoscaler without metrics."""

_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def to_v2(autoscaler: Tree) -> Tree:
    spec, status = autoscaler.get("spec", {}), autoscaler.get("status", {})
    annotated = {name: _read(autoscaler, name) for name in _READ}
    made_spec = _kept(spec, _SPEC)
    found = [metrics.spec_to_v2(metric) for metric in annotated[METRICS] or ()]
    if (percentage := spec.get("targetCPUUtilizationPercentage")) is not None:
        found.append(metrics.cpu_spec(percentage))
    made_spec["metrics"] = found or [metrics.cpu_spec(CPU_UTILIZATION)]
    if annotated[BEHAVIOR]:
        made_spec["behavior"] = annotated[BEHAVIOR]
    made_status = _kept(status, _STATUS) | {"currentMetrics": _current(status, annotated[CURRENT])}
    if not made_status.get("currentReplicas"):
        made_status.pop("currentReplicas", None)
    if annotated[CONDITIONS]:
        made_status["conditions"] = annotated[CONDITIONS]
    made = autoscaler | {"apiVersion": V2, "spec": made_spec, "status": {"desiredReplicas": 0} | made_status}
    return _with_annotations(made, dict.fromkeys(_ANNOTATIONS))


def to_v1(autoscaler: Tree) -> Tree:
    spec, status = autoscaler.get("spec", {}), autoscaler.get("status", {})
    made_spec = _kept(spec, _SPEC)
    made_status = {"currentReplicas": 0, "desiredReplicas": 0} | _kept(status, _STATUS)
    wanted, current = spec.get("metrics") or (), status.get("currentMetrics") or ()
    for metric in filter(metrics.is_cpu_utilization, reversed(wanted)):  # the first one counts
        made_spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
    for metric in filter(metrics.is_current_cpu_utilization, current):
        made_status["currentCPUUtilizationPercentage"] = metric["resource"]["current"]["averageUtilization"]
    texts: dict[str, str | None] = dict.fromkeys(_ANNOTATIONS)
    for name, value in (
        (METRICS, [metrics.spec_to_v1(one) for one in wanted if not metrics.is_cpu_utilization(one)]),
        (CURRENT, [*map(metrics.status_to_v1, current)]),
        (CONDITIONS, status.get("conditions")),
    ):
        texts[name] = gotext.marshal(value) if value else None
    if (behavior := spec.get("behavior")) is not None:
        texts[BEHAVIOR] = annotations.write_behavior(behavior)
    made = autoscaler | {"apiVersion": V1, "spec": made_spec, "status": made_status}
    return _with_annotations(made, texts)


def without_annotations(autoscaler: Tree) -> Tree:
    """Return an autoscaler of v2 without the annotations that are v1's."""
    return _with_annotations(autoscaler, dict.fromkeys(_ANNOTATIONS))


def _current(status: Tree, annotated: list[Tree] | None) -> list[Tree] | None:
    """The annotation knows more than the field, and takes its place."""
    if annotated is not None:
        return [metrics.status_to_v2(_without_zero(metric)) for metric in annotated] or None
    percentage = status.get("currentCPUUtilizationPercentage")
    return None if percentage is None else [metrics.current_cpu(percentage)]


def _without_zero(metric: Tree) -> Tree:
    """Return a metric of a resource without the amount that v1 writes where there is none."""
    resource = metric.get("resource") or {}
    if "currentAverageUtilization" not in resource or resource.get("currentAverageValue") != "0":
        return metric
    return metric | {"resource": {k: v for k, v in resource.items() if k != "currentAverageValue"}}


def _kept(tree: Tree, fields: tuple[str, ...]) -> Tree:
    return {field: tree[field] for field in fields if field in tree}


def _read(autoscaler: Tree, annotation: str) -> Any:
    """Return the value of an annotation, or None if it is none of its type."""
    text = meta.annotations(autoscaler).get(annotation)
    return annotations.read(text, _READ[annotation]) if isinstance(text, str) else None


def _with_annotations(autoscaler: Tree, changes: dict[str, str | None]) -> Tree:
    present = meta.annotations(autoscaler)
    if not any(changes.values()) and not any(name in present for name in changes):
        return autoscaler
    return meta.with_annotations(autoscaler, changes)
