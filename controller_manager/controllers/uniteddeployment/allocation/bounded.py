"""Subsets get their least, in their order, and then up to their most, in their order."""

from collections.abc import Mapping, Sequence

from controller_manager.controllers.uniteddeployment.allocation.bounds import bounds
from controller_manager.controllers.uniteddeployment.allocation.place import AllocationError, Place

Limits = tuple[str, int, int]
"""Of the subset with this name, its least and its most."""


def allocate(total: int, places: Sequence[Place]) -> Mapping[str, int]:
    """Or `AllocationError`."""
    return filled(total, limits_of(total, places))


def limits_of(total: int, places: Sequence[Place]) -> list[Limits]:
    """As they are asked for, or `AllocationError`."""
    limits = []
    for number, place in enumerate(places):
        least, most = bounds(total, place)
        if least > most:
            raise AllocationError(
                f"subset[{number}].maxReplicas({most}) must be more than or equal to minReplicas({least})"
            )
        limits.append((place.name, least, most))
    return limits


def filled(total: int, limits: Sequence[Limits]) -> Mapping[str, int]:
    """A most that is below the least gives nothing, and takes nothing away."""
    allocated, rest = {}, total
    for name, least, _ in limits:
        allocated[name] = min(least, rest)
        rest -= allocated[name]
    for name, least, most in limits:
        more = min(max(most - least, 0), rest)
        allocated[name] += more
        rest -= more
    return allocated
