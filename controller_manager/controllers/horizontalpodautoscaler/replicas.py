"""The replicas that a metric needs: the arithmetic of kube-controller-manager's replica calculator.

Amounts are integers in thousandths, as in upstream, and divisions truncate as in Go.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import conditions
from mockube.apimachinery.pods import is_pod_level
from mockube.apimachinery.quantity import MILLI
from mockube.apimachinery.quota.amounts import read
from mockube.apimachinery.quota.pod_amounts import pod_requests
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import FAILED, PENDING, RUNNING, PodView

CPU: Final = "cpu"
MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1

NO_PODS: Final = "no pods returned by selector while calculating replica count"
NO_METRICS: Final = "did not receive metrics for targeted pods (pods might be unready)"


class CalculationError(Exception):
    """The replicas cannot be calculated; the message is upstream's."""


class PodMetric(NamedTuple):
    """The usage of one pod in thousandths, in the window that ended at the timestamp."""

    value: int
    timestamp: datetime
    window: timedelta


Samples = Mapping[str, PodMetric]
"""The samples by the names of pods."""


class Tolerances(NamedTuple):
    down: float
    up: float

    def include(self, ratio: float) -> bool:
        return (1.0 - self.down) <= ratio <= (1.0 + self.up)


class ScalingContext(Struct, frozen=True, kw_only=True):
    """The input of the calculation that is the same for all metrics of one autoscaler."""

    spec_replicas: int
    status_replicas: int
    pods: Sequence[PodView]
    """The pods that the target's selector matches."""
    tolerances: Tolerances
    cpu_initialization_period: timedelta
    initial_readiness_delay: timedelta
    now: datetime


class Utilization(NamedTuple):
    replicas: int
    percentage: int
    average: int


class Usage(NamedTuple):
    replicas: int
    value: int
    """The average of the pods or the sum, depending on the type of the target."""


# --- metrics of each pod


