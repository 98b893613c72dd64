"""Allocate the replicas of a UnitedDeployment to its subsets.

Four ways: subsets with a fixed number and an even share for the rest; from minReplicas up to maxReplicas in order;
adaptive, where subsets with unschedulable pods get no more than what runs; and reserved, where pods that cannot run are
replaced in later subsets and stay. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.packs.uniteddeployments import SubsetReplicasError, parse_subset_replicas

UNLIMITED: Final = 2**31 - 1


class AllocationError(ValueError):
    """The specified replicas cannot be allocated; the message is upstream's."""


class SubsetInfo(Struct, frozen=True, kw_only=True):
    name: str
    replicas: IntOrString | None = None
    min_replicas: IntOrString | None = None
    max_replicas: IntOrString | None = None
    exists: bool = False
    """It has a workload; of one that has none, all that follows is as here."""
    current: int = 0
    """The replicas that its workload is to have."""
    ready: int = 0
    unschedulable: bool = False
    marked: bool = False
    """It was unschedulable before this reconciliation."""
    reserved: int = 0
    """Its reserved pods, which others replace."""


def bounds(total: int, subset: SubsetInfo) -> tuple[int, int]:
    """What cannot be read counts as none."""
    return _parse_bound(total, subset.min_replicas, 0), _parse_bound(total, subset.max_replicas, UNLIMITED)


def _parse_bound(total: int, value: IntOrString | None, absent: int) -> int:
    if value is None:
        return absent
    try:
        return parse_subset_replicas(total, value)
    except SubsetReplicasError:
        return 0


def allocate_specified(total: int | None, subsets: Sequence[SubsetInfo]) -> Mapping[str, int]:
    """Or `AllocationError`. Without a total, every subset must specify its replicas."""
    specified = dict(_specified_replicas(-1 if total is None else total, subsets))
    _check(total, specified, subsets)
    rest = (total or 0) - sum(specified.values())
    # The largest subset gets the remainder, so that the fewest pods move.
    ordered = sorted(subsets, key=lambda subset: (subset.current, subset.name), reverse=True)
    open_ = [subset.name for subset in ordered if subset.name not in specified]
    average, remainder = divmod(rest, len(open_)) if open_ else (0, 0)
    return specified | {name: average + (number < remainder) for number, name in enumerate(open_)}


def _specified_replicas(total: int, subsets: Sequence[SubsetInfo]) -> list[tuple[str, int]]:
    """Invalid numbers are ignored."""
    named_replicas = []
    for subset in subsets:
        try:
            if subset.replicas is not None:
                named_replicas.append((subset.name, parse_subset_replicas(total, subset.replicas)))
        except SubsetReplicasError:
            continue
    return named_replicas


def _check(total: int | None, specified: Mapping[str, int], subsets: Sequence[SubsetInfo]) -> None:
    specified_total, are_all = sum(specified.values()), len(specified) == len(subsets)
    if total is None:
        if not are_all:
            raise AllocationError(
                "all subsets must be specified when UnitedDeployment replica is unspecified"
            )
    elif specified_total > total:
        raise AllocationError(
            f"specified subsets' replica ({specified_total}) is greater than UnitedDeployment replica ({total})"
        )
    elif specified_total < total and are_all:
        raise AllocationError(
            f"specified subsets' replica ({specified_total}) is less than UnitedDeployment replica ({total})"
        )


Limits = tuple[str, int, int]
"""Of the subset with this name, its least and its most."""


def allocate_bounded(total: int, subsets: Sequence[SubsetInfo]) -> Mapping[str, int]:
    """Or `AllocationError`."""
    return fill_subsets(total, limits_of(total, subsets))


def limits_of(total: int, subsets: Sequence[SubsetInfo]) -> list[Limits]:
    """As specified, or `AllocationError`."""
    limits = []
    for number, subset in enumerate(subsets):
        minimum, maximum = bounds(total, subset)
        if minimum > maximum:
            raise AllocationError(
                f"subset[{number}].maxReplicas({maximum}) must be more than or equal to minReplicas({minimum})"
            )
        limits.append((subset.name, minimum, maximum))
    return limits


def fill_subsets(total: int, limits: Sequence[Limits]) -> Mapping[str, int]:
    """A most that is below the least gives nothing, and takes nothing away."""
    allocated, rest = {}, total
    for name, minimum, _ in limits:
        allocated[name] = min(minimum, rest)
        rest -= allocated[name]
    for name, minimum, maximum in limits:
        more = min(max(maximum - minimum, 0), rest)
        allocated[name] += more
        rest -= more
    return allocated


def allocate_adaptive(total: int, subsets: Sequence[SubsetInfo]) -> Mapping[str, int]:
    """Or `AllocationError`."""
    limits = limits_of(total, subsets)
    return fill_subsets(
        total, [_adapt_limits(subset, *limit) for subset, limit in zip(subsets, limits, strict=True)]
    )


def _adapt_limits(subset: SubsetInfo, name: str, minimum: int, maximum: int) -> Limits:
    if subset.unschedulable:
        return name, max(subset.ready, minimum), min(subset.ready, maximum)
    if subset.exists and subset.ready > minimum:
        return name, min(subset.ready, maximum), maximum
    return name, minimum, maximum


class _Share:
    """What one subset has been given so far, and how much more of it would run."""

    def __init__(self, subset: SubsetInfo, minimum: int, maximum: int) -> None:
        self.name = subset.name
        self.minimum = minimum
        self.maximum = subset.current if subset.unschedulable else maximum
        self.allocated = 0
        self._remaining = (
            subset.current - subset.reserved if subset.unschedulable or subset.marked else UNLIMITED
        )

    def fill(self, level: int, rest: int) -> int:
        """Give it up to a level, of the rest at most; how much of that is expected to run."""
        added = max(min(level - self.allocated, rest), 0)
        self.allocated += added
        self._remaining -= added
        return added if self._remaining >= 0 else max(added + self._remaining, 0)


def allocate_reserved(total: int, subsets: Sequence[SubsetInfo]) -> Mapping[str, int]:
    """Or `AllocationError`."""
    limits = limits_of(total, subsets)
    shares = [
        _Share(subset, minimum, maximum)
        for subset, (_, minimum, maximum) in zip(subsets, limits, strict=True)
    ]
    rest = total
    for share in shares:
        rest -= share.fill(share.minimum, rest)
    for share in shares:
        rest -= share.fill(share.maximum, rest)
    return {share.name: share.allocated for share in shares}


def allocate(
    total: int | None, subsets: Sequence[SubsetInfo], *, adapts: bool, reserves: bool
) -> Mapping[str, int]:
    """The replicas of each subset, or `AllocationError`."""
    if reserves:
        return allocate_reserved(total or 0, subsets)
    if adapts:
        return allocate_adaptive(total or 0, subsets)
    if any(subset.min_replicas is not None or subset.max_replicas is not None for subset in subsets):
        return allocate_bounded(total or 0, subsets)
    return allocate_specified(total, subsets)
