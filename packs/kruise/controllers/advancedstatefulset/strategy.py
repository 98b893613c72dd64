"""The update strategy of an Advanced StatefulSet with defaults, and its ordinals without the reserved ones."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import Enum
from itertools import chain
from typing import Final

from msgspec import Struct

from mockube.apimachinery import gotext, intstr
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.tree import ReadOnlyTree


class PodUpdatePolicy(Enum):
    RECREATE = "ReCreate"
    IN_PLACE_IF_POSSIBLE = "InPlaceIfPossible"
    IN_PLACE_ONLY = "InPlaceOnly"


class UpdateStrategy(Struct, frozen=True, kw_only=True):
    is_specified: bool
    """Whether `rollingUpdate` is set. If not, the first `currentReplicas` new pods get the current revision."""
    paused: bool
    policy: PodUpdatePolicy
    grace_seconds: int
    """The seconds between marking a pod as not ready and changing it in place."""
    partition: int
    """The number of pods that keep the current revision."""
    max_unavailable: int
    min_ready_seconds: int
    unordered: bool
    priority: ReadOnlyTree | None

    @classmethod
    def of(cls, spec: ReadOnlyTree) -> "UpdateStrategy":
        """Read the strategy from a spec; raise `IntOrStringError` if maxUnavailable is invalid."""
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


def _policy(name: str | None) -> PodUpdatePolicy:
    """Return the policy of that name; any unknown one recreates pods."""
    return next((policy for policy in PodUpdatePolicy if policy.value == name), PodUpdatePolicy.RECREATE)


def max_unavailable_pods(limit: IntOrString | None, replicas: int) -> int:
    """Return the limit as a number of pods, at least 1. A percentage is rounded down."""
    return max(intstr.scaled_value(1 if limit is None else limit, replicas, round_up=False), 1)


_MAX_ORDINAL_END: Final = 2**31
"""The first ordinal that no pod can have."""


class Ordinals(Collection[int]):
    """The numbers of several ranges, which do not overlap and are in ascending order."""

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
    """Return `replicas` ordinals from the first one on, without the reserved ones."""
    return Ordinals(_take(replicas, _unreserved_ranges(start, _reserved_ranges(reserved))))


def _unreserved_ranges(start: int, reserved: Iterable[range]) -> Iterator[range]:
    for block in sorted(reserved, key=lambda block_range: block_range.start):
        yield range(start, min(block.start, _MAX_ORDINAL_END))
        start = max(start, block.stop)
    yield range(start, _MAX_ORDINAL_END)


def _take(count: int, ranges: Iterable[range]) -> Iterator[range]:
    """Yield the first `count` numbers of the ranges, as ranges that are not empty."""
    for each in ranges:
        if part := each[:count]:
            yield part
            count -= len(part)


def _reserved_ranges(reserved: Sequence[IntOrString]) -> list[range]:
    """Return the reserved ranges; none if one entry is invalid, as upstream does: servers reject such a list."""
    ranges: list[range] = []
    for entry in reserved:
        parsed_range = range(entry, entry + 1) if isinstance(entry, int) else _parse_range(entry)
        if not parsed_range:
            return []
        ranges.append(parsed_range)
    return ranges


def _parse_range(text: str) -> range:
    """Return the numbers from `3-5` as a range with both ends; an empty range if the text is invalid."""
    first, dash, last = text.partition("-")
    try:
        bounds = gotext.parse_int(first), gotext.parse_int(last)
    except gotext.NumberError:
        return range(0)
    return range(bounds[0], bounds[1] + 1) if dash else range(0)
