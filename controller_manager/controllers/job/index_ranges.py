"""Sets of completion indexes as a Job writes them: `0,2-5,7`. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

from mockube.apimachinery.gotext import int_or_none

Intervals = tuple[tuple[int, int], ...]
"""The first and the last index of each, in order, with a gap between any two."""

NONE: Final[Intervals] = ()


def parse(text: str, completions: int) -> Intervals:
    """Indexes from `completions` on are left out, and so is what is no interval."""
    found: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        limits = [int_or_none(limit) for limit in part.split("-")[:2]]
        first, last = limits[0], limits[-1]
        if first is not None and first >= completions:
            break
        if first is None or last is None:
            continue
        last = min(last, completions - 1)
        if found and found[-1][1] == first - 1:
            found[-1] = (found[-1][0], last)
        else:
            found.append((first, last))
    return tuple(found)


def text_of(intervals: Intervals) -> str:
    return ",".join(_interval_text(first, last) for first, last in intervals)


def _interval_text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}{',' if last == first + 1 else '-'}{last}"


def merge(one: Intervals, other: Intervals) -> Intervals:
    found: list[tuple[int, int]] = []
    for first, last in sorted((*one, *other)):
        if not found or first > found[-1][1] + 1:
            found.append((first, last))
        elif last > found[-1][1]:
            found[-1] = (found[-1][0], last)
    return tuple(found)


def with_indexes(intervals: Intervals, indexes: Iterable[int]) -> Intervals:
    return merge(intervals, tuple((index, index) for index in sorted(set(indexes))))


def total(intervals: Intervals) -> int:
    return sum(last - first + 1 for first, last in intervals)


def contains(intervals: Intervals, index: int) -> bool:
    return any(first <= index <= last for first, last in intervals)


def first_missing(intervals: Intervals, count: int, completions: int) -> Sequence[int]:
    """So many of the lowest indexes below `completions` that are in none of the intervals."""
    found: list[int] = []
    candidate = 0
    for first, last in (*intervals, (completions, completions)):
        gap = range(candidate, min(first, completions))
        found += gap[: count - len(found)]
        candidate = max(candidate, last + 1)
    return found


def overlap(one: Intervals, other: Intervals) -> int:
    """How many indexes are in both."""
    common, row, column = 0, 0, 0
    while row < len(one) and column < len(other):
        first, last = max(one[row][0], other[column][0]), min(one[row][1], other[column][1])
        common += max(0, last - first + 1)
        if one[row][1] < other[column][1]:
            row += 1
        else:
            column += 1
    return common
