"""Strings, numbers and bytes: the fields that are not messages.

`ScalarCodec.read` converts the value after a tag, which is a number for the wire type VARINT and bytes otherwise;
`ScalarCodec.write` returns the bytes that follow the tag.
"""

import base64
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any

import orjson
from msgspec import Struct

from .varint import FIXED64, LENGTH, VARINT, ProtobufError, varint, with_length

_DOUBLE = struct.Struct("<d")
_TRUE, _FALSE = varint(1), varint(0)


class ScalarCodec(Struct, frozen=True, kw_only=True):
    wire_type: int
    zero: Any
    nilable: bool = False
    """Whether a missing value is nil in Go and null in JSON; otherwise it is the zero value."""
    read: Callable[[Any], Any]
    write: Callable[[Any], bytes]


def _type_error(value: object, expected: str) -> ProtobufError:
    return ProtobufError(f"cannot write {type(value).__name__} as {expected}")


def write_string(value: object) -> bytes:
    if type(value) is not str:
        raise _type_error(value, "string")
    return with_length(value.encode())


def _read_bool(number: int) -> bool:
    return number != 0


def _write_bool(value: object) -> bytes:
    if type(value) is not bool:
        raise _type_error(value, "bool")
    return _TRUE if value else _FALSE


def _signed_reader(bits: int) -> Callable[[int], int]:
    """Return a reader of signed numbers, which drops excess bits as Go does."""
    modulus, half = 1 << bits, 1 << bits - 1

    def read(number: int) -> int:
        if number < half:
            return number
        number %= modulus
        return number - modulus if number >= half else number

    return read


def _integer(bits: int) -> Callable[[object], bytes]:
    half = 1 << bits - 1

    def write(value: object) -> bytes:
        if type(value) is not int or not -half <= value < half:
            raise _type_error(value, f"int{bits}")
        return varint(value % (1 << 64))

    return write


def _read_double(payload: bytes) -> int | float:
    """Return a double; a whole number becomes an int, since JSON has one type of numbers."""
    value: float = _DOUBLE.unpack(payload)[0]
    if not math.isfinite(value):
        raise ProtobufError(f"unsupported value: {value}")
    return int(value) if value.is_integer() and abs(value) < 1 << 63 else value


def _write_double(value: object) -> bytes:
    if type(value) is not int and type(value) is not float:
        raise _type_error(value, "double")
    return _DOUBLE.pack(value)


def _read_bytes(payload: bytes) -> str:
    return base64.b64encode(payload).decode()


def _write_bytes(value: object) -> bytes:
    if type(value) is not str:
        raise _type_error(value, "bytes")
    try:
        return with_length(base64.b64decode(value, validate=True))
    except ValueError as error:
        raise ProtobufError(f"illegal base64 data: {error}") from error


def _read_json(payload: bytes) -> Any:
    if not payload:
        return None
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise ProtobufError(f"invalid JSON within protobuf: {error}") from error


def _write_json(value: object) -> bytes:
    try:
        return with_length(orjson.dumps(value))
    except orjson.JSONEncodeError as error:
        raise ProtobufError(f"cannot write JSON within protobuf: {error}") from error


SCALARS: Mapping[str, ScalarCodec] = {
    "string": ScalarCodec(wire_type=LENGTH, zero="", read=bytes.decode, write=write_string),
    "bool": ScalarCodec(wire_type=VARINT, zero=False, read=_read_bool, write=_write_bool),
    "int32": ScalarCodec(wire_type=VARINT, zero=0, read=_signed_reader(32), write=_integer(32)),
    "int64": ScalarCodec(wire_type=VARINT, zero=0, read=_signed_reader(64), write=_integer(64)),
    "double": ScalarCodec(wire_type=FIXED64, zero=0, read=_read_double, write=_write_double),
    "bytes": ScalarCodec(wire_type=LENGTH, zero="", nilable=True, read=_read_bytes, write=_write_bytes),
    "json": ScalarCodec(wire_type=LENGTH, zero=None, nilable=True, read=_read_json, write=_write_json),
}
"""By type name in the table; `json` are bytes with JSON text."""
