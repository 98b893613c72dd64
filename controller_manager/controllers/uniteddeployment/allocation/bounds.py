"""The least and the most pods of a subset, as numbers."""

from apimachinery.intstr import IntOrString
from apimachinery.packs.subset_replicas import SubsetReplicasError, parse
from controller_manager.controllers.uniteddeployment.allocation.place import UNLIMITED, Place


def bounds(total: int, place: Place) -> tuple[int, int]:
    """What cannot be read counts as none."""
    return _bound(total, place.min_replicas, 0), _bound(total, place.max_replicas, UNLIMITED)


def _bound(total: int, value: IntOrString | None, absent: int) -> int:
    if value is None:
        return absent
    try:
        return parse(total, value)
    except SubsetReplicasError:
        return 0
