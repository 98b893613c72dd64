"""The replicas that one metric of a HorizontalPodAutoscaler proposes, with the metric's status.

`metrics_api` reads the samples; the other functions are pure. Messages are nested like upstream's errors.
"""

from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple

from mockube.apimachinery import labels
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.labels import SelectorError, selector_text
from mockube.apimachinery.quantity import MILLI, Format, Quantity
from mockube.apimachinery.tree import ReadOnlyTree

from .metrics_api import MetricsApi, MetricsError, milli_value
from .replicas import (
    CalculationError,
    ScalingContext,
    Usage,
    replicas_for_average,
    replicas_for_utilization,
    replicas_for_value,
    replicas_for_value_per_pod,
    total,
)

_NAMES_OBJECT_FIRST: Final = "1.37"
"""The first minor release whose messages name the object before the error."""
EMPTY_STATUS: Final[ReadOnlyTree] = {"type": ""}
"""The status of a metric that could not be read."""


class Proposal(NamedTuple):
    """The replicas that a metric proposes."""

    replicas: int
    metric: str
    """The metric's name in messages."""
    status: ReadOnlyTree


class FailedMetricError(Exception):
    """A metric cannot be used. `reason` and `problem` are for the condition and the Event; the text names the metric."""

    def __init__(self, reason: str, problem: str, message: str, *, is_spec: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.problem = problem
        self.is_spec = is_spec


class TargetMetrics(NamedTuple):
    """The metrics API, and the pods of one autoscaler's target."""

    api: MetricsApi
    namespace: str
    selector: str
    gates: FeatureGates


async def propose(spec: ReadOnlyTree, source: TargetMetrics, context: ScalingContext) -> Proposal:
    """Return the proposal of a metric; raise `FailedMetricError`."""
    function = _TYPES.get(spec.get("type") or "")
    if function is None:
        problem = f'unknown metric source type "{spec.get("type") or ""}"'
        raise FailedMetricError("InvalidMetricSourceType", problem, problem, is_spec=True)
    return await function(spec, source, context)


# --- resource metrics


async def _of_resource(spec: ReadOnlyTree, source: TargetMetrics, context: ScalingContext) -> Proposal:
    metric = spec["resource"]
    try:
        replicas, current, name = await _resource(metric, source, context)
    except (MetricsError, CalculationError) as error:
        message = f"failed to get {metric['name']} resource metric value: {error}"
        raise FailedMetricError("FailedGetResourceMetric", str(error), message) from error
    status = {"type": "Resource", "resource": {"name": metric["name"], "current": current}}
    return Proposal(replicas, name, status)


async def _of_container(spec: ReadOnlyTree, source: TargetMetrics, context: ScalingContext) -> Proposal:
    metric = spec["containerResource"]
    container = metric["container"]
    try:
        replicas, current, name = await _resource(metric, source, context, container)
    except (MetricsError, CalculationError) as error:
        message = f"failed to get {container} container metric value: {error}"
        raise FailedMetricError("FailedGetContainerResourceMetric", str(error), message) from error
    described = {"name": metric["name"], "container": container, "current": current}
    return Proposal(replicas, name, {"type": "ContainerResource", "containerResource": described})


async def _resource(
    metric: ReadOnlyTree, source: TargetMetrics, context: ScalingContext, container: str = ""
) -> tuple[int, ReadOnlyTree, str]:
    resource, target = metric["name"], metric["target"]
    average, percentage = target.get("averageValue"), target.get("averageUtilization")
    if average is None and percentage is None:
        raise CalculationError(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    measure = "usage" if average is not None else "utilization"
    try:
        try:
            samples = await source.api.of_resource(source.namespace, source.selector, resource, container)
        except MetricsError as error:
            raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from error
        if average is not None:
            usage = replicas_for_average(context, samples, resource, target=milli_value(average))
            return usage.replicas, {"averageValue": _amount(usage.value, resource)}, f"{resource} resource"
        utilization = replicas_for_utilization(
            context, samples, resource, container=container, target=percentage
        )
    except (MetricsError, CalculationError) as error:
        raise MetricsError(f"failed to get {resource} {measure}: {error}") from error
    current = {
        "averageUtilization": utilization.percentage,
        "averageValue": _amount(utilization.average, resource),
    }
    of = f"{resource} container resource" if container else f"{resource} resource"
    return utilization.replicas, current, f"{of} utilization (percentage of request)"


# --- metrics of pods


async def _of_pods(spec: ReadOnlyTree, source: TargetMetrics, context: ScalingContext) -> Proposal:
    metric, target = spec["pods"]["metric"], spec["pods"]["target"]
    name = metric["name"]
    try:
        selector = _metric_selector(metric)
        samples = await _fetch(
            source.api.of_pods(source.namespace, source.selector, name, selector),
            f"unable to get metric {name}",
        )
        usage = replicas_for_average(context, samples, "", target=milli_value(target["averageValue"]))
    except (MetricsError, CalculationError, SelectorError) as error:
        message = f"failed to get pods metric value: {error}"
        raise FailedMetricError("FailedGetPodsMetric", str(error), message) from error
    status = {"metric": metric, "current": {"averageValue": _amount(usage.value)}}
    return Proposal(usage.replicas, f"pods metric {name}", {"type": "Pods", "pods": status})


# --- metrics of another object


async def _of_object(spec: ReadOnlyTree, source: TargetMetrics, context: ScalingContext) -> Proposal:
    source_spec = spec["object"]
    metric, described, field = (
        source_spec["metric"],
        source_spec["describedObject"],
        _object_field(source_spec["target"]),
    )
    name, kind = metric["name"], described["kind"]
    try:
        usage = await _object_usage(source_spec, field, source, context)
    except (MetricsError, CalculationError, SelectorError) as error:
        inner = f"failed to get {name} object metric: {error}" if field == "averageValue" else str(error)
        message = f"failed to get object metric value: {inner}"
        raise FailedMetricError("FailedGetObjectMetric", str(error), message) from error
    current = {field: _amount(usage.value)}
    status = {"describedObject": described, "metric": metric, "current": current}
    text = f"{kind} metric {name}" if field == "value" else _external_name(metric)
    return Proposal(usage.replicas, text, {"type": "Object", "object": status})


async def _object_usage(
    source_spec: ReadOnlyTree, field: str, source: TargetMetrics, context: ScalingContext
) -> Usage:
    metric, described = source_spec["metric"], source_spec["describedObject"]
    if not field:
        raise CalculationError(
            "invalid object metric source: neither a value target nor an average value target was set"
        )
    try:
        value = await source.api.of_object(
            source.namespace, described, metric["name"], _metric_selector(metric)
        )
    except MetricsError as error:
        raise MetricsError(_object_problem(metric["name"], described, source, error)) from error
    return _usage(context, value, field, milli_value(source_spec["target"][field]))


def _object_problem(metric: str, described: ReadOnlyTree, source: TargetMetrics, error: MetricsError) -> str:
    kind, name = described["kind"], described["name"]
    if source.gates.is_before(_NAMES_OBJECT_FIRST):
        # This is upstream's message, including the odd separators.
        return f"unable to get metric {metric}: {kind} on {source.namespace} {name}/{error}"
    return f"unable to get metric {metric} on {kind} {source.namespace}/{name}: {error}"


def _object_field(target: ReadOnlyTree) -> str:
    if target.get("type") == "Value" and target.get("value") is not None:
        return "value"
    if target.get("type") == "AverageValue" and target.get("averageValue") is not None:
        return "averageValue"
    return ""


def _usage(context: ScalingContext, value: int, field: str, target: int) -> Usage:
    if field == "averageValue":
        return replicas_for_value_per_pod(context, value, target=target)
    return Usage(replicas_for_value(context, value, target=target), value)


# --- external metrics


async def _of_external(spec: ReadOnlyTree, source: TargetMetrics, context: ScalingContext) -> Proposal:
    metric, target = spec["external"]["metric"], spec["external"]["target"]
    field = next((name for name in ("averageValue", "value") if target.get(name) is not None), "")
    try:
        usage = await _external_usage(spec["external"], field, source, context)
    except (MetricsError, CalculationError, SelectorError) as error:
        inner = _EXTERNAL_PROBLEMS[field].format(name=metric["name"], error=error)
        message = f"failed to get {metric['name']} external metric value: {inner}"
        raise FailedMetricError("FailedGetExternalMetric", str(error), message) from error
    status = {"metric": metric, "current": {field: _amount(usage.value)}}
    return Proposal(usage.replicas, _external_name(metric), {"type": "External", "external": status})


async def _external_usage(
    source_spec: ReadOnlyTree, field: str, source: TargetMetrics, context: ScalingContext
) -> Usage:
    metric = source_spec["metric"]
    if not field:
        raise CalculationError(
            "invalid external metric source: neither a value target nor an average value target was set"
        )
    name = f"{source.namespace}/{metric['name']}/{selector_text(metric.get('selector'))}"
    request = source.api.of_external(source.namespace, metric["name"], _metric_selector(metric))
    values = await _fetch(request, f"unable to get external metric {name}")
    return _usage(context, total(values), field, milli_value(source_spec["target"][field]))


_EXTERNAL_PROBLEMS: Final[Mapping[str, str]] = {
    "": "{error}",
    "averageValue": "failed to get {name} external metric: {error}",
    "value": "failed to get external metric {name}: {error}",
}


def _external_name(metric: ReadOnlyTree) -> str:
    return f"external metric {metric['name']}({selector_text(metric.get('selector'))})"


# --- common


_TYPES: Final[Mapping[str, Callable[[ReadOnlyTree, TargetMetrics, ScalingContext], Awaitable[Proposal]]]] = {
    "Resource": _of_resource,
    "ContainerResource": _of_container,
    "Pods": _of_pods,
    "Object": _of_object,
    "External": _of_external,
}


async def _fetch(request: Awaitable[Any], problem: str) -> Any:
    try:
        return await request
    except MetricsError as error:
        raise MetricsError(f"{problem}: {error}") from error


def _metric_selector(metric: ReadOnlyTree) -> str:
    return str(labels.from_label_selector(metric.get("selector")))


def _amount(value: int, resource: str = "") -> str:
    form = Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI
    return str(Quantity(Decimal(value).scaleb(MILLI), form))
