"""The limits of a recommendation: stabilization windows, the policies of `spec.behavior`, minReplicas and maxReplicas.

Functions take the history and return it with new entries. Names, reasons and messages are upstream's.
"""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree

_INT32: Final = 2**31
_SCALE_UP_LIMIT_FACTOR: Final = 2.0
_SCALE_UP_LIMIT_MINIMUM: Final = 4.0

_STABLE: Final = ("ReadyForNewScale", "recommended size matches current size")
_UP_STABILIZED: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_STABILIZED: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_IN_RANGE: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_UP_LIMIT: Final = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_DOWN_LIMIT: Final = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")

_UP_RULES: Final[ReadOnlyTree] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Percent", "value": 100, "periodSeconds": 15},
        {"type": "Pods", "value": 4, "periodSeconds": 15},
    ],
}
_DOWN_RULES: Final[ReadOnlyTree] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class TimedCount(NamedTuple):
    """A recommendation or a change of the number of replicas, with its time."""

    replicas: int
    timestamp: datetime


TimedCounts = tuple[TimedCount, ...]


class ScalingHistory(Struct, frozen=True):
    """The history of one autoscaler."""

    recommendations: TimedCounts = ()
    """The recommendations before limits were applied."""
    scale_up_events: TimedCounts = ()
    scale_down_events: TimedCounts = ()


class ScalingLimits(Struct, frozen=True, kw_only=True):
    """The present replicas, their range, and the default stabilization window."""

    minimum: int
    maximum: int
    current: int
    downscale_stabilization: timedelta
    now: datetime

    def time_before(self, seconds: float) -> datetime:
        return self.now - timedelta(seconds=seconds)


class LimitedReplicas(NamedTuple):
    """The replicas to scale to, and what limited them."""

    replicas: int
    able_condition: tuple[str, str]
    """The reason and message of AbleToScale."""
    is_limited: bool
    limited_condition: tuple[str, str]
    """The reason and message of ScalingLimited."""
    history: ScalingHistory


def limit(
    behavior: ReadOnlyTree | None, desired: int, limits: ScalingLimits, history: ScalingHistory
) -> LimitedReplicas:
    """Limit the replicas that the metrics propose."""
    if behavior is None:
        stabilized, recommendations = _stabilize_down(desired, limits, history.recommendations)
        able_condition = _STABLE if stabilized == desired else _DOWN_STABILIZED
        replicas, limited_condition = _within_default_rate(stabilized, limits)
    else:
        up, down = _rules(behavior, "scaleUp", _UP_RULES), _rules(behavior, "scaleDown", _DOWN_RULES)
        stabilized, recommendations = _stabilize(desired, limits, history.recommendations, up, down)
        stabilized_condition = _UP_STABILIZED if desired >= limits.current else _DOWN_STABILIZED
        able_condition = _STABLE if stabilized == desired else stabilized_condition
        replicas, limited_condition = _within_policies(stabilized, limits, history, up, down)
    return LimitedReplicas(
        replicas,
        able_condition,
        replicas != stabilized,
        limited_condition,
        replace(history, recommendations=recommendations),
    )


def with_initial_recommendation(history: ScalingHistory, replicas: int, now: datetime) -> ScalingHistory:
    """Add the current replicas as the first recommendation, so that nothing is scaled down at once."""
    if history.recommendations:
        return history
    return replace(history, recommendations=(TimedCount(replicas, now),))


def with_scaling(
    history: ScalingHistory, behavior: ReadOnlyTree | None, old: int, new: int, now: datetime
) -> ScalingHistory:
    """Add a change of the replicas to the history; the policies limit the changes in a period."""
    if behavior is None:
        return history
    if new > old:
        max_period = _longest_period(_rules(behavior, "scaleUp", _UP_RULES))
        return replace(
            history, scale_up_events=_with_change(history.scale_up_events, new - old, now, max_period)
        )
    max_period = _longest_period(_rules(behavior, "scaleDown", _DOWN_RULES))
    return replace(
        history, scale_down_events=_with_change(history.scale_down_events, old - new, now, max_period)
    )


def _with_change(changes: TimedCounts, change: int, now: datetime, max_period: int) -> TimedCounts:
    cutoff = now - timedelta(seconds=max_period)
    return _replace_expired(changes, lambda entry: entry.timestamp < cutoff, TimedCount(change, now))


def _replace_expired(
    counts: TimedCounts, is_old: Callable[[TimedCount], bool], new: TimedCount
) -> TimedCounts:
    """Return the entries with a new one, which replaces the last expired one."""
    old = [index for index, entry in enumerate(counts) if is_old(entry)]
    return (*counts[: old[-1]], new, *counts[old[-1] + 1 :]) if old else (*counts, new)


def _rules(behavior: ReadOnlyTree, direction: str, defaults: ReadOnlyTree) -> dict[str, Any]:
    specified = {
        name: value for name, value in (behavior.get(direction) or {}).items() if value not in (None, [])
    }
    return {**defaults, **specified}


