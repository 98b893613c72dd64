"""What a schema declares as default is filled in, and null counts as absent where it is not allowed."""

from collections.abc import Callable
from typing import Any, TypeAlias

import orjson

from apiserver.crd.schema import Schema, is_object, items, properties, values

Fill: TypeAlias = Callable[[Any], None]
"""Changes a value in place, which is nobody else's."""


def filler(schema: Schema) -> Fill | None:
    """None where nothing is filled in, however deep."""
    if is_object(schema):
        return _object(schema)
    inner = filler(items(schema)) if schema.get("type") == "array" else None
    return None if inner is None else _each(inner)


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
    rest = None if others is None else filler(others)
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
            for name in tree.keys() - known.keys():
                rest(tree[name])

    return fill


def _each(inner: Fill) -> Fill:
    def fill(value: Any) -> None:
        if value.__class__ is list:
            for item in value:
                inner(item)

    return fill
