"""The allocation of a UnitedDeployment's replicas to its subsets, and the desired state of each subset.

Replicas are allocated in four ways. Specified: subsets with a fixed number, and an even share for the others. Bounded: from
minReplicas up to maxReplicas, in the order of the subsets. Adaptive: a subset with unschedulable pods gets at most its
ready pods. Reserved: pods that cannot run stay, and later subsets get replacements.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.intstr import IntOrString
from mockube.packs.kruise.replicas import SubsetReplicasError, parse_subset_replicas

from .rescheduling import SCHEDULABLE, SubsetCondition, reserve_new_pods
from .snapshot import Snapshot
from .spec import SubsetSpec
from .workload import DesiredSubset

UNLIMITED: Final = 2**31 - 1


class AllocationError(ValueError):
    """The specified replicas cannot be allocated; the message is upstream's."""


class SubsetInfo(Struct, frozen=True, kw_only=True):
    name: str
    replicas: IntOrString | None = None
    min_replicas: IntOrString | None = None
    max_replicas: IntOrString | None = None
    exists: bool = False
    """Whether it has a workload; without one, the following fields have their defaults."""
    current: int = 0
    """The replicas in the spec of its workload."""
    ready: int = 0
    unschedulable: bool = False
    was_unschedulable: bool = False
    """Whether it was unschedulable before this reconciliation."""
    reserved: int = 0
    """The number of its reserved pods, which have replacements in other subsets."""


def bounds(total: int, subset: SubsetInfo) -> tuple[int, int]:
    """Return the minimum and maximum replicas of a subset; an invalid value counts as 0."""
    return _parse_bound(total, subset.min_replicas, 0), _parse_bound(total, subset.max_replicas, UNLIMITED)


def _parse_bound(total: int, value: IntOrString | None, absent: int) -> int:
    if value is None:
        return absent
    try:
        return parse_subset_replicas(total, value)
    except SubsetReplicasError:
        return 0


def allocate_specified(total: int | None, subsets: Sequence[SubsetInfo]) -> Mapping[str, int]:
    """Allocate specified replicas, and even shares of the rest to the other subsets; raise `AllocationError`.

    Without a total, every subset must specify its replicas.
    """
    specified = dict(_specified_replicas(-1 if total is None else total, subsets))
    _validate(total, specified, subsets)
    rest = (total or 0) - sum(specified.values())
    # The largest subset gets the remainder, so that the fewest pods move.
    ordered = sorted(subsets, key=lambda subset: (subset.current, subset.name), reverse=True)
    unspecified = [subset.name for subset in ordered if subset.name not in specified]
    average, remainder = divmod(rest, len(unspecified)) if unspecified else (0, 0)
    return specified | {name: average + (number < remainder) for number, name in enumerate(unspecified)}


def _specified_replicas(total: int, subsets: Sequence[SubsetInfo]) -> list[tuple[str, int]]:
    """Return the replicas that subsets specify; invalid values are ignored."""
    specified = []
    for subset in subsets:
        try:
            if subset.replicas is not None:
                specified.append((subset.name, parse_subset_replicas(total, subset.replicas)))
        except SubsetReplicasError:
            continue
    return specified


def _validate(total: int | None, specified: Mapping[str, int], subsets: Sequence[SubsetInfo]) -> None:
    specified_total, is_complete = sum(specified.values()), len(specified) == len(subsets)
    if total is None:
        if not is_complete:
            raise AllocationError(
                "all subsets must be specified when UnitedDeployment replica is unspecified"
            )
    elif specified_total > total:
        raise AllocationError(
            f"specified subsets' replica ({specified_total}) is greater than UnitedDeployment replica ({total})"
        )
    elif specified_total < total and is_complete:
        raise AllocationError(
            f"specified subsets' replica ({specified_total}) is less than UnitedDeployment replica ({total})"
        )


Limits = tuple[str, int, int]
"""The name of a subset, its minimum and its maximum replicas."""


def allocate_bounded(total: int, subsets: Sequence[SubsetInfo]) -> Mapping[str, int]:
    """Allocate between minReplicas and maxReplicas, in the order of the subsets; raise `AllocationError`."""
    return fill_subsets(total, limits_of(total, subsets))


def limits_of(total: int, subsets: Sequence[SubsetInfo]) -> list[Limits]:
    """Return the limits that subsets specify; raise `AllocationError` if a minimum exceeds its maximum."""
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
    """Allocate the minimum of each subset, then the rest up to the maximums.

    A maximum below the minimum has no effect.
    """
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
    """Allocate between limits that unschedulable subsets reduce to their ready pods; raise `AllocationError`."""
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


