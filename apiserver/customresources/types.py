"""Convert the schema of a custom resource to the types that patches and server-side apply use."""

from functools import partial
from types import MappingProxyType
from typing import Any, Final

from mockube.apimachinery.schema.model import Field, SchemaType, Shape
from mockube.apiserver.kinds.jsonschema.schema import (
    ANY_VALUE,
    LIST_TYPE,
    MAP_KEYS,
    MAP_TYPE,
    Schema,
    additional_properties,
    is_embedded,
    is_int_or_string,
    is_object,
    items,
    properties,
)
from mockube.apiserver.kinds.jsonschema.structural import PRESERVE

_SCALARS: Final = {
    "string": Shape.STRING,
    "integer": Shape.INTEGER,
    "number": Shape.NUMBER,
    "boolean": Shape.BOOLEAN,
}
_ANY: Final = SchemaType(shape=Shape.ANY)
_ANY_SCALAR: Final = SchemaType(shape=Shape.SCALAR)
"""The type of a string with a format, of which server-side apply accepts every scalar."""
_TEXT: Final = SchemaType(shape=Shape.STRING, go="string")


def kind_type(name: str, schema: Schema, metadata: SchemaType) -> SchemaType:
    """Return the type of a kind's objects; `metadata` is the type of ObjectMeta."""
    head = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": metadata}
    return _struct(schema, head, name, preserves=_preserves(schema))


def load_all(of: SchemaType) -> SchemaType:
    """Load the fields of a type and of all types in it, without the lock of the cached property."""
    pending = [of]
    while pending:
        current = pending.pop()
        if isinstance(current.load, partial) and current.load.func is _fields:
            fields = vars(current)["fields"] = current.load()
            pending += (field.type for field in fields.values())
        if current.element is not None:
            pending.append(current.element)
    return of


def _preserves(schema: Schema) -> bool:
    return bool(schema.get(PRESERVE))


def type_of(schema: Schema, *, preserves: bool = False) -> SchemaType:
    """Return the type of a value. `preserves`: a value that contains it preserves unknown fields, as all values in it do here."""
    preserves = preserves or _preserves(schema)
    if is_int_or_string(schema):
        return _ANY
    if is_object(schema):
        return _object(schema, preserves=preserves)
    if schema.get("type") == "array":
        return SchemaType(
            shape=Shape.LIST,
            element=type_of(items(schema), preserves=preserves),
            list_type=schema.get(LIST_TYPE) or "atomic",
            map_keys=tuple(schema.get(MAP_KEYS) or ()),
        )
    if schema.get("type") == "string" and schema.get("format", "") not in ("", "byte"):
        return _ANY_SCALAR
    return SchemaType(shape=_SCALARS.get(schema.get("type", ""), Shape.ANY))


def _object(schema: Schema, *, preserves: bool) -> SchemaType:
    rest = additional_properties(schema)
    if properties(schema) or rest is None:
        head = dict.fromkeys(("apiVersion", "kind", "metadata"), _ANY) if is_embedded(schema) else {}
        return _struct(schema, head, preserves=preserves)
    return SchemaType(shape=Shape.MAP, element=type_of(rest, preserves=preserves), map_type=_map_type(schema))


def _struct(
    schema: Schema, head: dict[str, SchemaType], name: str = "", *, preserves: bool = False
) -> SchemaType:
    rest = additional_properties(schema)
    if rest is None and preserves:
        rest = ANY_VALUE
    return SchemaType(
        shape=Shape.STRUCT,
        name=name,
        load=partial(_fields, schema, head, preserves=preserves),
        element=None if rest is None else type_of(rest, preserves=preserves),
        map_type=_map_type(schema),
    )


def _fields(schema: Schema, head: dict[str, SchemaType], *, preserves: bool) -> Any:
    required = frozenset(schema.get("required") or ())
    declared_types = {
        name: type_of(inner, preserves=preserves)
        for name, inner in properties(schema).items()
        if name not in head
    }
    return MappingProxyType(
        {
            name: Field(
                name=name,
                type=of,
                required=name in required,
                default=(properties(schema).get(name) or {}).get("default"),
            )
            for name, of in (head | declared_types).items()
        }
    )


def _map_type(schema: Schema) -> str:
    return schema.get(MAP_TYPE) or "granular"
