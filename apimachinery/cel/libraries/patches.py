"""Values that expressions of mutating policies create: objects of apply configurations, and operations of a JSON patch."""

import base64
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mockube.apimachinery import json_pointer
from mockube.apimachinery.cel import times, types
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.types import Type
from mockube.apimachinery.cel.values import (
    CelError,
    Duration,
    Opaque,
    Timestamp,
    equals,
    from_map_key,
    missing_key,
    type_name,
)

OBJECT: Final = "Object"
_MAX_EXACT_INTEGER: Final = 2**53
"""A double below this holds every integer exactly, and is written as one."""
JSON_PATCH: Final = "JSONPatch"
_PATCH_FIELDS: Final[Mapping[str, Type]] = {
    "op": types.STRING,
    "path": types.STRING,
    "from": types.STRING,
    "value": types.DYN,
}
DECLARED: Final = declare("jsonpatch.escapeKey string_jsonpatch_escapeKey_string (string) -> string")
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_jsonpatch_escapeKey_string": json_pointer.escape,
}


class _AnyField(Mapping[str, Type]):
    """The fields of an object without a schema: all names exist, with the type dyn."""

    def __getitem__(self, name: str) -> Type:
        return types.DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __contains__(self, name: object) -> bool:
        return True


class _PatchFields(dict[str, Type]):
    """The fields of a JSONPatch. As upstream, any other name is a field of a type without a name."""

    def __missing__(self, name: str) -> Type:
        return types.UNSPECIFIED

    def __contains__(self, name: object) -> bool:
        return True


def is_object(name: str) -> bool:
    return name == OBJECT or name.startswith(f"{OBJECT}.")


def struct_fields(name: str) -> Mapping[str, Type] | None:
    if name == JSON_PATCH:
        return _PatchFields(_PATCH_FIELDS)
    return _AnyField() if is_object(name) else None


class ObjectValue(Opaque):
    """An object, or a part of one; the name of its type is the path of its field."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.name = name
        self.fields = fields

    @property
    def type_name(self) -> str:  # type: ignore[override]
        return self.name

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, ObjectValue) or self.name != other.name:
            return False
        return equals(self.fields, other.fields)

    def select(self, field: str, /) -> Any:
        if field not in self.fields:
            raise missing_key(field)
        return self.fields[field]


class PatchOperation(Opaque):
    """One operation of a JSON patch."""

    __slots__ = ("fields",)
    type_name = JSON_PATCH

    def __init__(self, fields: dict[str, Any]) -> None:
        if unknown := fields.keys() - _PATCH_FIELDS.keys():
            raise CelError(f"unexpected JSONPatchType field: {min(unknown)}")
        for name in ("op", "path", "from"):
            if not isinstance(fields.get(name, ""), str):
                raise CelError(f"unexpected type {type_name(fields[name])} for JSONPatchType '{name}' field")
        self.fields = fields

    def equals(self, other: object, /) -> bool:
        return isinstance(other, PatchOperation) and equals(self.fields, other.fields)

    def select(self, field: str, /) -> Any:
        return self.fields.get(field, "")


def struct_constructor(name: str) -> Callable[[dict[str, Any]], Any]:
    """Return the function that creates a struct from its fields."""
    if name == JSON_PATCH:
        return PatchOperation
    return lambda fields: ObjectValue(name, fields)


def to_json_value(value: Any) -> Any:
    """Return a value as decoded JSON; raise CelError if it cannot be represented."""
    if isinstance(value, ObjectValue):
        return {key: to_json_value(item) for key, item in value.fields.items()}
    if isinstance(value, dict):
        return {str(from_map_key(key)): to_json_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [to_json_value(item) for item in value]
    if value is None or isinstance(value, (str, bool)):
        return value
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CelError(f"json: unsupported value: {value}")
        return int(value) if value.is_integer() and abs(value) < _MAX_EXACT_INTEGER else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp):
        return times.text(value)
    if isinstance(value, Duration):
        return times.duration_text(value)
    raise CelError(f"unsupported type {type_name(value)}")


def type_name_errors(value: Any, path: tuple[str, ...] = (OBJECT,)) -> Iterator[str]:
    """Yield the errors of objects whose types are not named after the paths of their fields."""
    if isinstance(value, ObjectValue):
        if value.name != ".".join(path):
            yield (
                f'unexpected type name "{value.name}", expected "{".".join(path)}", which matches field name path '
                "from root Object type"
            )
        for key, item in value.fields.items():
            yield from type_name_errors(item, (*path, key))
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from type_name_errors(item, path)