class _SubsetShare:
    """The replicas allocated to one subset so far, and how many more are expected to run."""

    def __init__(self, subset: SubsetInfo, minimum: int, maximum: int) -> None:
        self.name = subset.name
        self.minimum = minimum
        self.maximum = subset.current if subset.unschedulable else maximum
        self.allocated = 0
        self._remaining = (
            subset.current - subset.reserved
            if subset.unschedulable or subset.was_unschedulable
            else UNLIMITED
        )

    def fill(self, level: int, rest: int) -> int:
        """Allocate up to `level`, but at most `rest`; return how many of the added replicas are expected to run."""
        added = max(min(level - self.allocated, rest), 0)
        self.allocated += added
        self._remaining -= added
        return added if self._remaining >= 0 else max(added + self._remaining, 0)


def allocate_reserved(total: int, subsets: Sequence[SubsetInfo]) -> Mapping[str, int]:
    """Allocate between limits until enough replicas are expected to run; raise `AllocationError`."""
    limits = limits_of(total, subsets)
    shares = [
        _SubsetShare(subset, minimum, maximum)
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
    """Return the replicas of each subset; raise `AllocationError` if they cannot be allocated."""
    if reserves:
        return allocate_reserved(total or 0, subsets)
    if adapts:
        return allocate_adaptive(total or 0, subsets)
    if any(subset.min_replicas is not None or subset.max_replicas is not None for subset in subsets):
        return allocate_bounded(total or 0, subsets)
    return allocate_specified(total, subsets)


# --- the desired subsets


def partitions(requested: Mapping[str, int], replicas: Mapping[str, int]) -> Mapping[str, int]:
    """Return the partition of each subset: the requested one, but at most its replicas."""
    return {name: min(requested.get(name, 0), count) for name, count in replicas.items()}


def calculate_desired_subsets(snapshot: Snapshot) -> Mapping[str, DesiredSubset]:
    """Return the desired subsets in the topology's order; raise `AllocationError` if replicas cannot be allocated."""
    view, schedule = snapshot.view, snapshot.view.schedule
    subset_infos = [_subset_info(snapshot, subset) for subset in view.subsets]
    replicas = allocate(view.replicas, subset_infos, adapts=schedule.is_adaptive, reserves=schedule.reserves)
    partition_by_name = partitions(view.partitions, replicas)
    return {
        subset.name: DesiredSubset(
            subset=subset,
            revision=snapshot.history.expected,
            replicas=replicas[subset.name],
            partition=partition_by_name[subset.name],
            max_unavailable=_max_unavailable(snapshot, subset.name),
        )
        for subset in view.subsets
    }


def _subset_info(snapshot: Snapshot, spec: SubsetSpec) -> SubsetInfo:
    subset, subset_condition = (
        snapshot.subsets.get(spec.name),
        snapshot.subset_conditions.get(spec.name, SCHEDULABLE),
    )
    return SubsetInfo(
        name=spec.name,
        replicas=spec.replicas,
        min_replicas=spec.min_replicas,
        max_replicas=spec.max_replicas,
        exists=subset is not None,
        current=subset.spec_replicas if subset else 0,
        ready=subset.ready_replicas if subset else 0,
        unschedulable=subset_condition.unschedulable,
        was_unschedulable=subset_condition.was_unschedulable,
        reserved=subset_condition.reserved,
    )


def _max_unavailable(snapshot: Snapshot, name: str) -> int | None:
    """Return the number of pods that are missing now: pods that cannot run do not block the update of the others."""
    subset, subset_condition = snapshot.subsets.get(name), snapshot.subset_conditions.get(name, SCHEDULABLE)
    if subset is None or not (snapshot.view.schedule.reserves and subset_condition.unschedulable):
        return None
    missing = subset.spec_replicas - subset.ready_replicas + subset_condition.overdue
    return missing if missing > 0 else None


def resolved_conditions(
    snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset]
) -> Mapping[str, SubsetCondition]:
    """Return the conditions of subsets after the allocation: new pods of a recovered subset begin as reserved."""
    if not snapshot.view.schedule.reserves:
        return snapshot.subset_conditions
    return {
        name: reserve_new_pods(subset_condition, snapshot.now)
        if _recovers_and_grows(snapshot, desired_subsets, name)
        else subset_condition
        for name, subset_condition in snapshot.subset_conditions.items()
    }


def _recovers_and_grows(snapshot: Snapshot, desired_subsets: Mapping[str, DesiredSubset], name: str) -> bool:
    subset, desired, subset_condition = (
        snapshot.subsets.get(name),
        desired_subsets.get(name),
        snapshot.subset_conditions[name],
    )
    if (
        subset is None
        or desired is None
        or subset_condition.unschedulable
        or not subset_condition.was_unschedulable
    ):
        return False
    return desired.replicas > subset.spec_replicas
