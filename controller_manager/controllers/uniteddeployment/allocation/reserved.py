"""Pods that find no node stay where they are to be, and others stand for them until they run.

What is given to a subset beyond what it can run does not count: as much is given once more to those after it.
"""

from collections.abc import Mapping, Sequence

from controller_manager.controllers.uniteddeployment.allocation.bounded import limits_of
from controller_manager.controllers.uniteddeployment.allocation.place import UNLIMITED, Place


class _Share:
    """What one subset has been given so far, and how much more of it would run."""

    def __init__(self, place: Place, least: int, most: int) -> None:
        self.name = place.name
        self.least = least
        self.most = place.current if place.unschedulable else most
        self.allocated = 0
        self._room = place.current - place.reserved if place.unschedulable or place.marked else UNLIMITED

    def fill(self, level: int, rest: int) -> int:
        """Give it up to a level, of the rest at most; how much of that is expected to run."""
        added = max(min(level - self.allocated, rest), 0)
        self.allocated += added
        self._room -= added
        return added if self._room >= 0 else max(added + self._room, 0)


def allocate(total: int, places: Sequence[Place]) -> Mapping[str, int]:
    """Or `AllocationError`."""
    limits = limits_of(total, places)
    shares = [_Share(place, least, most) for place, (_, least, most) in zip(places, limits, strict=True)]
    rest = total
    for share in shares:
        rest -= share.fill(share.least, rest)
    for share in shares:
        rest -= share.fill(share.most, rest)
    return {share.name: share.allocated for share in shares}
