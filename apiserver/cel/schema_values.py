"""Conversion of decoded JSON to the values of its schema: times, bytes, doubles, and lists that are sets or maps."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import durations
from mockube.apimachinery.cel import times
from mockube.apimachinery.cel.values import SECOND, CelError, Duration, TypedList, equals

Convert = Callable[[Any], Any]
Schema = Mapping[str, Any]
_SPAN = re.compile(r"(?<![0-9])([0-9]+)\s*([A-Za-zµ]+)")
_UNITS: Final = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
    "hr": 3600 * SECOND,
    "d": 86400 * SECOND,
    "w": 604800 * SECOND,
    "wk": 604800 * SECOND,
}
_UNIT_PREFIXES: Final = {
    "nano": 1,
    "micro": 1000,
    "milli": 1_000_000,
    "sec": SECOND,
    "min": 60 * SECOND,
    "hour": 3600 * SECOND,
    "day": 86400 * SECOND,
    "week": 604800 * SECOND,
}


def converter(schema: Schema) -> Convert | None:
    """Return the function that converts decoded JSON to values; None if no conversion is necessary."""
    if schema.get("x-kubernetes-int-or-string"):
        return None
    kind = schema.get("type")
    if kind == "array":
        return _list_converter(schema)
    if kind == "object" or "properties" in schema:
        return _object_converter(schema)
    if kind == "number":
        return _double
    return _FORMATS.get(schema.get("format", "")) if kind == "string" else None


def _object_converter(schema: Schema) -> Convert | None:
    properties = schema.get("properties")
    if properties:
        converters = {
            name: property_converter
            for name, part in properties.items()
            if (property_converter := converter(part))
        }
        nullable = frozenset(name for name, part in properties.items() if part.get("nullable"))
        return _properties_converter(converters, nullable) if converters or nullable else None
    additional = schema.get("additionalProperties")
    convert = converter(additional) if isinstance(additional, Mapping) else None
    if convert is None:
        return None
    return lambda value: (
        {key: convert(item) for key, item in value.items()} if isinstance(value, dict) else value
    )


def _properties_converter(converters: Mapping[str, Convert], nullable: frozenset[str]) -> Convert:
    """Return the function that converts properties, and removes nullable ones that are null."""

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            key: converters[key](item) if key in converters else item
            for key, item in value.items()
            if item is not None or key not in nullable
        }

    return convert


def _list_converter(schema: Schema) -> Convert | None:
    items = schema.get("items")
    convert = converter(items) if isinstance(items, Mapping) else None
    list_type = schema.get("x-kubernetes-list-type")
    if list_type == "set":
        return lambda value: SetList(_convert_items(value, convert)) if isinstance(value, list) else value
    if list_type == "map":
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        return lambda value: (
            MapList(_convert_items(value, convert), keys) if isinstance(value, list) else value
        )
    if convert is None:
        return None
    return lambda value: _convert_items(value, convert) if isinstance(value, list) else value


def _convert_items(items: list[Any], convert: Convert | None) -> list[Any]:
    return items if convert is None else [convert(item) for item in items]


def _double(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return times.parse(value.upper()) or value
    except CelError:
        return value


def _date(value: Any) -> Any:
    return _timestamp(f"{value}T00:00:00Z") if isinstance(value, str) else value


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return Duration(durations.parse_duration(value))
    except durations.DurationError:
        total = sum(int(count) * _unit(unit.lower()) for count, unit in _SPAN.findall(value))
        return Duration(total)


def _unit(name: str) -> int:
    if name in _UNITS:
        return _UNITS[name]
    return next((span for prefix, span in _UNIT_PREFIXES.items() if name.startswith(prefix)), 0)


def _bytes(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return value


_FORMATS: Final[dict[str, Convert]] = {
    "byte": _bytes,
    "date": _date,
    "date-time": _timestamp,
    "duration": _duration,
}


class SetList(TypedList):
    """A list of `x-kubernetes-list-type: set`: the order does not matter, and a sum has no element twice."""

    __slots__ = ()

    def equals(self, other: list[Any], /) -> bool:
        if len(self) != len(other):
            return False
        _check_scalars(self)
        for item in other:
            _check_scalars((item,))
            if not _is_in(item, self):
                return False
        return all(_is_in(item, other) for item in self)

    def add(self, other: list[Any], /) -> list[Any]:
        _check_scalars(self)
        _check_scalars(other)
        joined = list(self)
        joined += [
            item for i, item in enumerate(other) if not _is_in(item, self) and not _is_in(item, other[:i])
        ]
        return SetList(joined)


def _check_scalars(items: Iterable[Any]) -> None:
    if any(isinstance(item, list | dict) for item in items):
        raise CelError("listSet operations are only supported on lists of scalar values")


def _is_in(item: Any, items: Sequence[Any]) -> bool:
    return any(equals(item, other) for other in items)


class MapList(TypedList):
    """A list of `x-kubernetes-list-type: map`: elements are identified by the values of their keys."""

    __slots__ = ("_keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self._keys = keys

    def with_items(self, items: list[Any]) -> "MapList":
        """Return a list of other items with the same keys."""
        return MapList(items, self._keys)

    def _key(self, item: Any) -> tuple[Any, ...]:
        if not isinstance(item, dict):
            raise CelError("no such overload")
        return tuple((type(item.get(key)), item.get(key)) for key in self._keys)

    def equals(self, other: list[Any], /) -> bool:
        own_items = {self._key(item): item for item in self}
        if len(self) != len(other):
            return False
        keys = [self._key(item) for item in other]
        return all(
            key in own_items and equals(own_items[key], item) for key, item in zip(keys, other, strict=True)
        ) and own_items.keys() == {*keys}

    def add(self, other: list[Any], /) -> list[Any]:
        merged = {self._key(item): item for item in self}
        merged.update((self._key(item), item) for item in other)
        return MapList(list(merged.values()), self._keys)
