"""JSON numbers as Go decodes and encodes them without a type.

A whole number that fits into 64 bits is decoded as int64, every other number as float64. A float64 is encoded with the
fewest digits that identify it; a whole one below 1e21 has neither a fraction nor an exponent.
"""

import math
from decimal import Decimal
from typing import Any, Final, TypeAlias

Number: TypeAlias = int | float

_INT64: Final = 2**63
_POSITIONAL_LIMIT: Final = 1e21


def as_decoded_by_go(value: Number) -> Number:
    return value if isinstance(value, float) or -_INT64 <= value < _INT64 else float(value)


def is_whole(value: Number) -> bool:
    return isinstance(value, int) or (math.isfinite(value) and value.is_integer())


def to_int(value: Number) -> int:
    """Return a whole number as an integer, exactly as its decimal digits."""
    return value if isinstance(value, int) else int(Decimal(repr(value)))


def int64(value: float) -> int:
    """Convert to int64 as the processor does: a number out of range becomes the smallest int64."""
    return math.trunc(value) if -_INT64 <= value < _INT64 else -_INT64


def round_trip(value: Number) -> Number:
    """Return a number after Go decodes and encodes it. Beyond 64 bits it stays a float, although Go writes its digits."""
    if value.__class__ is int and -_INT64 <= value < _INT64:
        return value
    number = float(value)
    written = to_int(number) if is_whole(number) and abs(number) < _POSITIONAL_LIMIT else number
    return written if -_INT64 <= written < _INT64 else number


def with_go_numbers(tree: Any) -> Any:
    """Return a tree with its numbers as Go encodes them; the same tree if none changes."""
    if tree.__class__ in (int, float):
        return round_trip(tree)
    if tree.__class__ is dict:
        changed = {name: new for name, item in tree.items() if (new := with_go_numbers(item)) is not item}
        return tree | changed if changed else tree
    if tree.__class__ is list:
        items = [with_go_numbers(item) for item in tree]
        return items if any(map(_differ, items, tree)) else tree
    return tree


def _differ(value: Any, other: Any) -> bool:
    return value is not other
