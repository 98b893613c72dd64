"""Structural schemas: fields and types are declared outside of allOf, anyOf, oneOf and not, which only restrict values.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.regexp import matcher as regexp
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.tree import ReadOnlyTree


class _Level(Enum):
    """The position of a schema, and upstream's message if it has no type there."""

    ROOT = "must not be empty at the root"
    ITEM = "must not be empty for specified array items"
    FIELD = "must not be empty for specified object fields"


PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"

_ANY_OF_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_NOT_SET: Final = "must be {} to be structural"
_FORBIDDEN_WITHIN: Final = {
    "type": "empty", "additionalProperties": "undefined", "default": "undefined", "title": "empty",
    "description": "empty", "nullable": "false", PRESERVE: "false", EMBEDDED: "false", INT_OR_STRING: "false",
    "x-kubernetes-list-map-keys": "empty", "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined", "x-kubernetes-validations": "empty",
}  # fmt: skip
_UNDEFINED: Final = "undefined"
_SCALARS: Final = frozenset({"boolean", "integer", "number", "string"})
_LEAF_KEYWORDS: Final = frozenset(
    ("type", "description", "format", "default", "enum", "minimum", "maximum", "minLength", "maxLength")
)


def is_leaf(schema: ReadOnlyTree) -> bool:
    """Return whether a schema has a scalar type, and only keywords that no check refuses.

    Most schemas of a definition are leaves, which are not checked.
    """
    return schema.get("type") in _SCALARS and schema.keys() <= _LEAF_KEYWORDS


def check_structural(schema: ReadOnlyTree, path: Path) -> list[FieldError]:
    """Return the errors of a schema that is not structural, sorted by message as upstream does."""
    return sorted([*_check(schema, _Level.ROOT, path), *_check_complete(schema, schema, path, path)], key=str)


# --- fields and types


def _check(schema: ReadOnlyTree, level: _Level, path: Path) -> Iterator[FieldError]:
    items, kind = schema.get("items"), schema.get("type", "")
    if kind == "array" and items is None:
        yield errors.required(path.child("items"), "must be specified")
    if isinstance(items, dict):
        yield from _check(items, _Level.ITEM, path.child("items"))
    for name, field_schema in _properties(schema).items():
        if not is_leaf(field_schema):
            yield from _check(field_schema, _Level.FIELD, path.child("properties").key(name))
    yield from _check_additional(schema, level, path)
    yield from _check_extensions(schema, path)
    yield from _check_values(schema, path, skip_any_of=True)
    yield from _check_type(schema, level, path)
    if level is _Level.ROOT or schema.get(EMBEDDED):
        yield from _check_type_meta(schema, path)
    if level is _Level.ROOT:
        yield from _check_metadata(schema, path)
    if schema.get(EMBEDDED) and not schema.get(PRESERVE) and not _properties(schema):
        detail = f"must not be empty if {EMBEDDED} is true without {PRESERVE}"
        yield errors.required(path.child("properties"), detail)


def _properties(schema: ReadOnlyTree) -> dict[str, Any]:
    return schema.get("properties") or {}


def _check_additional(schema: ReadOnlyTree, level: _Level, path: Path) -> Iterator[FieldError]:
    additional, path = schema.get("additionalProperties"), path.child("additionalProperties")
    if additional is None:
        return
    if level is _Level.ROOT:
        yield errors.forbidden(path, "must not be used at the root")
    if isinstance(additional, dict):
        yield from _check(additional, _Level.FIELD, path)
    if schema.get(EMBEDDED):
        yield errors.forbidden(path, f"must not be used if {EMBEDDED} is set")


