"""How many pods a partition keeps as they were."""

import math
import re
from fractions import Fraction
from typing import Final

from apimachinery.intstr import IntOrString

_PERCENT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")


def kept_by(partition: IntOrString | None, replicas: int) -> int:
    """A share is rounded up, but one of less than all leaves a pod to be updated. What is neither keeps nothing."""
    if isinstance(partition, str):
        kept = _share(partition, replicas)
        if kept == replicas > 1 and partition != "100%":
            kept = replicas - 1
    else:
        kept = partition or 0
    return max(min(kept, replicas), 0)


def _share(text: str, replicas: int) -> int:
    found = _PERCENT.fullmatch(text)
    return math.ceil(Fraction(found[1]) * replicas / 100) if found else 0
