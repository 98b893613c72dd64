"""A number of pods as it is asked for a subset: itself, or a percentage of all."""

from apimachinery import gotext
from apimachinery.intstr import IntOrString
from controller_manager.controllers.uniteddeployment.allocation.place import UNLIMITED, AllocationError, Place


def parse(total: int, value: IntOrString) -> int:
    """The number, a half being rounded up; a negative total is none. Or `AllocationError`."""
    if isinstance(value, int):
        if value < 0:
            raise AllocationError(f"subset replicas ({value}) should not be less than 0")
        return value
    if total < 0:
        raise AllocationError(
            f"subsetReplicas ({value}) should not be string when unitedDeployment replicas is empty"
        )
    percent = _percent(value)
    if not 0 <= percent <= 100:
        raise AllocationError(f"subset replicas ({value}) should be in range [0, 100]")
    return (total * percent + 50) // 100


def _percent(text: str) -> int:
    if not text.endswith("%"):
        raise AllocationError(
            f"subset replicas ({text}) only support integer value or percentage value with a suffix '%'"
        )
    try:
        return gotext.parse_int(text[:-1], function="Atoi")
    except gotext.NumberError as problem:
        raise AllocationError(
            f"subset replicas ({text}) should be correct percentage integer: {problem}"
        ) from None


def bounds(total: int, place: Place) -> tuple[int, int]:
    """The least and the most pods of a subset. What cannot be read counts as none."""
    return _bound(total, place.min_replicas, 0), _bound(total, place.max_replicas, UNLIMITED)


def _bound(total: int, value: IntOrString | None, absent: int) -> int:
    if value is None:
        return absent
    try:
        return parse(total, value)
    except AllocationError:
        return 0
