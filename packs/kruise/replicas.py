"""Replicas as a number or as a percentage of the total: those of a UnitedDeployment's subset, and of a partition."""

import math
from typing import Final

from mockube.apimachinery import gotext
from mockube.apimachinery.intstr import IntOrString, IntOrStringError

_OVERFLOW: Final = -(2**63)
"""Go's conversion of a float that is no 64-bit number to an integer."""


class SubsetReplicasError(ValueError):
    """A value is not a valid number of subset replicas; the message is OpenKruise's."""


def parse_subset_replicas(total: int, value: IntOrString) -> int:
    """Return the replicas of a subset: a number, or a percentage of the total, rounded half up. A negative total is unset."""
    if isinstance(value, int):
        if value < 0:
            raise SubsetReplicasError(f"subset replicas ({value}) should not be less than 0")
        return value
    if total < 0:
        problem = "should not be string when unitedDeployment replicas is empty"
        raise SubsetReplicasError(f"subsetReplicas ({value}) {problem}")
    percent = _percent(value)
    if not 0 <= percent <= 100:
        raise SubsetReplicasError(f"subset replicas ({value}) should be in range [0, 100]")
    return (total * percent + 50) // 100


def _percent(text: str) -> int:
    if not text.endswith("%"):
        problem = "only support integer value or percentage value with a suffix '%'"
        raise SubsetReplicasError(f"subset replicas ({text}) {problem}")
    try:
        return gotext.parse_int(text[:-1], function="Atoi")
    except gotext.NumberError as error:
        problem = f"should be correct percentage integer: {error}"
        raise SubsetReplicasError(f"subset replicas ({text}) {problem}") from None


def scaled_share(value: IntOrString | None, total: int) -> int:
    """Return a number unchanged, or a percentage of the total, which may have a fraction, rounded up.

    Raise `IntOrStringError` with OpenKruise's message if it is neither.
    """
    if value is None:
        raise IntOrStringError("nil value for IntOrString")
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise IntOrStringError("invalid type: string is not a percentage")
    try:
        share = gotext.parse_float(value[:-1]) * total / 100
    except gotext.NumberError as error:
        raise IntOrStringError(str(error)) from error
    return math.ceil(share) if abs(share) < -_OVERFLOW else _OVERFLOW
