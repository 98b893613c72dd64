"""Which of the ways to share out pods a UnitedDeployment asks for."""

from collections.abc import Mapping, Sequence

from controller_manager.controllers.uniteddeployment.allocation import adaptive, bounded, reserved, specified
from controller_manager.controllers.uniteddeployment.allocation.place import Place


def allocate(
    total: int | None, places: Sequence[Place], *, adapts: bool, reserves: bool
) -> Mapping[str, int]:
    """The replicas of each subset, or `AllocationError`."""
    if reserves:
        return reserved.allocate(total or 0, places)
    if adapts:
        return adaptive.allocate(total or 0, places)
    if any(place.min_replicas is not None or place.max_replicas is not None for place in places):
        return bounded.allocate(total or 0, places)
    return specified.allocate(total, places)