# --- stabilization


def _stabilize_down(
    desired: int, limits: ScalingLimits, recommendations: TimedCounts
) -> tuple[int, TimedCounts]:
    cutoff = limits.now - limits.downscale_stabilization
    recent = [entry.replicas for entry in recommendations if entry.timestamp >= cutoff]
    recommendations = _replace_expired(
        recommendations, lambda entry: entry.timestamp < cutoff, TimedCount(desired, limits.now)
    )
    return max([desired, *recent]), recommendations


def _stabilize(
    desired: int, limits: ScalingLimits, recommendations: TimedCounts, up: ReadOnlyTree, down: ReadOnlyTree
) -> tuple[int, TimedCounts]:
    """Return the recommendation in the two windows that is closest to the current replicas."""
    window = down.get("stabilizationWindowSeconds", int(limits.downscale_stabilization.total_seconds()))
    up_cutoff, down_cutoff = limits.time_before(up["stabilizationWindowSeconds"]), limits.time_before(window)
    lowest = min([desired, *(entry.replicas for entry in recommendations if entry.timestamp > up_cutoff)])
    highest = max([desired, *(entry.replicas for entry in recommendations if entry.timestamp > down_cutoff)])
    cutoff = min(up_cutoff, down_cutoff)
    recommendations = _replace_expired(
        recommendations, lambda entry: entry.timestamp < cutoff, TimedCount(desired, limits.now)
    )
    return min(max(limits.current, lowest), highest), recommendations


# --- rates


def _within_default_rate(desired: int, limits: ScalingLimits) -> tuple[int, tuple[str, str]]:
    rate = int(max(_SCALE_UP_LIMIT_FACTOR * limits.current, _SCALE_UP_LIMIT_MINIMUM))
    maximum = min(limits.maximum, rate)
    if desired < limits.minimum:
        return limits.minimum, _TOO_FEW
    if desired > maximum:
        return maximum, _UP_LIMIT if limits.maximum > rate else _TOO_MANY
    return desired, _IN_RANGE


def _within_policies(
    desired: int, limits: ScalingLimits, history: ScalingHistory, up: ReadOnlyTree, down: ReadOnlyTree
) -> tuple[int, tuple[str, str]]:
    if desired > limits.current:
        rate = max(_up_limit(limits, history, up), limits.current)
        maximum = min(limits.maximum, rate)
        if desired > maximum:
            return maximum, _UP_LIMIT if limits.maximum > rate else _TOO_MANY
    elif desired < limits.current:
        rate = min(_down_limit(limits, history, down), limits.current)
        minimum = max(limits.minimum, rate)
        if desired < minimum:
            return minimum, _DOWN_LIMIT if limits.minimum < rate else _TOO_FEW
    return desired, _IN_RANGE


def _up_limit(limits: ScalingLimits, history: ScalingHistory, rules: ReadOnlyTree) -> int:
    """Return the maximum replicas that the policies allow now."""
    return _allowed_replicas(
        rules,
        limits,
        history,
        pods=lambda start, value: start + value,
        # Rounded up: a small target would never grow otherwise.
        percent=lambda start, value: math.ceil(float(start) * (1 + float(value) / 100)),
        select=min if rules["selectPolicy"] == "Min" else max,
    )


def _down_limit(limits: ScalingLimits, history: ScalingHistory, rules: ReadOnlyTree) -> int:
    """Return the minimum replicas that the policies allow now."""
    return _allowed_replicas(
        rules,
        limits,
        history,
        pods=lambda start, value: start - value,
        percent=lambda start, value: int(float(start) * (1 - float(value) / 100)),
        select=max if rules["selectPolicy"] == "Min" else min,
    )


def _allowed_replicas(
    rules: ReadOnlyTree,
    limits: ScalingLimits,
    history: ScalingHistory,
    *,
    pods: Callable[[int, int], int],
    percent: Callable[[int, int], int],
    select: Callable[[Sequence[int]], int],
) -> int:
    if rules["selectPolicy"] == "Disabled":
        return limits.current
    proposed = []
    for policy in rules["policies"]:
        cutoff = limits.time_before(policy["periodSeconds"])
        start = (
            limits.current
            - _replicas_changed(history.scale_up_events, cutoff)
            + _replicas_changed(history.scale_down_events, cutoff)
        )
        change = pods if policy["type"] == "Pods" else percent
        proposed.append(max(-_INT32, min(change(start, policy["value"]), _INT32 - 1)))
    return select(proposed)


def _replicas_changed(changes: TimedCounts, cutoff: datetime) -> int:
    return sum(change.replicas for change in changes if change.timestamp > cutoff)


def _longest_period(rules: ReadOnlyTree) -> int:
    return max(int(policy["periodSeconds"]) for policy in rules["policies"])
