"""Accessors of a structural schema, which is a tree."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from .structural import EMBEDDED, INT_OR_STRING, PRESERVE

Schema: TypeAlias = Mapping[str, Any]

ANY_VALUE: Schema = {PRESERVE: True}
OBJECT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
"""The fields of every object, also if its schema does not declare them."""

RULES = "x-kubernetes-validations"
LIST_TYPE, MAP_KEYS, MAP_TYPE = (
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def properties(schema: Schema) -> Mapping[str, Schema]:
    return schema.get("properties") or {}


def items(schema: Schema) -> Schema:
    return schema.get("items") or ANY_VALUE


def additional_properties(schema: Schema) -> Schema | None:
    """Return the schema of members that are not in `properties`; None if none are allowed."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return additional
    return ANY_VALUE if additional or schema.get(PRESERVE) else None


def walk(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and its subschemas of fields, members and elements."""
    yield schema
    inner = [*properties(schema).values(), schema.get("additionalProperties"), schema.get("items")]
    for part in inner:
        if isinstance(part, Mapping):
            yield from walk(part)


def has_rules(schema: Schema) -> bool:
    """Return whether a schema or one of its subschemas has CEL rules."""
    return any(part.get(RULES) for part in walk(schema))


def patterns(schema: Schema) -> Iterator[str]:
    """Yield all patterns in a schema, including those in allOf, anyOf, oneOf and not."""
    pending = [schema]
    while pending:
        current = pending.pop()
        if current.get("pattern"):
            yield current["pattern"]
        pending += properties(current).values()
        for name in ("allOf", "anyOf", "oneOf"):
            pending += current.get(name) or ()
        pending += (
            current[name]
            for name in ("additionalProperties", "items", "not")
            if isinstance(current.get(name), Mapping)
        )


def is_int_or_string(schema: Schema) -> bool:
    return bool(schema.get(INT_OR_STRING))


def types(schema: Schema) -> tuple[str, ...]:
    """Return the types that a value may have; an empty tuple if any is allowed."""
    if is_int_or_string(schema):
        return "integer", "string"
    return (schema["type"],) if schema.get("type") else ()


def is_embedded(schema: Schema) -> bool:
    """Return whether the schema is that of an embedded object."""
    return bool(schema.get(EMBEDDED))


def is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or bool(properties(schema))
