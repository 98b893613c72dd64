"""Arithmetic operators with Go's limits: a result that does not fit into 64 bits is an error."""

import math
from typing import Any

from . import values
from .comprehensions import GrowingList
from .values import CelError, Duration, Timestamp, TypedList, Uint


def _int(value: int) -> int:
    if values.INT_MIN <= value <= values.INT_MAX:
        return value
    raise CelError("integer overflow")


def _uint(value: int) -> Uint:
    if 0 <= value <= values.UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def _duration(nanoseconds: int) -> Duration:
    return Duration(_int(nanoseconds))


def _timestamp(nanoseconds: int, offset: int) -> Timestamp:
    if values.MIN_UNIX_TIME <= nanoseconds // values.SECOND <= values.MAX_UNIX_TIME:
        return Timestamp(nanoseconds, offset)
    raise CelError("timestamp overflow")


def _no_overload(operator: str, left: Any, left_types: tuple[type, ...]) -> CelError:
    """Return the error for operands without an overload; it names the operator if the left type has no overload."""
    if type(left) in left_types or type(left) in values.RECEIVERS:
        return CelError("no such overload")
    return CelError(f"no such overload: {operator}")


_ADDABLE_TYPES = (int, float, Uint, bytes, list, GrowingList)
_SUBTRACTABLE_TYPES = (int, float, Uint)
_INTEGER_TYPES = (int, Uint)


def add(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is int and type(right) is int:
        return _int(left + right)
    if kind in (str, float, bytes) and type(right) is kind:
        return left + right
    if kind is Uint and type(right) is Uint:
        return _uint(left + right)
    if isinstance(left, list) and isinstance(right, list):
        return _join(left, right)
    if kind is Duration:
        return _add_to_duration(left, right)
    if kind is Timestamp and type(right) is Duration:
        return _timestamp(left.nanoseconds + right.nanoseconds, left.offset)
    raise _no_overload("_+_", left, _ADDABLE_TYPES)


def _add_to_duration(left: Duration, right: Any) -> Any:
    if type(right) is Duration:
        return _duration(left.nanoseconds + right.nanoseconds)
    if type(right) is Timestamp:
        return _timestamp(left.nanoseconds + right.nanoseconds, right.offset)
    raise CelError("no such overload")


def _join(left: list[Any], right: list[Any]) -> list[Any]:
    if type(left) is GrowingList:
        left.extend(right)
        return left
    if isinstance(left, TypedList):
        return left.add(right)
    return [*left, *right]


def subtract(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is int and type(right) is int:
        return _int(left - right)
    if kind is float and type(right) is float:
        return left - right
    if kind is Uint and type(right) is Uint:
        return _uint(left - right)
    if kind is Duration and type(right) is Duration:
        return _duration(left.nanoseconds - right.nanoseconds)
    if kind is Timestamp and type(right) is Duration:
        return _timestamp(left.nanoseconds - right.nanoseconds, left.offset)
    if kind is Timestamp and type(right) is Timestamp:
        return _duration(left.nanoseconds - right.nanoseconds)
    raise _no_overload("_-_", left, _SUBTRACTABLE_TYPES)


def multiply(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, float, Uint):
        raise _no_overload("_*_", left, _SUBTRACTABLE_TYPES)
    if kind is int:
        return _int(left * right)
    return left * right if kind is float else _uint(int(left) * int(right))


def divide(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, float, Uint):
        raise _no_overload("_/_", left, _SUBTRACTABLE_TYPES)
    if kind is float:
        return _divide_floats(left, right)
    if right == 0:
        raise CelError("division by zero")
    if kind is Uint:
        return Uint(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return _int(quotient if (left < 0) == (right < 0) else -quotient)


def _divide_floats(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def modulo(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right) or kind not in (int, Uint):
        raise _no_overload("_%_", left, _INTEGER_TYPES)
    if right == 0:
        raise CelError("modulus by zero")
    if kind is Uint:
        return Uint(int(left) % int(right))
    if left == values.INT_MIN and right == -1:
        raise CelError("integer overflow")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def negate(value: Any) -> Any:
    if type(value) is int:
        return _int(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return _duration(-value.nanoseconds)
    raise _no_overload("-_", value, ())
