"""Set the defaults of a schema. Null counts as absent where it is not allowed."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import orjson

from mockube.apiserver.kinds.jsonschema.schema import Schema, is_object, items, properties, values

Fill: TypeAlias = Callable[[Any], None]
"""Changes a value in place; the value must not be shared."""


def filler(schema: Schema) -> Fill | None:
    """Return the function that sets defaults at any depth; None if there are none."""
    if is_object(schema):
        return _object(schema)
    return _each(items(schema)) if schema.get("type") == "array" else None


def _object(schema: Schema) -> Fill | None:
    known = properties(schema)
    absent = [
        (name, orjson.dumps(inner["default"]), bool(inner.get("nullable")))
        for name, inner in known.items()
        if inner.get("default") is not None
    ]
    fillers = {name: filler(inner) for name, inner in known.items()}
    inner = [(name, fill_in) for name, fill_in in fillers.items() if fill_in is not None]
    others = values(schema)
    rest = None if others is None else _rest(others)
    if not absent and not inner and rest is None:
        return None

    def fill(tree: Any) -> None:
        if tree.__class__ is not dict:
            return
        for name, default, nullable in absent:
            if name not in tree or (tree[name] is None and not nullable):
                tree[name] = orjson.loads(default)
        for name, fill_in in inner:
            if name in tree:
                fill_in(tree[name])
        if rest is not None:
            rest(tree, tree.keys() - known.keys())

    return fill


def _rest(schema: Schema) -> Callable[[Any, Iterable[Any]], None] | None:
    """Fills in some members of an object, or some elements of a list."""
    default, inner = _null_default(schema), filler(schema)
    if default is None and inner is None:
        return None

    def fill(tree: Any, places: Iterable[Any]) -> None:
        for place in places:
            if tree[place] is None and default is not None:
                tree[place] = orjson.loads(default)
            if inner is not None:
                inner(tree[place])

    return fill


def _null_default(schema: Schema) -> bytes | None:
    """Return the default that replaces null as an element or a value; None if null is allowed or there is no default."""
    default = schema.get("default")
    return None if default is None or schema.get("nullable") else orjson.dumps(default)


def _each(schema: Schema) -> Fill | None:
    rest = _rest(schema)
    if rest is None:
        return None

    def fill(value: Any) -> None:
        if value.__class__ is list:
            rest(value, range(len(value)))

    return fill
