"""Numbers of JSON as Go reads and writes them where no type is known.

A whole number that fits into 64 bits is read as int64, and every other as float64, which is written with the fewest
digits that distinguish it from others, and without a fraction or an exponent if it has none and is below 1e21.
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
    """The digits of a number without a fraction."""
    return value if isinstance(value, int) else int(Decimal(repr(value)))


def int64(value: float) -> int:
    """As the processor converts: what does not fit is the least number."""
    return math.trunc(value) if -_INT64 <= value < _INT64 else -_INT64


def round_trip(value: Number) -> Number:
    """A number after it was read and written once; beyond 64 bits the digits that Go would write are left out."""
    if value.__class__ is int and -_INT64 <= value < _INT64:
        return value
    number = float(value)
    written = to_int(number) if is_whole(number) and abs(number) < _POSITIONAL_LIMIT else number
    return written if -_INT64 <= written < _INT64 else number


def rewritten(tree: Any) -> Any:
    """A tree with its numbers as Go writes them; the same tree if that changes nothing."""
    if tree.__class__ in (int, float):
        return round_trip(tree)
    if tree.__class__ is dict:
        changed = {name: new for name, item in tree.items() if (new := rewritten(item)) is not item}
        return tree | changed if changed else tree
    if tree.__class__ is list:
        items = [rewritten(item) for item in tree]
        return items if any(map(_differ, items, tree)) else tree
    return tree


def _differ(value: Any, other: Any) -> bool:
    return value is not other
