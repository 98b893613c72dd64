"""Sets of completion indexes in the text form of a Job's status: `0,2-5,7`."""

from collections.abc import Iterable, Sequence
from typing import Final

from mockube.apimachinery.gotext import int_or_none

Intervals = tuple[tuple[int, int], ...]
"""The first and the last index of each interval, in ascending order. Adjacent intervals are merged."""

NONE: Final[Intervals] = ()


def parse(text: str, completions: int) -> Intervals:
    """Parse a text into intervals. Invalid intervals and indexes of `completions` or more are ignored."""
    intervals: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        limits = [int_or_none(limit) for limit in part.split("-")[:2]]
        first, last = limits[0], limits[-1]
        if first is not None and first >= completions:
            break
        if first is None or last is None:
            continue
        last = min(last, completions - 1)
        if intervals and intervals[-1][1] == first - 1:
            intervals[-1] = (intervals[-1][0], last)
        else:
            intervals.append((first, last))
    return tuple(intervals)


def text_of(intervals: Intervals) -> str:
    return ",".join(_interval_text(first, last) for first, last in intervals)


def _interval_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"


def merge(intervals: Intervals, other: Intervals) -> Intervals:
    merged_intervals: list[tuple[int, int]] = []
    for first, last in sorted((*intervals, *other)):
        if not merged_intervals or first > merged_intervals[-1][1] + 1:
            merged_intervals.append((first, last))
        elif last > merged_intervals[-1][1]:
            merged_intervals[-1] = (merged_intervals[-1][0], last)
    return tuple(merged_intervals)


def with_indexes(intervals: Intervals, indexes: Iterable[int]) -> Intervals:
    return merge(intervals, tuple((index, index) for index in sorted(set(indexes))))


def total(intervals: Intervals) -> int:
    return sum(last - first + 1 for first, last in intervals)


def contains(intervals: Intervals, index: int) -> bool:
    return any(first <= index <= last for first, last in intervals)


def first_missing(intervals: Intervals, count: int, completions: int) -> Sequence[int]:
    """Return the `count` lowest indexes that are below `completions` and in none of the intervals."""
    indexes: list[int] = []
    candidate = 0
    for first, last in (*intervals, (completions, completions)):
        gap = range(candidate, min(first, completions))
        indexes += gap[: count - len(indexes)]
        candidate = max(candidate, last + 1)
    return indexes


def overlap(intervals: Intervals, other: Intervals) -> int:
    """Return the number of indexes that are in both sets."""
    common, row, column = 0, 0, 0
    while row < len(intervals) and column < len(other):
        first, last = max(intervals[row][0], other[column][0]), min(intervals[row][1], other[column][1])
        common += max(0, last - first + 1)
        if intervals[row][1] < other[column][1]:
            row += 1
        else:
            column += 1
    return common
