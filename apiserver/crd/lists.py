"""Lists that a schema calls sets or maps hold nothing twice."""

from collections.abc import Iterable
from typing import Any

import orjson

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.crd.schema import ANYTHING, LIST_TYPE, MAP_KEYS, Schema, items, properties, values
from apiserver.validation.rules import Check, each, every


def lists_checker(schema: Schema) -> Check | None:
    """None if there is no such list in it, however deep."""
    checks = [check for check in (_own(schema), _elements(schema), _members(schema)) if check is not None]
    return every(*checks) if checks else None


def _own(schema: Schema) -> Check | None:
    kind = schema.get(LIST_TYPE)
    if kind == "set":
        return _unique(())
    if kind != "map":
        return None
    of_items = properties(items(schema))
    defaults = {name: (of_items.get(name) or {}).get("default") for name in schema.get(MAP_KEYS) or ()}
    return _unique(tuple(defaults.items()))


def _unique(keys: tuple[tuple[str, Any], ...]) -> Check:
    def key_of(item: Any) -> Any:
        if not keys:
            return item
        return {name: item.get(name, default) for name, default in keys} if isinstance(item, dict) else item

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        found, seen = [], set()
        for index, item in enumerate(value if isinstance(value, list) else ()):
            key = key_of(item)
            text = orjson.dumps(key, option=orjson.OPT_SORT_KEYS)
            if text in seen:
                found.append(errors.duplicate(path.index(index), key))
            seen.add(text)
        return found

    return check


def _elements(schema: Schema) -> Check | None:
    if schema.get("type") != "array":
        return None
    inner = lists_checker(items(schema))
    if inner is None:
        return None
    of_each = each(inner)
    return lambda value, path: of_each(value, path) if isinstance(value, list) else ()


def _members(schema: Schema) -> Check | None:
    made = {name: lists_checker(inner) for name, inner in properties(schema).items()}
    known = {name: inner for name, inner in made.items() if inner is not None}
    others = values(schema)
    rest = None if others is None or others is ANYTHING else lists_checker(others)
    if not known and rest is None:
        return None

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        found: list[FieldError] = []
        for name, item in value.items() if isinstance(value, dict) else ():
            if name in known:
                found += known[name](item, path.child(name))
            elif rest is not None and name not in properties(schema):
                found += rest(item, path.key(name))
        return found

    return check
