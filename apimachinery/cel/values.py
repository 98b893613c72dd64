"""Values of expressions, with their equality, order, type names and format.

Python's own types are values: bool, int (64 bits, signed), float, str, bytes, None, list and dict. The keys of a dict are
converted by `map_key`, because True and 1 are equal in Python.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from msgspec import Struct

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
UINT_MAX: Final = (1 << 64) - 1
SECOND: Final = 1_000_000_000
MIN_UNIX_TIME: Final = -62135596800
MAX_UNIX_TIME: Final = 253402300799
"""The years 1 to 9999, as in cel-go (common/types/timestamp.go)."""


class CelError(Exception):
    """An error of an evaluation, with cel-go's message; `||`, `&&` and comprehensions may absorb it."""

    cost = 0
    """The cost of the evaluation until the error."""


class CelPanic(Exception):
    """An error that ends the whole evaluation, where upstream's code panics."""

    def __str__(self) -> str:
        return f"internal error: {self.args[0]}"


class CostExceeded(Exception):
    """The evaluation exceeded its cost limit; operators do not absorb this error."""

    def __str__(self) -> str:
        return "operation cancelled: actual cost limit exceeded"


class Uint(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class Duration(Struct, frozen=True):
    nanoseconds: int


class Timestamp(Struct, frozen=True):
    nanoseconds: int
    """The time since 1970."""
    offset: int = 0
    """The offset of the time zone in its text, in seconds; only the format depends on it."""

    def at(self, zone: timezone | Any) -> datetime:
        return (_EPOCH + timedelta(seconds=self.nanoseconds // SECOND)).astimezone(zone)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Optional:
    """A value that may be absent."""

    __slots__ = ("_value", "present")

    def __init__(self, value: Any, *, present: bool = True) -> None:
        self._value = value
        self.present = present

    @property
    def value(self) -> Any:
        if not self.present:
            raise CelError("optional.none() dereference")
        return self._value


NONE: Final = Optional(None, present=False)


class TypeValue(Struct, frozen=True):
    name: str


class Opaque:
    """A value of a library's own type, such as an address or a quantity."""

    __slots__ = ()
    type_name: str = ""

    def equals(self, other: object, /) -> bool:
        """Return whether the value equals another value of any type."""
        return self == other

    def select(self, field: str, /) -> Any:
        """Return a field; raise CelError if it does not exist. Most types have no fields."""
        raise missing_key(field)


def missing_key(key: Any) -> CelError:
    return CelError(f"no such key: {format_value(key)}")


class _BoolKey:
    __slots__ = ("value",)

    def __init__(self, *, value: bool) -> None:
        self.value = value


_BOOL_KEYS = {True: _BoolKey(value=True), False: _BoolKey(value=False)}


class _IdentityKey:
    """A list or a map as a key. As upstream, it equals no other key, because its address is hashed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def map_key(value: Any) -> Any:
    """Return the key of a value in a dict."""
    if value is True or value is False:
        return _BOOL_KEYS[value]
    if isinstance(value, (str, int, float, Duration, Timestamp, TypeValue)) or value is None:
        return value
    if isinstance(value, bytes):
        raise CelPanic("runtime error: hash of unhashable type types.Bytes")
    return _IdentityKey(value)


def from_map_key(key: Any) -> Any:
    return key.value if isinstance(key, (_BoolKey, _IdentityKey)) else key


_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    Optional: "optional_type",
    TypeValue: "type",
}


def type_name(value: Any) -> str:
    """Return the name of a value's type at run time."""
    name = _TYPE_NAMES.get(type(value))
    if name is not None:
        return name
    if isinstance(value, list):
        return "list"
    if isinstance(value, dict):
        return "map"
    return str(value.type_name)


_SIMPLE_TYPES = (str, bytes, bool)
_NUMBER_TYPES = (int, float, Uint)


class TypedList(list[Any]):
    """A list whose equality and concatenation depend on its schema: a set, or a map."""

    __slots__ = ()

    def equals(self, other: list[Any], /) -> bool:
        raise NotImplementedError

    def add(self, other: list[Any], /) -> list[Any]:
        raise NotImplementedError


def equals(left: Any, right: Any) -> bool:
    """Return whether two values of any types are equal."""
    kind = type(left)
    if kind in _NUMBER_TYPES and type(right) in _NUMBER_TYPES:
        return _numbers_equal(left, right)
    if kind in _SIMPLE_TYPES or left is None or right is None:
        return kind is type(right) and bool(left == right)
    if isinstance(left, list):
        return isinstance(right, list) and _lists_equal(left, right)
    if isinstance(left, dict):
        return isinstance(right, dict) and _maps_equal(left, right)
    if kind is Timestamp:
        return type(right) is Timestamp and left.nanoseconds == right.nanoseconds
    if kind is Optional:
        return type(right) is Optional and _optionals_equal(left, right)
    if isinstance(left, Opaque):
        return left.equals(right)
    return kind is type(right) and bool(left == right)


def _numbers_equal(left: float, right: float) -> bool:
    if type(left) is float or type(right) is float:
        return float(left) == float(right) and _in_range(left, right) and _in_range(right, left)
    return left == right


def _in_range(number: float, other: float) -> bool:
    """Return whether a float is in the range of the other number's type; out of it they are not equal, even if rounded values are."""
    if type(number) is not float or type(other) is float:
        return True
    if type(other) is Uint:
        return 0 <= number <= UINT_MAX
    return INT_MIN <= number <= INT_MAX


def _lists_equal(left: list[Any], right: list[Any]) -> bool:
    if isinstance(left, TypedList):
        return left.equals(right)
    return len(left) == len(right) and all(map(_elements_equal, left, right))


def _elements_equal(left: Any, right: Any) -> bool:
    """Return whether two elements are equal; as upstream, elements that cannot be compared count as equal."""
    try:
        return equals(left, right)
    except CelError:
        return True


def equals_if_comparable(item: Any, element: Any) -> bool:
    """Return whether an item equals an element; False if they cannot be compared."""
    try:
        return equals(item, element)
    except CelError:
        return False


def _maps_equal(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and _elements_equal(value, right[key]) for key, value in left.items())


def _optionals_equal(left: Optional, right: Optional) -> bool:
    if not left.present or not right.present:
        return left.present == right.present
    return equals(left.value, right.value)


def compare(left: Any, right: Any) -> int:
    """Return -1, 0 or 1; raise CelError if the values have no order."""
    left_kind, right_kind = type(left), type(right)
    if left_kind in _NUMBER_TYPES:
        if right_kind not in _NUMBER_TYPES:
            raise CelError("no such overload")
        if left_kind is float or right_kind is float:
            return _compare_floats(left, right)
    elif left_kind is not right_kind or left_kind not in _ORDERED_TYPES:
        raise CelError("no such overload")
    elif left_kind in (Duration, Timestamp):
        left, right = left.nanoseconds, right.nanoseconds
    return int(left > right) - int(left < right)


_ORDERED_TYPES = (str, bytes, bool, Duration, Timestamp)
ORDERED: Final = (*_ORDERED_TYPES, *_NUMBER_TYPES)
"""Types whose values have an order."""
RECEIVERS: Final = (str, Duration, Timestamp)
"""Types with methods of their own: errors about operators on them do not name the operator."""


def _compare_floats(left: float, right: float) -> int:
    if math.isnan(left) or math.isnan(right):
        raise CelError("NaN values cannot be ordered")
    if math.isinf(left) or math.isinf(right):
        return int(left > right) - int(left < right)
    a, b = float(left), float(right)
    return int(a > b) - int(a < b)


def size(value: Any) -> int:
    """Return the number of characters, bytes, elements or entries; raise CelError for a value without a size."""
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise CelError("no such overload: size")


def format_value(value: Any) -> str:
    """Return a value in the format of Go's `%v`."""
    printer = _PRINTERS.get(type(value))
    if printer is not None:
        return printer(value)
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{format_value(from_map_key(key))}: {format_value(v)}" for key, v in value.items())
            + "}"
        )
    return str(value)


def _format_optional(value: Optional) -> str:
    return f"optional({format_value(value.value)})" if value.present else "optional.none()"


def format_double(value: float) -> str:
    """Return a number in the format of Go's `%g`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(abs(value))
    mantissa, _, exponent_text = text.partition("e")
    integer, _, fraction = mantissa.partition(".")
    digits = (integer + fraction).lstrip("0")
    sign = "-" if math.copysign(1, value) < 0 else ""
    if not digits.strip("0"):
        return f"{sign}0"
    leading = len(integer + fraction) - len(digits)
    exponent = len(integer) - leading - 1 + int(exponent_text or 0)
    digits = digits.rstrip("0")
    if exponent < -4 or exponent >= 6:
        rest = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + plain_decimal(digits, exponent)


def format_fixed(value: float) -> str:
    """Return a number with all its digits and without an exponent."""
    text = repr(value)
    if "e" not in text:
        return text.removesuffix(".0")
    mantissa, _, exponent = text.lstrip("-").partition("e")
    digits = mantissa.replace(".", "")
    decimal = plain_decimal(digits.rstrip("0") or "0", int(exponent))
    return f"-{decimal}" if text.startswith("-") else decimal


def plain_decimal(digits: str, exponent: int) -> str:
    """Return the decimal notation of digits, whose decimal point after the first digit is moved by the exponent."""
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def matches_type(value: Any, type_: Any) -> bool:
    """Return whether a value has a declared type, as far as that is checked at run time."""
    kind = type_.kind
    if kind in ("dyn", "any", "param"):
        return True
    if kind == "list":
        return isinstance(value, list) and (not value or matches_type(value[0], type_.parameters[0]))
    if kind == "map":
        if not isinstance(value, dict):
            return False
        return not value or all(
            map(matches_type, (from_map_key(next(iter(value))), next(iter(value.values()))), type_.parameters)
        )
    return bool(type_name(value) == type_.name)


_PRINTERS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    float: format_double,
    type(None): lambda _: "0",
    bytes: lambda value: f"[{' '.join(map(str, value))}]",
    Optional: _format_optional,
    TypeValue: lambda value: str(value.name),
}
