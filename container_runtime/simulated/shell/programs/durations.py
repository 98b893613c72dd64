"""Durations as arguments of programs."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

FOREVER: Final = float("inf")
_UNITS: Final[Mapping[str, int]] = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([smhd]?)")


def seconds_of(arguments: Sequence[str]) -> float | None:
    """Return the sum of durations such as 30, 1.5m or infinity in seconds; None if one is invalid."""
    if "infinity" in arguments or "inf" in arguments:
        return FOREVER
    spans = [_SPAN.fullmatch(argument) for argument in arguments]
    if not spans or None in spans:
        return None
    return sum(float(span[1]) * _UNITS[span[2]] for span in spans if span is not None)
