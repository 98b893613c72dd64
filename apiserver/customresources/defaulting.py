"""Set the defaults of a schema. Null counts as absent where it is not allowed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import orjson
from msgspec import Struct

from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.schema.model import SchemaType
from mockube.apiserver.kinds.jsonschema.embedded import Coerce, coercer
from mockube.apiserver.kinds.jsonschema.pruning import Prune, root_pruner
from mockube.apiserver.kinds.jsonschema.schema import (
    Schema,
    additional_properties,
    is_object,
    items,
    properties,
)
from mockube.apiserver.kinds.jsonschema.structural import EMBEDDED
from mockube.apiserver.schema.decode import Decoder

Fill: TypeAlias = Callable[[Any], None]
"""Changes a value in place; the value must not be shared."""

_ELEMENT: Final = 0
"""The step of a path that leads into a list."""


def defaults_filler(schema: Schema, metadata: SchemaType) -> Fill | None:
    """Return the function that sets the defaults of a whole object; None if there are none."""
    return filler(_prune_defaults(schema, metadata))


def _prune_defaults(schema: Schema, metadata: SchemaType) -> Schema:
    """Prune the defaults of embedded objects as their values are pruned: unknown fields of their metadata are dropped."""
    if coercer(schema) is None:
        return schema
    coerce = coercer({**schema, EMBEDDED: True})
    assert coerce is not None
    return _DefaultsPruner(coerce, root_pruner(schema, drop_null=False), metadata).prune(schema, ())


class _DefaultsPruner(Struct, frozen=True):
    """Prunes each default within an otherwise empty object."""

    coerce_root: Coerce
    prune_root: Prune
    metadata: SchemaType

    def prune(self, schema: Schema, steps: Sequence[str | int]) -> Schema:
        changed: dict[str, Any] = {}
        if schema.get("default") is not None:
            changed["default"] = self._default(schema["default"], steps)
        if properties(schema):
            changed["properties"] = {
                name: self.prune(inner, (*steps, name)) for name, inner in properties(schema).items()
            }
        for field, step in (("additionalProperties", "*"), ("items", _ELEMENT)):
            if isinstance(schema.get(field), dict):
                changed[field] = self.prune(schema[field], (*steps, step))
        return {**schema, **changed}

    def _default(self, default: Any, steps: Sequence[str | int]) -> Any:
        """Return the pruned default; None if nothing of it is left."""
        value = default
        for step in reversed(steps):
            value = [value] if step == _ELEMENT else {step: value}
        value = self.prune_root(self.coerce_root(value, ROOT, self._read_metadata), [])
        for step in steps:
            if step != _ELEMENT and step not in value:
                return None
            value = value[step]
        return value

    def _read_metadata(self, value: Any, _path: Path) -> Any:
        return Decoder().decode(self.metadata, value, strict=False).tree


def filler(schema: Schema) -> Fill | None:
    """Return the function that sets defaults at any depth; None if there are none."""
    if is_object(schema):
        return _object(schema)
    return _element_filler(items(schema)) if schema.get("type") == "array" else None


def _object(schema: Schema) -> Fill | None:
    known_properties = properties(schema)
    absent = [
        (name, orjson.dumps(inner["default"]), bool(inner.get("nullable")))
        for name, inner in known_properties.items()
        if inner.get("default") is not None
    ]
    fillers = {name: filler(inner) for name, inner in known_properties.items()}
    inner = [(name, fill_in) for name, fill_in in fillers.items() if fill_in is not None]
    others = additional_properties(schema)
    rest = None if others is None else _member_filler(others)
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
            rest(tree, tree.keys() - known_properties.keys())

    return fill


def _member_filler(schema: Schema) -> Callable[[Any, Iterable[Any]], None] | None:
    """Return the function that sets defaults in given members of an object or elements of a list; None if there are none."""
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


def _element_filler(schema: Schema) -> Fill | None:
    rest = _member_filler(schema)
    if rest is None:
        return None

    def fill(value: Any) -> None:
        if value.__class__ is list:
            rest(value, range(len(value)))

    return fill
