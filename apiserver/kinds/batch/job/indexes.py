"""Parse the indexes of a Job's pods, written as intervals: `0,2-4`."""

from itertools import pairwise
from typing import NamedTuple

from mockube.apimachinery import gotext


class IndexesError(ValueError):
    """A text is not a list of indexes; the message is upstream's."""


class Interval(NamedTuple):
    first: int
    last: int


def parse(text: str, completions: int) -> list[Interval]:
    """Return the intervals, which have to increase and be below the number of completions."""
    intervals = [_parse_interval(part, completions) for part in text.split(",")] if text else []
    for previous, current in pairwise(intervals):
        if previous.last >= current.first:
            raise IndexesError(f"non-increasing order, previous: {previous.last}, current: {current.first}")
    return intervals


def _parse_interval(text: str, completions: int) -> Interval:
    limits = text.split("-")
    if len(limits) > 2:
        raise IndexesError(
            f"the fragment {gotext.quote(text)} violates the requirement that an index interval "
            "can have at most two parts separated by '-'"
        )
    numbers = [_parse_index(limit, completions) for limit in limits]
    first, last = numbers[0], numbers[-1]
    if len(numbers) == 2 and first >= last:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {last}")
    return Interval(first, last)


def _parse_index(text: str, completions: int) -> int:
    try:
        index = gotext.parse_int(text)
    except gotext.NumberError:
        raise IndexesError(f"cannot convert string to integer for index: {gotext.quote(text)}") from None
    if index >= completions:
        raise IndexesError(f"too large index: {gotext.quote(text)}")
    return index


def count(intervals: list[Interval]) -> int:
    return sum(last - first + 1 for first, last in intervals)


def overlap(first_text: str, second_text: str, completions: int) -> int | None:
    """Return the lowest index that is in both texts, or None. Invalid intervals are ignored: other checks report them."""
    common_indexes = [
        max(interval.first, other.first)
        for interval in _valid_intervals(first_text, completions)
        for other in _valid_intervals(second_text, completions)
        if interval.first <= other.last and other.first <= interval.last
    ]
    return min(common_indexes, default=None)


def _valid_intervals(text: str, completions: int) -> list[Interval]:
    intervals = []
    for part in text.split(",") if text else ():
        try:
            intervals.append(_parse_interval(part, completions))
        except IndexesError:
            continue
    return intervals
