"""Evaluation of comprehensions, the loops of macros. The cost limit is checked at each element."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from .attributes import FailedStep, Frame, Run, check_limit
from .values import CelError, from_map_key, type_name


class ComprehensionLoop(NamedTuple):
    """The range of a comprehension, its initial value, and the slots of its variables; `second` is 0 if there is one variable."""

    source: Run
    init: Run
    accumulator: int
    first: int
    second: int


class GrowingList(list[Any]):
    """A list that only the accumulator refers to, so that it is extended in place."""

    __slots__ = ()


class GrowingMap(dict[Any, Any]):
    """A map that only the accumulator refers to, so that entries are added in place."""

    __slots__ = ()


def _items(loop: ComprehensionLoop, source: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(source, list):
        if loop.second:
            return enumerate(source)
        return ((item, None) for item in source)
    if isinstance(source, dict):
        return ((from_map_key(key), value) for key, value in source.items())
    raise CelError(f"got '{type_name(source)}', expected iterable type")


def fold(loop: ComprehensionLoop, condition: Run, step: Run, result: Run) -> Run:
    """Return the evaluation of a general comprehension. If a step fails, the accumulator becomes a FailedStep."""
    accumulator, first, second = loop.accumulator, loop.first, loop.second

    def run(frame: Frame) -> Any:
        source = loop.source(frame)
        accumulator_value = loop.init(frame)
        if isinstance(accumulator_value, (list, dict)) and not accumulator_value:
            accumulator_value = GrowingList() if isinstance(accumulator_value, list) else GrowingMap()
        frame[accumulator] = accumulator_value
        for key, value in _items(loop, source):
            check_limit(frame)
            frame[first] = key
            if second:
                frame[second] = value
            if condition(frame) is not True:
                break
            try:
                frame[accumulator] = step(frame)
            except CelError as error:
                frame[accumulator] = FailedStep(error)
        result_value = result(frame)
        if type(result_value) is GrowingList:
            return list(result_value)
        return dict(result_value) if type(result_value) is GrowingMap else result_value

    return run


def all_of(loop: ComprehensionLoop, predicate: Run) -> Run:
    return _quantifier(loop, predicate, decisive=False, condition_cost=2)


def any_of(loop: ComprehensionLoop, predicate: Run) -> Run:
    return _quantifier(loop, predicate, decisive=True, condition_cost=3)


def _quantifier(loop: ComprehensionLoop, predicate: Run, *, decisive: bool, condition_cost: int) -> Run:
    """Return the evaluation of `all` or `exists`, which ends at the first decisive value; that value absorbs errors.

    The cost is that of the condition and the step of the macro's expansion.
    """
    first, second = loop.first, loop.second
    element_cost = condition_cost + 1

    def run(frame: Frame) -> bool:
        error: CelError | None = None
        is_decided = False
        for key, value in _items(loop, loop.source(frame)):
            if is_decided:
                frame[0] += condition_cost
                break
            frame[0] += element_cost
            check_limit(frame)
            frame[first] = key
            if second:
                frame[second] = value
            try:
                outcome = predicate(frame)
            except CelError as failure:
                error = error or failure
                continue
            if outcome is decisive:
                is_decided = True
            elif type(outcome) is not bool:
                error = error or CelError("no such overload")
        frame[0] += 1
        if is_decided:
            return decisive
        if error is not None:
            raise error
        return not decisive

    return run
