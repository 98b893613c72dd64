"""Match stages with an object, choose the next stage, and compute its delay."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.randomness import Random, fraction
from mockube.apimachinery.timestamps import TimestampError, parse_time
from mockube.apimachinery.tree import ReadOnlyTree

from .document import SelectorRequirement, Stage, ValueFrom


def matching_stages(stages: Iterable[Stage], obj: ReadOnlyTree) -> list[Stage]:
    return [stage for stage in stages if matches_stage(stage, obj)]


def matches_stage(stage: Stage, obj: ReadOnlyTree) -> bool:
    return (
        _contains_all(stage.labels, meta.labels(obj))
        and _contains_all(stage.annotations, meta.annotations(obj))
        and all(_matches(requirement, obj) for requirement in stage.requirements)
    )


def _contains_all(selector: Mapping[str, str], present: Mapping[str, str]) -> bool:
    return all(present.get(name) == value for name, value in selector.items())


def _matches(requirement: SelectorRequirement, obj: ReadOnlyTree) -> bool:
    results = requirement.query(obj) or ()
    match requirement.operator:
        case "Exists":
            return _has_value(results)
        case "DoesNotExist":
            return not _has_value(results)
        case "In":
            return _is_among(results, requirement.values)
        case "NotIn":
            return not _is_among(results, requirement.values)


def _has_value(results: Sequence[Any]) -> bool:
    return any(result is not None for result in results)


def _is_among(results: Sequence[Any], values: frozenset[str]) -> bool:
    return any(_value_text(result) in values for result in results)


def _value_text(value: Any) -> str | None:
    """Return a string, integer or boolean as a selector in a document writes it; None for another value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) else None


_MAX_DELAY: Final = 100 * 365 * 24 * 3600 * 1000
"""The maximum delay in milliseconds: a hundred years. A longer delay may exceed the range of `datetime`."""
_MAX_WEIGHT_LENGTH: Final = 18
"""The maximum number of digits of a weight in an object."""


def choose_stage(stages: Sequence[Stage], obj: ReadOnlyTree, random: Random) -> Stage | None:
    """Choose a stage at random by weight, or evenly if none has a weight.

    A stage whose weight in the object is invalid is left out, unless all weights are invalid.
    """
    weights = [_weight(stage, obj) for stage in stages]
    weighted = [(stage, weight) for stage, weight in zip(stages, weights, strict=True) if weight is not None]
    positive = [(stage, weight) for stage, weight in weighted if weight > 0]
    candidates = positive or [(stage, 1) for stage, _ in weighted] or [(stage, 1) for stage in stages]
    if len(candidates) <= 1:
        return candidates[0][0] if candidates else None
    point = fraction(random) * sum(weight for _, weight in candidates)
    for stage, weight in candidates:
        point -= weight
        if point < 0:
            return stage
    return candidates[-1][0]


def delay_of(stage: Stage, obj: ReadOnlyTree, now: datetime, random: Random) -> timedelta:
    """Return a random delay between the stage's delay and its jitter; a jitter below the delay is itself the delay."""
    minimum = _span(stage.delay, obj, now)
    maximum = _span(stage.jitter, obj, now)
    if minimum is None or (maximum is None and stage.jitter.value is None):
        return max(minimum or timedelta(0), timedelta(0))
    if maximum is None or maximum == minimum:
        return max(minimum, timedelta(0))
    candidates = maximum if maximum < minimum else minimum + (maximum - minimum) * fraction(random)
    return max(candidates, timedelta(0))


def _weight(stage: Stage, obj: ReadOnlyTree) -> int | None:
    value = _query_result(stage.weight, obj)
    if value is None:
        return int(stage.weight.value or 0)
    text = str(value)
    return int(text) if text.isdecimal() and len(text) <= _MAX_WEIGHT_LENGTH else None


def _span(amount: ValueFrom, obj: ReadOnlyTree, now: datetime) -> timedelta | None:
    """Return the delay by the object's duration or time, or else by the document's milliseconds; None without either."""
    value = _query_result(amount, obj)
    if value is None:
        return None if amount.value is None else timedelta(milliseconds=min(amount.value, _MAX_DELAY))
    try:
        return parse_time(str(value)) - now
    except TimestampError:
        pass
    try:
        return timedelta(microseconds=parse_duration(str(value)) / 1000)
    except DurationError:
        return None


def _query_result(amount: ValueFrom, obj: ReadOnlyTree) -> object | None:
    results = amount.query(obj) if amount.query else None
    return results[0] if results else None
