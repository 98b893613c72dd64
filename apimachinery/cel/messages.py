"""The messages of Protocol Buffers that every expression can create: wrappers, times, JSON, Any and Empty.

Except for Empty, the value of a message is one of CEL's own: `google.protobuf.Int32Value{value: 1}` is 1.
"""

import base64
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from . import times, types
from .types import Type
from .values import CelError, Duration, Opaque, Timestamp, Uint, from_map_key, map_key, type_name

_Fields: TypeAlias = dict[str, Any]

_PACKAGE: Final = "google.protobuf."
_JSON_LIST: Final = types.list_of(types.DYN)
_JSON_OBJECT: Final = types.map_of(types.STRING, types.DYN)
_WRAPPED: Final[Mapping[str, Type]] = {
    "BoolValue": types.BOOL,
    "BytesValue": types.BYTES,
    "DoubleValue": types.DOUBLE,
    "FloatValue": types.DOUBLE,
    "Int32Value": types.INT,
    "Int64Value": types.INT,
    "StringValue": types.STRING,
    "UInt32Value": types.UINT,
    "UInt64Value": types.UINT,
}
_TIME_FIELDS: Final[Mapping[str, Type]] = {"seconds": types.INT, "nanos": types.INT}
_FIELDS: Final[Mapping[str, Mapping[str, Type]]] = {
    **{name: {"value": type_} for name, type_ in _WRAPPED.items()},
    "Any": {"type_url": types.STRING, "value": types.BYTES},
    "Duration": _TIME_FIELDS,
    "Empty": {},
    "ListValue": {"values": _JSON_LIST},
    "Struct": {"fields": _JSON_OBJECT},
    "Timestamp": _TIME_FIELDS,
    "Value": {
        "null_value": types.NULL,
        "number_value": types.DOUBLE,
        "string_value": types.STRING,
        "bool_value": types.BOOL,
        "struct_value": _JSON_OBJECT,
        "list_value": _JSON_LIST,
    },
}
TYPES: Final[Mapping[str, Type]] = {
    _PACKAGE + name: type_
    for name, type_ in {
        **{name: Type(type_.kind, type_.name, nullable=True) for name, type_ in _WRAPPED.items()},
        "Any": types.ANY,
        "Duration": types.DURATION,
        "Empty": types.struct(f"{_PACKAGE}Empty"),
        "ListValue": _JSON_LIST,
        "Struct": _JSON_OBJECT,
        "Timestamp": types.TIMESTAMP,
        "Value": types.DYN,
    }.items()
}
"""By the full name of a message, the type of its value."""
_REPRESENTATIVES: Final[Mapping[Type, str]] = {type_: name for name, type_ in TYPES.items()} | {
    TYPES[_PACKAGE + name]: _PACKAGE + name for name in ("DoubleValue", "Int64Value", "UInt64Value")
}


def message_of(type_: Type) -> str | None:
    """Return the message whose fields creates a value of a type, as the checker of cel-go chooses it; None if there is none."""
    return _REPRESENTATIVES.get(type_)


def fields_of(name: str) -> Mapping[str, Type] | None:
    """Return the fields of a message; None if there is no such message."""
    return _FIELDS.get(name.removeprefix(_PACKAGE)) if name.startswith(_PACKAGE) else None


class Empty(Opaque):
    __slots__ = ()
    type_name = f"{_PACKAGE}Empty"

    def equals(self, other: object, /) -> bool:
        return isinstance(other, Empty)


def constructor(name: str) -> Callable[[_Fields], Any] | None:
    """Return the function that creates the value of a message from its fields; None if there is no such message."""
    return _CONSTRUCTORS.get(name.removeprefix(_PACKAGE)) if name.startswith(_PACKAGE) else None


def _wrapper(name: str, kind: type, fields: _Fields) -> Any:
    value = _scalar(name, "value", kind, fields)
    if name == "Int32Value" and not -(1 << 31) <= value < 1 << 31:
        raise _conversion_error(name, "value", "integer overflow")
    if name == "UInt32Value" and value >= 1 << 32:
        raise _conversion_error(name, "value", "unsigned integer overflow")
    if name == "FloatValue":
        try:
            return struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:  # as in Go, a double that is too large for a float is infinite
            return float("inf") if value > 0 else float("-inf")
    return value


def _scalar(message: str, field: str, kind: type, fields: _Fields) -> Any:
    """Return the value of a field, or its zero."""
    if field not in fields:
        return kind()
    value = fields[field]
    if type(value) is not kind:
        raise _conversion_error(
            message, field, f"unsupported type conversion from '{type_name(value)}' to {_GO_TYPES[kind]}"
        )
    return value


def _conversion_error(message: str, field: str, problem: str) -> CelError:
    return CelError(f"field type conversion error for {_PACKAGE}{message}.{field} value type: {problem}")


def _time(make: Callable[[int], Any], message: str, fields: _Fields) -> Any:
    seconds, nanos = (_scalar(message, name, int, fields) for name in ("seconds", "nanos"))
    return make(seconds * _SECOND + nanos)


def _value(fields: _Fields) -> Any:
    """Return the value of the last field, because the fields exclude each other; null if there is none."""
    for value in reversed(fields.values()):
        return to_json(value)
    return None


def _any(_fields: _Fields) -> Any:
    raise CelError("any.UnmarshalNew() failed during type conversion: proto: not found")


def to_json(value: Any) -> Any:
    """Return a value as JSON has it: numbers are doubles, and what JSON does not have is a string."""
    if isinstance(value, dict):
        return {map_key(_json_key(from_map_key(key))): to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str | float):
        return value
    if isinstance(value, int):
        return float(value) if abs(value) <= _MAX_JSON_INTEGER else str(int(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp):
        return times.text(value)
    if isinstance(value, Duration):
        return times.duration_text(value)
    raise CelError(f"unsupported type conversion from '{type_name(value)}' to google.protobuf.Value")


def _json_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise _conversion_error(
        "Struct", "fields", f"unsupported type conversion from '{type_name(key)}' to string"
    )


_SECOND: Final = 1_000_000_000
_MAX_JSON_INTEGER: Final = (1 << 53) - 1
_GO_TYPES: Final[Mapping[type, str]] = {
    bool: "bool", bytes: "[]uint8", float: "float64", int: "int64", str: "string", Uint: "uint64",
}  # fmt: skip
_PYTHON_TYPES: Final[Mapping[Type, type]] = {
    types.BOOL: bool, types.BYTES: bytes, types.DOUBLE: float, types.INT: int, types.STRING: str, types.UINT: Uint,
}  # fmt: skip
_CONSTRUCTORS: Final[Mapping[str, Callable[[_Fields], Any]]] = {
    **{name: partial(_wrapper, name, _PYTHON_TYPES[type_]) for name, type_ in _WRAPPED.items()},
    "Any": _any,
    "Duration": partial(_time, Duration, "Duration"),
    "Empty": lambda _fields: Empty(),
    "ListValue": lambda fields: to_json(fields.get("values", [])),
    "Struct": lambda fields: to_json(fields.get("fields", {})),
    "Timestamp": partial(_time, Timestamp, "Timestamp"),
    "Value": _value,
}
