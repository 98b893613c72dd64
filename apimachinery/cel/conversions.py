"""The conversion functions, which are named after types. Texts have Go's notation."""

import math
from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery import durations, gotext
from mockube.apimachinery.gotext import BOOLEANS

from . import times, values
from .values import CelError, Duration, Timestamp, Uint

DECLARATIONS: Final = """
    bool bool_to_bool (bool) -> bool
    bool string_to_bool (string) -> bool
    bytes bytes_to_bytes (bytes) -> bytes
    bytes string_to_bytes (string) -> bytes
    double double_to_double (double) -> double
    double int64_to_double (int) -> double
    double string_to_double (string) -> double
    double uint64_to_double (uint) -> double
    duration duration_to_duration (duration) -> duration
    duration int64_to_duration (int) -> duration
    duration string_to_duration (string) -> duration
    int int64_to_int64 (int) -> int
    int double_to_int64 (double) -> int
    int duration_to_int64 (duration) -> int
    int string_to_int64 (string) -> int
    int timestamp_to_int64 (timestamp) -> int
    int uint64_to_int64 (uint) -> int
    string string_to_string (string) -> string
    string bool_to_string (bool) -> string
    string bytes_to_string (bytes) -> string
    string double_to_string (double) -> string
    string duration_to_string (duration) -> string
    string int64_to_string (int) -> string
    string timestamp_to_string (timestamp) -> string
    string uint64_to_string (uint) -> string
    timestamp timestamp_to_timestamp (timestamp) -> timestamp
    timestamp int64_to_timestamp (int) -> timestamp
    timestamp string_to_timestamp (string) -> timestamp
    uint uint64_to_uint64 (uint) -> uint
    uint double_to_uint64 (double) -> uint
    uint int64_to_uint64 (int) -> uint
    uint string_to_uint64 (string) -> uint
"""


def _conversion_error(source: str, target: str) -> CelError:
    return CelError(f"type conversion error from '{source}' to '{target}'")


def _bool(text: str) -> bool:
    if text in BOOLEANS:
        return BOOLEANS[text]
    raise _conversion_error("string", "bool")


def _is_digits(text: str, *, signed: bool) -> bool:
    digits = text[1:] if signed and text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit() and len(digits) < 4000


def _int_of_text(text: str) -> int:
    if _is_digits(text, signed=True):
        value = int(text)
        if values.INT_MIN <= value <= values.INT_MAX:
            return value
    raise _conversion_error("string", "int")


def _uint_of_text(text: str) -> Uint:
    if _is_digits(text, signed=False):
        value = int(text)
        if value <= values.UINT_MAX:
            return Uint(value)
    raise _conversion_error("string", "uint")


def _double_of_text(text: str) -> float:
    try:
        return gotext.parse_float(text)
    except gotext.NumberError:
        raise _conversion_error("string", "double") from None


def _int_of_double(value: float) -> int:
    if math.isnan(value) or math.isinf(value) or value <= -(2.0**63) or value >= 2.0**63:
        raise CelError("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> Uint:
    if math.isnan(value) or math.isinf(value) or value < 0 or value >= 2.0**64:
        raise CelError("unsigned integer overflow")
    return Uint(int(value))


def _uint_of_int(value: int) -> Uint:
    if value < 0:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def _int_of_uint(value: Uint) -> int:
    if value > values.INT_MAX:
        raise CelError("integer overflow")
    return int(value)


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _duration(text: str) -> Duration:
    try:
        return Duration(durations.parse_duration(text))
    except durations.DurationError:
        raise _conversion_error("string", "google.protobuf.Duration") from None


def _no_duration(_value: int) -> Duration:
    raise _conversion_error("int", "google.protobuf.Duration")


def _timestamp(text: str) -> Timestamp:
    timestamp = times.parse(text)
    if timestamp is None:
        raise _conversion_error("string", "google.protobuf.Timestamp")
    return timestamp


def _identity(value: Any) -> Any:
    return value


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "bool_to_bool": _identity,
    "string_to_bool": _bool,
    "bytes_to_bytes": _identity,
    "string_to_bytes": lambda text: text.encode(errors="surrogatepass"),
    "double_to_double": _identity,
    "int64_to_double": float,
    "string_to_double": _double_of_text,
    "uint64_to_double": float,
    "duration_to_duration": _identity,
    "int64_to_duration": _no_duration,
    "string_to_duration": _duration,
    "int64_to_int64": _identity,
    "double_to_int64": _int_of_double,
    "duration_to_int64": lambda value: value.nanoseconds,
    "string_to_int64": _int_of_text,
    "timestamp_to_int64": lambda value: value.nanoseconds // 1_000_000_000,
    "uint64_to_int64": _int_of_uint,
    "string_to_string": _identity,
    "bool_to_string": lambda value: "true" if value else "false",
    "bytes_to_string": _text_of_bytes,
    "double_to_string": values.format_double,
    "duration_to_string": times.duration_text,
    "int64_to_string": str,
    "timestamp_to_string": times.text,
    "uint64_to_string": lambda value: str(int(value)),
    "timestamp_to_timestamp": _identity,
    "int64_to_timestamp": times.from_seconds,
    "string_to_timestamp": _timestamp,
    "uint64_to_uint64": _identity,
    "double_to_uint64": _uint_of_double,
    "int64_to_uint64": _uint_of_int,
    "string_to_uint64": _uint_of_text,
}
"""The functions, by overload."""
