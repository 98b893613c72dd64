"""Check that lists of the types set and map have no duplicate items."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gonumbers import as_decoded_by_go, with_go_numbers
from mockube.apimachinery.paths import Path
from mockube.apiserver.kinds.common.checks import Check, all_of, each_item
from mockube.apiserver.kinds.jsonschema.schema import (
    ANY_VALUE,
    LIST_TYPE,
    MAP_KEYS,
    Schema,
    additional_properties,
    items,
    properties,
)


def lists_checker(schema: Schema) -> Check | None:
    """Return a check of the lists at any depth; None if there is no such list."""
    checks = [
        check for check in (_list_check(schema), _elements(schema), _members(schema)) if check is not None
    ]
    return all_of(*checks) if checks else None


def _list_check(schema: Schema) -> Check | None:
    kind = schema.get(LIST_TYPE)
    if kind == "set":
        return _unique_elements
    return _unique_keys(tuple(schema.get(MAP_KEYS) or ())) if kind == "map" else None


def _unique_elements(value: Any, path: Path) -> Iterable[FieldError]:
    return _duplicate_errors(value, value, path) if isinstance(value, list) else ()


def _unique_keys(names: tuple[str, ...]) -> Check:
    def check(value: Any, path: Path) -> Iterable[FieldError]:
        if not isinstance(value, list):
            return ()
        for index, item in enumerate(value):
            if not isinstance(item, dict | None):
                problem = "must be an object for an array of list-type map"
                return (errors.invalid(path.index(index), item, problem),)
        keys = [_keys(names, item or {}) for item in value]
        compared = keys if len(names) != 1 else [key.get(names[0], _UNSPECIFIED) for key in keys]
        return _duplicate_errors(compared, keys, path)

    return check


def _keys(names: tuple[str, ...], item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in names if name in item}


_UNSPECIFIED: Final = object()
"""The value of an absent key."""


def _duplicate_errors(values: Sequence[Any], reported_values: Sequence[Any], path: Path) -> list[FieldError]:
    """Return an error for the second of equal values; further ones are not reported."""
    field_errors = []
    seen: dict[object, int] = {}
    for index, value in enumerate(values):
        identity = _identity(value)
        times = seen[identity] = seen.get(identity, 0) + 1
        if times == 2:
            field_errors.append(errors.duplicate(path.index(index), reported_values[index]))
    return field_errors


def _identity(value: Any) -> object:
    """Return a hashable key for comparison. Upstream compares scalars by Go type and value, and other values as JSON."""
    if value.__class__ in (dict, list):
        return orjson.dumps(with_go_numbers(value), option=orjson.OPT_SORT_KEYS)
    number = as_decoded_by_go(value) if value.__class__ in (int, float) else value
    return number.__class__, number


def _elements(schema: Schema) -> Check | None:
    if schema.get("type") != "array":
        return None
    inner = lists_checker(items(schema))
    if inner is None:
        return None
    of_each = each_item(inner)
    return lambda value, path: of_each(value, path) if isinstance(value, list) else ()


def _members(schema: Schema) -> Check | None:
    checkers = {name: lists_checker(inner) for name, inner in properties(schema).items()}
    member_checks = {name: inner for name, inner in checkers.items() if inner is not None}
    others = additional_properties(schema)
    rest = None if others is None or others is ANY_VALUE else lists_checker(others)
    if not member_checks and rest is None:
        return None

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        field_errors: list[FieldError] = []
        for name, item in value.items() if isinstance(value, dict) else ():
            if name in member_checks:
                field_errors += member_checks[name](item, path.child(name))
            elif rest is not None and name not in properties(schema):
                field_errors += rest(item, path.key(name))
        return field_errors

    return check
