"""The limits of a recommendation: stabilization windows, the policies of `spec.behavior`, and the range of the
autoscaler.

Pure: functions take the history and return it with the new entries. Names, reasons and messages are upstream's.
"""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree

_INT32: Final = 2**31
UP_FACTOR: Final = 2.0
UP_MINIMUM: Final = 4.0

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
    """A recommendation, or by how much the scale was changed, and when."""

    replicas: int
    at: datetime


TimedCounts = tuple[TimedCount, ...]


class History(Struct, frozen=True):
    """The history of one autoscaler."""

    recommendations: TimedCounts = ()
    """As they were before anything limited them."""
    ups: TimedCounts = ()
    downs: TimedCounts = ()


class Limits(Struct, frozen=True, kw_only=True):
    minimum: int
    maximum: int
    current: int
    downscale_stabilization: timedelta
    now: datetime

    def time_before(self, seconds: float) -> datetime:
        return self.now - timedelta(seconds=seconds)


class LimitedReplicas(NamedTuple):
    replicas: int
    able_condition: tuple[str, str]
    """The reason and message of AbleToScale."""
    is_limited: bool
    limiting: tuple[str, str]
    """The reason and message of ScalingLimited."""
    history: History


def limit(behavior: ReadOnlyTree | None, desired: int, limits: Limits, history: History) -> LimitedReplicas:
    """The replicas to scale to, from those that the metrics propose."""
    if behavior is None:
        stable, added = _stabilize_down(desired, limits, history.recommendations)
        able_condition = _STABLE if stable == desired else _DOWN_STABILIZED
        replicas, limiting = _within_default_rate(stable, limits)
    else:
        up, down = _rules(behavior, "scaleUp", _UP_RULES), _rules(behavior, "scaleDown", _DOWN_RULES)
        stable, added = _stabilize(desired, limits, history.recommendations, up, down)
        moved = _UP_STABILIZED if desired >= limits.current else _DOWN_STABILIZED
        able_condition = _STABLE if stable == desired else moved
        replicas, limiting = _within_policies(stable, limits, history, up, down)
    return LimitedReplicas(
        replicas, able_condition, replicas != stable, limiting, replace(history, recommendations=added)
    )


def with_initial_recommendation(history: History, replicas: int, now: datetime) -> History:
    """The scale that is found at first is a recommendation, so that nothing is scaled down at once."""
    if history.recommendations:
        return history
    return replace(history, recommendations=(TimedCount(replicas, now),))


def with_scaling(
    history: History, behavior: ReadOnlyTree | None, old: int, new: int, now: datetime
) -> History:
    """Add a change of the scale, which the policies count."""
    if behavior is None:
        return history
    if new > old:
        max_period = _longest_period(_rules(behavior, "scaleUp", _UP_RULES))
        return replace(history, ups=_with_change(history.ups, new - old, now, max_period))
    max_period = _longest_period(_rules(behavior, "scaleDown", _DOWN_RULES))
    return replace(history, downs=_with_change(history.downs, old - new, now, max_period))


def _with_change(changes: TimedCounts, change: int, now: datetime, max_period: int) -> TimedCounts:
    cutoff = now - timedelta(seconds=max_period)
    return _replace_expired(changes, lambda entry: entry.at < cutoff, TimedCount(change, now))


def _replace_expired(
    counts: TimedCounts, is_old: Callable[[TimedCount], bool], new: TimedCount
) -> TimedCounts:
    """With a new entry, in the place of the last expired one."""
    old = [index for index, entry in enumerate(counts) if is_old(entry)]
    return (*counts[: old[-1]], new, *counts[old[-1] + 1 :]) if old else (*counts, new)


def _rules(behavior: ReadOnlyTree, direction: str, defaults: ReadOnlyTree) -> dict[str, Any]:
    specified = {
        name: value for name, value in (behavior.get(direction) or {}).items() if value not in (None, [])
    }
    return {**defaults, **specified}


# --- stabilization


def _stabilize_down(desired: int, limits: Limits, recommendations: TimedCounts) -> tuple[int, TimedCounts]:
    cutoff = limits.now - limits.downscale_stabilization
    recent = [entry.replicas for entry in recommendations if entry.at >= cutoff]
    added = _replace_expired(
        recommendations, lambda entry: entry.at < cutoff, TimedCount(desired, limits.now)
    )
    return max([desired, *recent]), added


def _stabilize(
    desired: int, limits: Limits, recommendations: TimedCounts, up: ReadOnlyTree, down: ReadOnlyTree
) -> tuple[int, TimedCounts]:
    """The recommendation nearest to the current scale among those of both windows."""
    window = down.get("stabilizationWindowSeconds", int(limits.downscale_stabilization.total_seconds()))
    up_cutoff, down_cutoff = limits.time_before(up["stabilizationWindowSeconds"]), limits.time_before(window)
    lowest = min([desired, *(entry.replicas for entry in recommendations if entry.at > up_cutoff)])
    highest = max([desired, *(entry.replicas for entry in recommendations if entry.at > down_cutoff)])
    cutoff = min(up_cutoff, down_cutoff)
    added = _replace_expired(
        recommendations, lambda entry: entry.at < cutoff, TimedCount(desired, limits.now)
    )
    return min(max(limits.current, lowest), highest), added


# --- rates


def _within_default_rate(desired: int, limits: Limits) -> tuple[int, tuple[str, str]]:
    rate = int(max(UP_FACTOR * limits.current, UP_MINIMUM))
    maximum = min(limits.maximum, rate)
    if desired < limits.minimum:
        return limits.minimum, _TOO_FEW
    if desired > maximum:
        return maximum, _UP_LIMIT if limits.maximum > rate else _TOO_MANY
    return desired, _IN_RANGE


def _within_policies(
    desired: int, limits: Limits, history: History, up: ReadOnlyTree, down: ReadOnlyTree
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


def _up_limit(limits: Limits, history: History, rules: ReadOnlyTree) -> int:
    """The most replicas that the policies allow now."""
    return _allowed_replicas(
        rules,
        limits,
        history,
        pods=lambda start, value: start + value,
        # Rounded up: a small target would never grow otherwise.
        percent=lambda start, value: math.ceil(float(start) * (1 + float(value) / 100)),
        select=min if rules["selectPolicy"] == "Min" else max,
    )


def _down_limit(limits: Limits, history: History, rules: ReadOnlyTree) -> int:
    """The fewest replicas that the policies allow now."""
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
    limits: Limits,
    history: History,
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
            limits.current - _replicas_changed(history.ups, cutoff) + _replicas_changed(history.downs, cutoff)
        )
        change = pods if policy["type"] == "Pods" else percent
        proposed.append(max(-_INT32, min(change(start, policy["value"]), _INT32 - 1)))
    return select(proposed)


def _replicas_changed(changes: TimedCounts, cutoff: datetime) -> int:
    return sum(change.replicas for change in changes if change.at > cutoff)


def _longest_period(rules: ReadOnlyTree) -> int:
    return max(int(policy["periodSeconds"]) for policy in rules["policies"])
