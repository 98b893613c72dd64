"""Durations in a human-readable form: `5m`, `2d3h`. The longer the duration, the coarser its units."""

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

UNKNOWN: Final = "<unknown>"


class _Scale(NamedTuple):
    """The format of durations below a number of seconds: a unit, and the remainder in a finer unit if it is not 0."""

    below: float
    unit: str
    finer: str = ""


_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "y": 365 * 24 * 3600}
_SCALES: Final = (
    _Scale(2 * _SECONDS["m"], "s"),
    _Scale(10 * _SECONDS["m"], "m", "s"),
    _Scale(3 * _SECONDS["h"], "m"),
    _Scale(8 * _SECONDS["h"], "h", "m"),
    _Scale(48 * _SECONDS["h"], "h"),
    _Scale(8 * _SECONDS["d"], "d", "h"),
    _Scale(2 * _SECONDS["y"], "d"),
    _Scale(8 * _SECONDS["y"], "y", "d"),
    _Scale(float("inf"), "y"),
)


def human_duration(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)  # clocks of two machines may differ a little
    scale = next(scale for scale in _SCALES if seconds < scale.below)
    count, rest = divmod(seconds, _SECONDS[scale.unit])
    finer = rest // _SECONDS[scale.finer] if scale.finer else 0
    return f"{count}{scale.unit}{finer}{scale.finer}" if finer else f"{count}{scale.unit}"


def since(time: datetime | None, now: datetime) -> str:
    return human_duration(now - time) if time else UNKNOWN


def age(tree: ReadOnlyTree, now: datetime) -> str:
    """Return the age of the object."""
    return since(meta.creation_timestamp(tree), now)
