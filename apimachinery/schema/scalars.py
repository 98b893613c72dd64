"""Values without structure: how Go reads each from JSON and what it writes of it.

A reader takes a value that is not null, as orjson parses it, and returns what Go would write. It raises `WrongKind`,
or a ValueError with the message of Go's reader of that type, without the place of the value.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from mockube.apimachinery import quantity, timestamps
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.schema import base64text
from mockube.apimachinery.schema.model import Shape, Type

Read: TypeAlias = Callable[[Any], Any]


class WrongKind(Exception):
    """Another kind of JSON than the type takes, or a number that it does not hold."""


_INT32: Final = 2**31
_INT64: Final = 2**63

_WHOLE_FLOATS: Final = 2.0**53
"""Below, a float without a fraction is an integer and nothing else."""

_LONGEST_TIME: Final = 40
"""Times that are cached: longer ones have digits that no clock measures."""

_NO_TIME: Final = datetime(1, 1, 1, tzinfo=UTC)
"""What Go holds where no time was stored, and writes as null."""


def _string(value: Any) -> str:
    if value.__class__ is str:
        return value
    raise WrongKind


def _boolean(value: Any) -> bool:
    if value.__class__ is bool:
        return value
    raise WrongKind


def _int32(value: Any) -> int:
    if value.__class__ is int and -_INT32 <= value < _INT32:
        return value
    raise WrongKind


def _int64(value: Any) -> int:
    if value.__class__ is int and -_INT64 <= value < _INT64:
        return value
    raise WrongKind


def _byte(value: Any) -> int:
    if value.__class__ is int and 0 <= value < 256:
        return value
    raise WrongKind


def _number(value: Any) -> float | int:
    """Go writes a float without a point if there is nothing behind it."""
    if value.__class__ is not int and value.__class__ is not float:
        raise WrongKind
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < _WHOLE_FLOATS else number


def _int_or_string(value: Any) -> int | str:
    return value if value.__class__ is str else _int32(value)


@memoize(16384, max_length=32)
def _canonical_quantity(text: str) -> str:
    return str(quantity.parse(text.strip(quantity.SPACE)))


def _quantity(value: Any) -> str:
    return _canonical_quantity(value) if value.__class__ is str else str(quantity.from_json(value))


def _bytes(value: Any) -> str:
    """Base64, or a list of what the bytes are as numbers, which Go reads, too."""
    if value.__class__ is list:
        return base64text.encode(bytes(0 if item is None else _byte(item) for item in value))
    return base64text.canonical(_string(value))


@memoize(4096, max_length=_LONGEST_TIME)
def _canonical_time(text: str) -> str | None:
    time = timestamps.parse_time(text)
    return timestamps.format_time(time) if time != _NO_TIME else None


@memoize(4096, max_length=_LONGEST_TIME)
def _canonical_micro_time(text: str) -> str | None:
    time = timestamps.parse_micro_time(text)
    return timestamps.format_micro_time(time) if time != _NO_TIME else None


def _time(value: Any) -> str | None:
    return _canonical_time(_string(value))


def _micro_time(value: Any) -> str | None:
    return _canonical_micro_time(_string(value))


def _any(value: Any) -> Any:
    return value


_READERS: Final[Mapping[Shape, Read]] = {
    Shape.STRING: _string,
    Shape.BOOLEAN: _boolean,
    Shape.NUMBER: _number,
    Shape.QUANTITY: _quantity,
    Shape.INT_OR_STRING: _int_or_string,
    Shape.BYTES: _bytes,
    Shape.TIME: _time,
    Shape.MICRO_TIME: _micro_time,
    Shape.ANY: _any,
}
_INTEGERS: Final[Mapping[str, Read]] = {"int32": _int32, "int64": _int64, "uint8": _byte}


def reader(of: Type) -> Read:
    """How values of a type that has no structure are read."""
    return _INTEGERS[of.go] if of.shape is Shape.INTEGER else _READERS[of.shape]
