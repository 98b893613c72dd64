"""The decision of a HorizontalPodAutoscaler. It is pure, except for reading the metrics."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import quantity
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.config.settings import Controllers

from . import zero
from .behavior import ScalingHistory, ScalingLimits, limit
from .proposals import EMPTY_STATUS, FailedMetricError, Proposal
from .replicas import Tolerances
from .status import ACTIVE, LIMITED, AutoscalerStatus

ABOVE_MAXIMUM: Final = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM: Final = "Current number of replicas below Spec.MinReplicas"
DISABLED: Final = "scaling is disabled since the replica count of the target is zero"


class MetricsFailedError(Exception):
    """No replicas can be computed; `statuses` are those of the metrics."""

    def __init__(self, message: str, statuses: Sequence[ReadOnlyTree] = ()) -> None:
        super().__init__(message)
        self.statuses = statuses


class ScalingDecision(Struct, frozen=True, kw_only=True):
    desired: int
    reason: str = ""
    """The reason for the change of the replicas."""
    metrics: Sequence[ReadOnlyTree] = ()
    history: ScalingHistory
    problem: str = ""
    """The message about metrics that failed, although others decided; empty if none failed."""


def decide_by_range(
    autoscaler: ReadOnlyTree,
    current: int,
    history: ScalingHistory,
    status: AutoscalerStatus,
    gates: FeatureGates,
) -> ScalingDecision | None:
    """Return the decision without metrics; None if the metrics decide."""
    max_replicas = autoscaler["spec"]["maxReplicas"]
    if current == 0:
        if zero.leaves_zero(autoscaler, gates):
            return None
        status.record(ACTIVE, "False", "ScalingDisabled", DISABLED)
        zero.record_disabled(status, gates)
        return ScalingDecision(desired=0, history=history)
    if current > max_replicas:
        return ScalingDecision(desired=max_replicas, reason=ABOVE_MAXIMUM, history=history)
    if current < zero.minimum(autoscaler):
        return ScalingDecision(desired=zero.minimum(autoscaler), reason=BELOW_MINIMUM, history=history)
    return None


class Recommendation(NamedTuple):
    replicas: int
    metric: str
    statuses: Sequence[ReadOnlyTree]
    problem: str


async def recommend(
    specs: Iterable[ReadOnlyTree],
    current: int,
    propose: Callable[[ReadOnlyTree], Awaitable[Proposal | FailedMetricError]],
    status: AutoscalerStatus,
) -> Recommendation:
    """Return the maximum of all metrics' proposals. If a metric fails, nothing is scaled down."""
    results = [await propose(spec) for spec in specs]
    failures = [result for result in results if isinstance(result, FailedMetricError)]
    replicas, metric = 0, ""
    for result in results:
        if isinstance(result, Proposal) and (replicas == 0 or result.replicas > replicas):
            replicas, metric = result.replicas, result.metric
    statuses = [result.status if isinstance(result, Proposal) else EMPTY_STATUS for result in results]
    problem = ""
    if failures:
        failure_count = f"{len(failures)} invalid out of {len(results)}"
        problem = f"invalid metrics ({failure_count}), first error is: {failures[0]}"
    if len(failures) == len(results) or (failures and replicas < current):
        first = failures[0]
        message = f"the HPA was unable to compute the replica count: {first.problem}"
        status.record(ACTIVE, "False", first.reason, message)
        raise MetricsFailedError(problem, statuses)
    success_message = f"the HPA was able to successfully calculate a replica count from {metric}"
    status.record(ACTIVE, "True", "ValidMetricFound", success_message)
    return Recommendation(replicas, metric, statuses, problem)


def decide(
    autoscaler: ReadOnlyTree,
    recommendation: Recommendation,
    limits: ScalingLimits,
    history: ScalingHistory,
    status: AutoscalerStatus,
) -> ScalingDecision:
    desired = max(recommendation.replicas, 0)
    reason = ""
    if desired > limits.current:
        reason = f"{recommendation.metric} above target"
    elif desired < limits.current:
        reason = "All metrics below target"
    limited = limit(autoscaler["spec"].get("behavior"), desired, limits, history)
    replicas = limited.replicas
    if limits.current == 0 and replicas < limits.minimum:
        # The minimum was raised after the autoscaler had scaled to zero.
        replicas, reason = limits.minimum, reason or BELOW_MINIMUM
    status.set_able(*limited.able_condition)
    status.record(LIMITED, "True" if limited.is_limited else "False", *limited.limited_condition)
    return ScalingDecision(
        desired=replicas,
        reason=reason,
        metrics=recommendation.statuses,
        history=limited.history,
        problem=recommendation.problem,
    )


def limits_of(autoscaler: ReadOnlyTree, current: int, options: Controllers, now: datetime) -> ScalingLimits:
    return ScalingLimits(
        minimum=zero.minimum(autoscaler),
        maximum=autoscaler["spec"]["maxReplicas"],
        current=current,
        downscale_stabilization=timedelta(seconds=options.horizontal_pod_autoscaler_downscale_stabilization),
        now=now,
    )


def tolerances(autoscaler: ReadOnlyTree, default: float) -> Tolerances:
    behavior = autoscaler["spec"].get("behavior") or {}

    def of(direction: str) -> float:
        value = (behavior.get(direction) or {}).get("tolerance")
        return default if value is None else float(quantity.from_json(value).number)

    return Tolerances(of("scaleDown"), of("scaleUp"))
