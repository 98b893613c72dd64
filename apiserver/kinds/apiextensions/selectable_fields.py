"""The selectable fields of a custom resource: JSON paths to strings, integers and booleans of its schema."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree

_TYPES: Final = frozenset({"string", "boolean", "integer"})
_OTHER_TYPE: Final = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
_MAX_FIELDS: Final = 8
_PARTS: Final = re.compile(r"[.\[\]]|[^.\[\]]+")


class _InvalidPath(ValueError):
    """A text that is not a path, or a path to no field; the message is upstream's."""


def check_selectable_fields(
    fields: Sequence[ReadOnlyTree], schema: ReadOnlyTree, path: Path
) -> Iterator[FieldError]:
    seen: set[tuple[str, ...]] = set()
    for index, selectable in enumerate(fields):
        text, at = selectable.get("jsonPath", ""), path.index(index).child("jsonPath")
        if not text:
            yield errors.required(at, "")
            continue
        try:
            steps, field_schema = _field_at(text, schema)
        except _InvalidPath as error:
            yield errors.invalid(at, text, f"is an invalid path: {error}")
            continue
        if steps[0] == "metadata":
            yield errors.invalid(at, text, "must not point to fields in metadata")
        if field_schema.get("type") not in _TYPES:
            yield errors.invalid(at, text, _OTHER_TYPE)
        if steps in seen:
            yield errors.duplicate(at, text)
        seen.add(steps)
    if len(seen) > _MAX_FIELDS:
        yield errors.too_many(path, len(seen), _MAX_FIELDS)


def _field_at(text: str, schema: ReadOnlyTree) -> tuple[tuple[str, ...], ReadOnlyTree]:
    """Return the steps of a path, and the schema of its field."""
    steps: list[str] = []
    parts = iter(_PARTS.findall(text))
    for part in parts:
        if part == "[":
            raise _InvalidPath("array notation is not allowed")
        if part != ".":
            raise _InvalidPath(f"expected [ or . but got: {part}")
        name = next(parts, None)
        if name is None:
            raise _InvalidPath("unexpected end of JSON path")
        schema = _member(schema, name)
        steps.append(name)
    return tuple(steps), schema


def _member(schema: ReadOnlyTree, name: str) -> ReadOnlyTree:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    inner: Any = properties.get(name) if properties else additional
    if not isinstance(inner, dict):
        raise _InvalidPath("does not refer to a valid field")
    return inner
