"""Values that do not have the type of their schema: only an expression that reads one fails.

Validation accepts 1000.0 as an integer, but Go decodes it as a float, which an expression does not accept as an int.
Such numbers are rare, so a caller first checks the object's JSON for them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import orjson

from mockube.apimachinery.cel.values import CelError

from .schema_values import MapList

Schema = Mapping[str, Any]
_WHOLE_FLOAT_ENDS: Final = (b".0,", b".0}", b".0]")
_NOT_AN_INTEGER: Final = "invalid data, expected int, got float64"
_NOT_INT_OR_STRING: Final = "invalid data, expected XIntOrString value to be either a string or integer"


class InvalidValue:
    """A value with another type than its schema's: reading it raises an error."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def raise_error(self) -> NoReturn:
        raise CelError(self.message)


class _MapWithInvalidValues(dict[str, Any]):
    """A map with invalid values, which raise an error when they are read."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) is InvalidValue:
            value.raise_error()
        return value

    def items(self) -> Any:
        for value in super().values():
            if type(value) is InvalidValue:
                value.raise_error()
        return super().items()


class _ListWithInvalidValues(list[Any]):
    """A list with invalid values, which raise an error when they are read."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        if type(value) is InvalidValue:
            value.raise_error()
        return value

    def __iter__(self) -> Iterator[Any]:
        for value in super().__iter__():
            if type(value) is InvalidValue:
                value.raise_error()
            yield value


def may_have_float_integers(tree: Any) -> bool:
    """Return whether an object may contain a float without a fraction."""
    text = orjson.dumps(tree)
    return any(text.find(end) >= 0 for end in _WHOLE_FLOAT_ENDS)


def with_invalid_values(schema: Schema, value: Any) -> Any:
    """Return a converted value with an InvalidValue in place of each float that its schema declares as an integer."""
    if type(value) is float:
        return _number(schema, value)
    if isinstance(value, dict):
        return _map(schema, value)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        return _list(items, value)
    return value


def _number(schema: Schema, value: float) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return InvalidValue(_NOT_INT_OR_STRING)
    return InvalidValue(_NOT_AN_INTEGER) if schema.get("type") == "integer" else value


def _map(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    members = {}
    for key, item in value.items():
        member_schema = properties.get(key, additional)
        members[key] = (
            with_invalid_values(member_schema, item) if isinstance(member_schema, Mapping) else item
        )
    return (
        _MapWithInvalidValues(members)
        if any(type(item) is InvalidValue for item in members.values())
        else members
    )


def _list(items: Schema, value: list[Any]) -> list[Any]:
    elements = [with_invalid_values(items, item) for item in value]
    if any(type(item) is InvalidValue for item in elements):
        return _ListWithInvalidValues(elements)
    return (
        value.with_items(elements)
        if isinstance(value, MapList)
        else elements
        if type(value) is list
        else value
    )
