"""Convert HorizontalPodAutoscalers between autoscaling/v1 and v2.

v1 knows one metric, the CPU's utilization. The rest of a v2 object is kept in annotations, as JSON, so that nothing
is lost on the way through v1.
"""

from typing import Any, Final

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.autoscaling.horizontal_pod_autoscaler import metric_conversion as metrics

V1, V2 = "autoscaling/v1", "autoscaling/v2"

_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT, CONDITIONS, BEHAVIOR = (
    f"{_PREFIX}{name}" for name in ("metrics", "current-metrics", "conditions", "behavior")
)
_ANNOTATIONS: Final = frozenset({METRICS, CURRENT, CONDITIONS, BEHAVIOR})

_SPEC: Final = ("scaleTargetRef", "minReplicas", "maxReplicas")
_STATUS: Final = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


def to_v2(autoscaler: Tree) -> Tree:
    spec, status = autoscaler.get("spec", {}), autoscaler.get("status", {})
    annotated = {name: _read(autoscaler, name) for name in _ANNOTATIONS}
    made_spec = _kept(spec, _SPEC)
    found = [metrics.spec_to_v2(metric) for metric in annotated[METRICS] or ()]
    if (percentage := spec.get("targetCPUUtilizationPercentage")) is not None:
        found.append(metrics.cpu_spec(percentage))
    if found:
        made_spec["metrics"] = found
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
    for metric in filter(metrics.is_cpu_utilization, wanted):
        made_spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
    for metric in filter(metrics.is_current_cpu_utilization, current):
        made_status["currentCPUUtilizationPercentage"] = metric["resource"]["current"]["averageUtilization"]
    annotations = {
        METRICS: [metrics.spec_to_v1(one) for one in wanted if not metrics.is_cpu_utilization(one)],
        CURRENT: [
            metrics.status_to_v1(one) for one in current if not metrics.is_current_cpu_utilization(one)
        ],
        CONDITIONS: status.get("conditions"),
        BEHAVIOR: spec.get("behavior"),
    }
    made = autoscaler | {"apiVersion": V1, "spec": made_spec, "status": made_status}
    texts = {name: orjson.dumps(value).decode() if value else None for name, value in annotations.items()}
    return _with_annotations(made, texts)


def _current(status: Tree, annotated: list[Tree] | None) -> list[Tree] | None:
    current = [metrics.status_to_v2(metric) for metric in annotated or ()]
    if (percentage := status.get("currentCPUUtilizationPercentage")) is not None:
        current.append(metrics.current_cpu(percentage))
    return current or None


def _kept(tree: Tree, fields: tuple[str, ...]) -> Tree:
    return {field: tree[field] for field in fields if field in tree}


def _read(autoscaler: Tree, annotation: str) -> Any:
    """Return the value of an annotation, or None if it is not JSON."""
    text = meta.annotations(autoscaler).get(annotation)
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None


def _with_annotations(autoscaler: Tree, changes: dict[str, str | None]) -> Tree:
    present = meta.annotations(autoscaler)
    if not present and not any(changes.values()):
        return autoscaler
    return meta.with_annotations(autoscaler, changes)
