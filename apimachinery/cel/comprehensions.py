"""Loops over lists and maps, as macros make them. The cost is checked at each element."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from mockube.apimachinery.cel.attributes import FailedStep, Frame, Run, check_limit
from mockube.apimachinery.cel.values import CelError, from_map_key, type_name


class Loop(NamedTuple):
    """What a comprehension runs over, and the slots of its variables; the second is 0 if there is only one."""

    source: Run
    init: Run
    accumulator: int
    first: int
    second: int


class GrowingList(list[Any]):
    """An accumulator without another reference: it is extended in place."""

    __slots__ = ()


class GrowingMap(dict[Any, Any]):
    __slots__ = ()


def _items(loop: Loop, source: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(source, list):
        if loop.second:
            return enumerate(source)
        return ((item, None) for item in source)
    if isinstance(source, dict):
        return ((from_map_key(key), value) for key, value in source.items())
    raise CelError(f"got '{type_name(source)}', expected iterable type")


def fold(loop: Loop, condition: Run, step: Run, result: Run) -> Run:
    """Return the loop as it is written, with its accumulator. A step that fails is an accumulator that fails."""
    accumulator, first, second = loop.accumulator, loop.first, loop.second

    def run(frame: Frame) -> Any:
        source = loop.source(frame)
        start = loop.init(frame)
        if isinstance(start, (list, dict)) and not start:
            start = GrowingList() if isinstance(start, list) else GrowingMap()
        frame[accumulator] = start
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
        folded = result(frame)
        if type(folded) is GrowingList:
            return list(folded)
        return dict(folded) if type(folded) is GrowingMap else folded

    return run


def all_of(loop: Loop, predicate: Run) -> Run:
    return _quantifier(loop, predicate, decisive=False, condition_cost=2)


def any_of(loop: Loop, predicate: Run) -> Run:
    return _quantifier(loop, predicate, decisive=True, condition_cost=3)


def _quantifier(loop: Loop, predicate: Run, *, decisive: bool, condition_cost: int) -> Run:
    """Return a loop that ends with the first decisive value, which also wins over errors.

    Its cost is that of the condition and the step that the macro writes.
    """
    first, second = loop.first, loop.second
    element_cost = condition_cost + 1

    def run(frame: Frame) -> bool:
        error: CelError | None = None
        decided = False
        for key, value in _items(loop, loop.source(frame)):
            if decided:
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
                decided = True
            elif type(outcome) is not bool:
                error = error or CelError("no such overload")
        frame[0] += 1
        if decided:
            return decisive
        if error is not None:
            raise error
        return not decisive

    return run
