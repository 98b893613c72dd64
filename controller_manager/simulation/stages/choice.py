"""Which of the stages an object is at comes next, and after which delay. Chance is injected.

Pure but for the chance that it draws.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from apimachinery.chance import Chance, fraction
from apimachinery.durations import DurationError, parse_duration
from apimachinery.timestamps import TimestampError, parse_time
from controller_manager.runtime.resource import Tree
from controller_manager.simulation.stages.document import Amount, Stage


def choose(stages: Sequence[Stage], obj: Tree, chance: Chance) -> Stage | None:
    """One of them, each as often as its weight says; all the same where none has a weight.

    A stage whose weight the object tells wrongly is left out, unless that is true of all.
    """
    weights = [_weight(stage, obj) for stage in stages]
    known = [(stage, weight) for stage, weight in zip(stages, weights, strict=True) if weight is not None]
    heavy = [(stage, weight) for stage, weight in known if weight > 0]
    drawn = heavy or [(stage, 1) for stage, _ in known] or [(stage, 1) for stage in stages]
    if len(drawn) <= 1:
        return drawn[0][0] if drawn else None
    mark = fraction(chance) * sum(weight for _, weight in drawn)
    for stage, weight in drawn:
        mark -= weight
        if mark < 0:
            return stage
    return drawn[-1][0]


def delay_of(stage: Stage, obj: Tree, now: datetime, chance: Chance) -> timedelta:
    """The delay, up to the jitter where that is more; a jitter that is less is itself the delay."""
    least = _span(stage.delay, obj, now)
    most = _span(stage.jitter, obj, now)
    if least is None or (most is None and stage.jitter.value is None):
        return max(least or timedelta(0), timedelta(0))
    if most is None or most == least:
        return max(least, timedelta(0))
    drawn = most if most < least else least + (most - least) * fraction(chance)
    return max(drawn, timedelta(0))


def _weight(stage: Stage, obj: Tree) -> int | None:
    asked = _asked(stage.weight, obj)
    if asked is None:
        return int(stage.weight.value or 0)
    text = str(asked)
    return int(text) if text.isdecimal() else None


def _span(amount: Amount, obj: Tree, now: datetime) -> timedelta | None:
    """Milliseconds of the document, or a span or a moment that the object names; None where there is neither."""
    asked = _asked(amount, obj)
    if asked is None:
        return None if amount.value is None else timedelta(milliseconds=amount.value)
    try:
        return parse_time(str(asked)) - now
    except TimestampError:
        pass
    try:
        return timedelta(microseconds=parse_duration(str(asked)) / 1000)
    except DurationError:
        return None


def _asked(amount: Amount, obj: Tree) -> object | None:
    results = amount.query(obj) if amount.query else None
    return results[0] if results else None
