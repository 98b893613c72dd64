"""Values that are not of the type that their schema declares: an expression that reads one fails, others do not.

Validation takes 1000.0 for an integer, as Go reads it for a float, but an expression that the schema types as int does
not. Objects seldom have such a number, so they are looked for only where a text of the object shows one.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

import orjson

from mockube.apimachinery.cel.schema_values import MapList
from mockube.apimachinery.cel.values import CelError

Schema = Mapping[str, Any]
_ENDS: Final = (b".0,", b".0}", b".0]")
_NO_INTEGER: Final = "invalid data, expected int, got float64"
_NEITHER: Final = "invalid data, expected XIntOrString value to be either a string or integer"


class Fault:
    """Stands for a value that cannot be read."""

    __slots__ = ("problem",)

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def refuse(self) -> NoReturn:
        raise CelError(self.problem)


class _FaultyMap(dict[str, Any]):
    """A map with members that cannot be read."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if type(value) is Fault:
            value.refuse()
        return value

    def items(self) -> Any:
        for value in super().values():
            if type(value) is Fault:
                value.refuse()
        return super().items()


class _FaultyList(list[Any]):
    """A list with elements that cannot be read."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        if type(value) is Fault:
            value.refuse()
        return value

    def __iter__(self) -> Iterator[Any]:
        for value in super().__iter__():
            if type(value) is Fault:
                value.refuse()
            yield value


def may_have_float_integers(tree: Any) -> bool:
    """Whether an object may have a whole number that is a float."""
    text = orjson.dumps(tree)
    return any(text.find(end) >= 0 for end in _ENDS)


def with_faults(schema: Schema, value: Any) -> Any:
    """Return a value, as its schema's converter made it, with faults in place of floats that should be integers."""
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
        return Fault(_NEITHER)
    return Fault(_NO_INTEGER) if schema.get("type") == "integer" else value


def _map(schema: Schema, value: dict[str, Any]) -> dict[str, Any]:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    members = {}
    for key, item in value.items():
        of = properties.get(key, additional)
        members[key] = with_faults(of, item) if isinstance(of, Mapping) else item
    return _FaultyMap(members) if any(type(item) is Fault for item in members.values()) else members


def _list(items: Schema, value: list[Any]) -> list[Any]:
    elements = [with_faults(items, item) for item in value]
    if any(type(item) is Fault for item in elements):
        return _FaultyList(elements)
    return (
        value.with_items(elements)
        if isinstance(value, MapList)
        else elements
        if type(value) is list
        else value
    )