def _check_extensions(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    for name in (PRESERVE, EMBEDDED):
        if schema.get(INT_OR_STRING) and schema.get(name):
            yield errors.invalid(
                path.child(name), value=True, detail=f"must be false if {INT_OR_STRING} is true"
            )


def _check_type(schema: ReadOnlyTree, level: _Level, path: Path) -> Iterator[FieldError]:
    kind, path = schema.get("type", ""), path.child("type")
    if schema.get(EMBEDDED) and kind != "object":
        problem = f"must be object if {EMBEDDED} is true"
        yield errors.invalid(path, kind, problem) if kind else errors.required(path, problem)
    elif not kind and not schema.get(INT_OR_STRING) and not schema.get(PRESERVE):
        yield errors.required(path, level.value)
    if level is _Level.ROOT and kind not in ("", "object"):
        yield errors.invalid(path, kind, "must be object at the root")


def _check_type_meta(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Refuse a kind, apiVersion or metadata whose type differs from that of every object."""
    for name, kind in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        property_schema = _properties(schema).get(name)
        if property_schema is not None and property_schema.get("type", "") != kind:
            field_path = path.child("properties").key(name).child("type")
            yield errors.invalid(field_path, property_schema.get("type", ""), f"must be {kind}")


def _check_metadata(schema: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    metadata = _properties(schema).get("metadata")
    if metadata is None:
        return ()
    specified = {
        name for name, value in metadata.items() if value and name not in ("type", "default", "description")
    }
    if specified <= {"properties"} and {*_properties(metadata)} <= {"name", "generateName"}:
        return ()
    detail = (
        "must not specify anything other than name and generateName, but metadata is implicitly specified"
    )
    return (errors.forbidden(path.child("properties").key("metadata"), detail),)


# --- restrictions of values


def _check_values(schema: ReadOnlyTree, path: Path, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    """Check allOf, anyOf, oneOf and not. With `skip_any_of`, an anyOf with the two types of an int-or-string is allowed."""
    any_of, all_of = schema.get("anyOf") or (), schema.get("allOf") or ()
    if not (skip_any_of and any_of == _ANY_OF_INT_OR_STRING):
        for index, inner in enumerate(any_of):
            yield from _check_within(inner, path.child("anyOf").index(index))
    for index, inner in enumerate(all_of):
        first = skip_any_of and index == 0
        yield from _check_within(inner, path.child("allOf").index(index), skip_any_of=first)
    for index, inner in enumerate(schema.get("oneOf") or ()):
        yield from _check_within(inner, path.child("oneOf").index(index))
    if schema.get("not") is not None:
        yield from _check_within(schema["not"], path.child("not"))
    yield from _check_pattern(schema, path)


def _check_pattern(schema: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    pattern = schema.get("pattern", "")
    try:
        regexp.check(pattern)
    except RegexpError as problem:
        detail = f"must be a valid regular expression, but isn't: {problem}"
        return (errors.invalid(path.child("pattern"), pattern, detail),)
    return ()


def _check_within(schema: ReadOnlyTree, path: Path, *, skip_any_of: bool = False) -> Iterator[FieldError]:
    yield from _check_values(schema, path, skip_any_of=skip_any_of)
    if isinstance(schema.get("items"), dict):
        yield from _check_within(schema["items"], path.child("items"))
    for name, field_schema in _properties(schema).items():
        yield from _check_within(field_schema, path.child("properties").key(name))
    for name, required_value in _FORBIDDEN_WITHIN.items():
        value = schema.get(name)
        if value is not None if required_value == _UNDEFINED else value:
            yield errors.forbidden(path.child(name), _NOT_SET.format(required_value))
    if "metadata" in _properties(schema):
        detail = "must not be specified in a nested context"
        yield errors.forbidden(path.child("properties").key("metadata"), detail)


# --- whether every restricted field is declared


def _check_complete(
    inner: ReadOnlyTree, schema: ReadOnlyTree, path: Path, inner_path: Path
) -> Iterator[FieldError]:
    for name in ("allOf", "anyOf", "oneOf"):
        for index, alternative in enumerate(inner.get(name) or ()):
            yield from _check_declared(alternative, schema, path, inner_path.child(name).index(index))
    if inner.get("not") is not None:
        yield from _check_declared(inner["not"], schema, path, inner_path.child("not"))


def _check_declared(inner: ReadOnlyTree, schema: Any, path: Path, inner_path: Path) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        yield errors.required(path, f"because it is defined in {inner_path}")
        return
    yield from _check_complete(inner, schema, path, inner_path)
    if isinstance(inner.get("items"), dict):
        field_path, inner_at = path.child("items"), inner_path.child("items")
        yield from _check_declared(inner["items"], schema.get("items"), field_path, inner_at)
    declared_properties = _properties(schema)
    for name, field_schema in _properties(inner).items():
        field_path, inner_at = (parent.child("properties").key(name) for parent in (path, inner_path))
        yield from _check_declared(field_schema, declared_properties.get(name), field_path, inner_at)
