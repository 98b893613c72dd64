"""The update strategy of an Advanced StatefulSet with its defaults, and its ordinals without the reserved ones."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain
from typing import Final

from msgspec import Struct

from mockube.apimachinery import gotext, intstr
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.tree import ReadOnlyTree


class Policy(Enum):
    RECREATE = "ReCreate"
    IN_PLACE_IF_POSSIBLE = "InPlaceIfPossible"
    IN_PLACE_ONLY = "InPlaceOnly"


class Strategy(Struct, frozen=True, kw_only=True):
    is_specified: bool
    """Without it, pods are replaced one by one, and new ones get the revision in the status."""
    paused: bool
    policy: Policy
    grace_seconds: int
    """How long a pod is out of service before it changes in place."""
    partition: int
    """How many pods keep the current revision."""
    max_unavailable: int
    min_ready_seconds: int
    unordered: bool
    priority: ReadOnlyTree | None

    @classmethod
    def of(cls, spec: ReadOnlyTree) -> "Strategy":
        """The strategy, or `IntOrStringError`."""
        rolling_update = (spec.get("updateStrategy") or {}).get("rollingUpdate")
        rolling = rolling_update or {}
        replicas = 1 if spec.get("replicas") is None else spec["replicas"]
        unordered = rolling.get("unorderedUpdate")
        return cls(
            is_specified=rolling_update is not None,
            paused=bool(rolling.get("paused")),
            policy=_policy(rolling.get("podUpdatePolicy")),
            grace_seconds=(rolling.get("inPlaceUpdateStrategy") or {}).get("gracePeriodSeconds") or 0,
            partition=min(max(rolling.get("partition") or 0, 0), replicas),
            max_unavailable=max_unavailable_pods(rolling.get("maxUnavailable"), replicas),
            min_ready_seconds=rolling.get("minReadySeconds") or 0,
            unordered=unordered is not None,
            priority=(unordered or {}).get("priorityStrategy"),
        )


def _policy(name: str | None) -> Policy:
    """Any other policy recreates pods."""
    return next((policy for policy in Policy if policy.value == name), Policy.RECREATE)


def max_unavailable_pods(limit: IntOrString | None, replicas: int) -> int:
    """A share is rounded down."""
    return max(intstr.scaled_value(1 if limit is None else limit, replicas, round_up=False), 1)


_END: Final = 2**31
"""The first ordinal that no pod can have."""


class Ordinals(Collection[int]):
    """The numbers of some ranges, which do not overlap and are in order."""

    def __init__(self, ranges: Iterable[range]) -> None:
        self._ranges = [*ranges]
        self._starts = [each.start for each in self._ranges]

    def __len__(self) -> int:
        return sum(map(len, self._ranges))

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self._ranges)

    def __contains__(self, ordinal: object) -> bool:
        if not isinstance(ordinal, int):
            return False
        index = bisect_right(self._starts, ordinal) - 1
        return index >= 0 and ordinal in self._ranges[index]


def ordinals(start: int, replicas: int, reserved: Sequence[IntOrString]) -> Ordinals:
    """Return so many ordinals from the first, in order, without the reserved ones, which later ordinals replace."""
    return Ordinals(_first(replicas, _free_ranges(start, _ranges(reserved))))


def _free_ranges(start: int, reserved: Iterable[range]) -> Iterator[range]:
    for block in sorted(reserved, key=lambda block_range: block_range.start):
        yield range(start, min(block.start, _END))
        start = max(start, block.stop)
    yield range(start, _END)


def _first(count: int, ranges: Iterable[range]) -> Iterator[range]:
    """Yield the ranges with so many numbers, none of them empty."""
    for each in ranges:
        if part := each[:count]:
            yield part
            count -= len(part)


def _ranges(reserved: Sequence[IntOrString]) -> list[range]:
    """Of a list in which one cannot be read, none is reserved, as upstream has it: servers accept no such list."""
    ranges: list[range] = []
    for entry in reserved:
        parsed_range = range(entry, entry + 1) if isinstance(entry, int) else _range(entry)
        if not parsed_range:
            return []
        ranges.append(parsed_range)
    return ranges


def _range(text: str) -> range:
    """`3-5` are three; empty if it is no range."""
    first, dash, last = text.partition("-")
    try:
        bounds = gotext.parse_int(first), gotext.parse_int(last)
    except gotext.NumberError:
        return range(0)
    return range(bounds[0], bounds[1] + 1) if dash else range(0)
