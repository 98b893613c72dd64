"""Subsets that say how many pods they have get them; the others share the rest as evenly as they can."""

from collections.abc import Mapping, Sequence

from apimachinery.packs.subset_replicas import SubsetReplicasError, parse
from controller_manager.controllers.uniteddeployment.allocation.place import AllocationError, Place


def allocate(total: int | None, places: Sequence[Place]) -> Mapping[str, int]:
    """Or `AllocationError`. Without a total, every subset must say its number."""
    specified = dict(_specified(-1 if total is None else total, places))
    _check(total, specified, places)
    rest = (total or 0) - sum(specified.values())
    # Who has most now gets the remainder, so that the fewest pods move.
    ordered = sorted(places, key=lambda place: (place.current, place.name), reverse=True)
    open_ = [place.name for place in ordered if place.name not in specified]
    average, remainder = divmod(rest, len(open_)) if open_ else (0, 0)
    return specified | {name: average + (number < remainder) for number, name in enumerate(open_)}


def _specified(total: int, places: Sequence[Place]) -> list[tuple[str, int]]:
    """What cannot be read was never said."""
    found = []
    for place in places:
        try:
            if place.replicas is not None:
                found.append((place.name, parse(total, place.replicas)))
        except SubsetReplicasError:
            continue
    return found


def _check(total: int | None, specified: Mapping[str, int], places: Sequence[Place]) -> None:
    said, are_all = sum(specified.values()), len(specified) == len(places)
    if total is None:
        if not are_all:
            raise AllocationError(
                "all subsets must be specified when UnitedDeployment replica is unspecified"
            )
    elif said > total:
        raise AllocationError(
            f"specified subsets' replica ({said}) is greater than UnitedDeployment replica ({total})"
        )
    elif said < total and are_all:
        raise AllocationError(
            f"specified subsets' replica ({said}) is less than UnitedDeployment replica ({total})"
        )
