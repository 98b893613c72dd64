"""Numbers of a rolling update: pods that a partition keeps, surge, and unavailability."""

import math
import re
from fractions import Fraction
from typing import Final, NamedTuple

from mockube.apimachinery.intstr import IntOrString, scaled_value

_PERCENT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")
_MOST_DIGITS: Final = 100
"""Python refuses to parse thousands of them."""


def kept_by(partition: IntOrString | None, replicas: int) -> int:
    """The number of pods that a partition keeps. A percentage below 100% is rounded up, but leaves a pod to be updated."""
    if isinstance(partition, str):
        count = _share(partition, replicas)
        if count == replicas > 1 and partition != "100%":
            count = replicas - 1
    else:
        count = partition or 0
    return max(min(count, replicas), 0)


def _share(text: str, replicas: int) -> int:
    match = _PERCENT.fullmatch(text)
    if match is None:
        return 0
    integer, _, fraction = match[1].partition(".")
    if len(integer.lstrip("0")) > _MOST_DIGITS:
        return replicas + 1
    return math.ceil(Fraction(f"{integer[-_MOST_DIGITS:]}.{fraction[:_MOST_DIGITS] or 0}") * replicas / 100)


class Fenceposts(NamedTuple):
    surge: int
    unavailable: int


def fenceposts(
    max_surge: IntOrString | None, max_unavailable: IntOrString | None, replicas: int
) -> Fenceposts:
    """Return both as numbers. A surge is rounded up and unavailability down, so that a small workload keeps its pods.

    If both are rounded to 0, one pod may be unavailable, because the rollout could not begin otherwise.
    """
    surge = scaled_value(max_surge or 0, replicas, round_up=True)
    unavailable = scaled_value(max_unavailable or 0, replicas, round_up=False)
    return Fenceposts(surge, unavailable if surge or unavailable else 1)
