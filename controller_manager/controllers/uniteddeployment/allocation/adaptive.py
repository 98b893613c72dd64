"""Bounds that follow the cluster: where pods find no node there are no more than run, and what runs is left alone."""

from collections.abc import Mapping, Sequence

from controller_manager.controllers.uniteddeployment.allocation.bounded import Limits, filled, limits_of
from controller_manager.controllers.uniteddeployment.allocation.place import Place


def allocate(total: int, places: Sequence[Place]) -> Mapping[str, int]:
    """Or `AllocationError`."""
    limits = limits_of(total, places)
    return filled(total, [_adapted(place, *limit) for place, limit in zip(places, limits, strict=True)])


def _adapted(place: Place, name: str, least: int, most: int) -> Limits:
    if place.unschedulable:
        return name, max(place.ready, least), min(place.ready, most)
    if place.exists and place.ready > least:
        return name, min(place.ready, most), most
    return name, least, most