def replicas_for_utilization(
    context: ScalingContext, samples: Samples, resource: str, *, container: str, target: int
) -> Utilization:
    """Return the replicas for a target that is a percentage of the pods' requests."""
    values, groups = _measure(context, samples, resource)
    requests = {pod.key.name: _request(pod.object, container, resource) for pod in context.pods}
    percentage, average = _utilization(values, requests)
    fallback = max(100, target)

    def ratio(values: Mapping[str, int]) -> float:
        return _utilization(values, requests)[0] / target

    replicas = _replicas(context, values, groups, ratio, lambda pod: requests[pod] * fallback // 100)
    return Utilization(replicas, percentage, average)


def replicas_for_average(context: ScalingContext, samples: Samples, resource: str, *, target: int) -> Usage:
    """Return the replicas for a target that is an average per pod; `resource` is empty for a custom metric."""
    values, groups = _measure(context, samples, resource)

    def ratio(values: Mapping[str, int]) -> float:
        return _ratio(_average(values), target)

    replicas = _replicas(context, values, groups, ratio, lambda _: target)
    return Usage(replicas, _average(values))


class PodGroups(Struct, frozen=True):
    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    """The pods without a sample."""
    ignored: frozenset[str]


def group_pods(context: ScalingContext, samples: Samples, resource: str) -> PodGroups:
    unready, missing, ignored = set(), set(), set()
    ready = 0
    for pod in context.pods:
        name = pod.key.name
        if pod.deleting or pod.phase == FAILED:
            ignored.add(name)
        elif pod.phase == PENDING:
            unready.add(name)
        elif name not in samples:
            missing.add(name)
        elif resource == CPU and _is_unready(pod.object, samples[name], context):
            unready.add(name)
        else:
            ready += 1
    return PodGroups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_unready(pod: ReadOnlyTree, sample: PodMetric, context: ScalingContext) -> bool:
    """Return whether the CPU sample is ignored because the pod is starting."""
    condition, started = conditions.get(pod, "Ready"), (pod.get("status") or {}).get("startTime")
    if condition is None or not started:
        return True
    start, is_false = parse_time(started), condition.get("status") == "False"
    changed = parse_time(condition.get("lastTransitionTime") or "0001-01-01T00:00:00Z")
    if start + context.cpu_initialization_period > context.now:
        return is_false or sample.timestamp < changed + sample.window
    return is_false and start + context.initial_readiness_delay > changed


def _measure(context: ScalingContext, samples: Samples, resource: str) -> tuple[dict[str, int], PodGroups]:
    if not context.pods:
        raise CalculationError(NO_PODS)
    groups = group_pods(context, samples, resource)
    excluded = groups.ignored | groups.unready
    values = {name: sample.value for name, sample in samples.items() if name not in excluded}
    if not values:
        raise CalculationError(NO_METRICS)
    return values, groups


def _replicas(
    context: ScalingContext,
    values: Mapping[str, int],
    groups: PodGroups,
    ratio_of: Callable[[Mapping[str, int]], float],
    fallback: Callable[[str], int],
) -> int:
    """Return the replicas. Missing values of pods are assumed to be those that change the replicas least."""
    current, tolerances, ratio = context.spec_replicas, context.tolerances, ratio_of(values)
    grows_with_unready = bool(groups.unready) and ratio > 1.0
    if not grows_with_unready and not groups.missing:
        return current if tolerances.include(ratio) else _ceil(ratio * groups.ready)
    assumed_values = dict(values)
    if ratio < 1.0:
        assumed_values |= {name: fallback(name) for name in groups.missing}
    elif ratio > 1.0:
        assumed_values |= dict.fromkeys(groups.missing, 0)
    if grows_with_unready:
        assumed_values |= dict.fromkeys(groups.unready, 0)
    new = ratio_of(assumed_values)
    if tolerances.include(new) or (ratio < 1.0 < new) or (ratio > 1.0 > new):
        return current
    replicas = _ceil(new * len(assumed_values))
    reverses_direction = (new < 1.0 and replicas > current) or (new > 1.0 and replicas < current)
    return current if reverses_direction else replicas


def _utilization(values: Mapping[str, int], requests: Mapping[str, int]) -> tuple[int, int]:
    """Return the usage as a percentage of the requests, and the average usage."""
    common_names = [name for name in values if name in requests]
    used, requested = sum(values[name] for name in common_names), sum(requests[name] for name in common_names)
    if requested == 0:
        raise CalculationError("no metrics returned matched known pods")
    return _divide(used * 100, requested), _divide(used, len(common_names))


def _average(values: Mapping[str, int]) -> int:
    return _divide(sum(values.values()), len(values))


# --- requests of a pod


def _request(pod: ReadOnlyTree, container: str, resource: str) -> int:
    level = ((pod.get("spec") or {}).get("resources") or {}).get("requests") or {}
    if container or not any(is_pod_level(name) for name in level):
        return _request_of_containers(pod, container, resource)
    requests = pod_requests({"spec": pod["spec"]})
    if resource not in requests:
        raise CalculationError(f"missing pod-level request for {resource} in Pod {pod['metadata']['name']}")
    return requests[resource].scaled_value(MILLI)


def _request_of_containers(pod: ReadOnlyTree, container: str, resource: str) -> int:
    """Return the request of one container, or of all containers and sidecars."""
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    sidecars = [entry for entry in spec.get("initContainers") or () if entry.get("restartPolicy") == "Always"]
    containers = [*(spec.get("containers") or ()), *sidecars]
    selected = [entry for entry in containers if container in ("", entry["name"])]
    if container and not selected:
        raise CalculationError(f"container {container} not found in Pod {name}")
    total = 0
    for entry in selected:
        requests = read((entry.get("resources") or {}).get("requests"))
        if resource not in requests:
            raise CalculationError(
                f"missing request for {resource} in container {entry['name']} of Pod {name}"
            )
        total += requests[resource].scaled_value(MILLI)
    return total


# --- metrics of objects, and external metrics


def replicas_for_value(context: ScalingContext, usage: int, *, target: int) -> int:
    """Return the replicas for a target that is a value of all pods together."""
    ratio, current = _ratio(usage, target), context.spec_replicas
    if current == 0:
        return _ceil(ratio)
    if context.tolerances.include(ratio):
        return current
    if not context.pods:
        raise CalculationError(f"unable to calculate ready pods: {NO_PODS}")
    return _ceil(ratio * sum(pod.phase == RUNNING and pod.is_ready for pod in context.pods))


def replicas_for_value_per_pod(context: ScalingContext, usage: int, *, target: int) -> Usage:
    """Return the replicas for a target that is an average value per replica."""
    replicas = context.status_replicas
    if not context.tolerances.include(_ratio(usage, target * replicas)):
        replicas = _ceil(_ratio(usage, target))
    if usage >= MAX_INT64:
        return Usage(replicas, MAX_INT64)
    return Usage(replicas, _int64(_ratio(usage, context.status_replicas)))


def total(values: Sequence[int]) -> int:
    """Return the sum, limited to 64 bits."""
    return min(sum(values), MAX_INT64)


# --- Go's numbers


def _ratio(amount: int, target: int) -> float:
    if target:
        return float(amount) / float(target)
    return math.copysign(math.inf, amount) if amount else math.nan


def _divide(amount: int, divisor: int) -> int:
    quotient = abs(amount) // abs(divisor)
    return quotient if (amount < 0) == (divisor < 0) else -quotient


def _ceil(number: float) -> int:
    """Round up to an integer, limited to 32 bits; 0 for NaN."""
    if math.isnan(number):
        return 0
    return math.ceil(max(-MAX_INT32, min(number, MAX_INT32)))


def _int64(number: float) -> int:
    """Round up to an integer. Other values than 64-bit integers become the lowest one, as on upstream's processors."""
    if math.isnan(number) or abs(number) > MAX_INT64:
        return -MAX_INT64 - 1
    return math.ceil(number)
