"""Validation of the versions of a CustomResourceDefinition.

Upstream's internal type has values that all versions share in fields of the spec; messages have these paths.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.cel.language import Language
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import Check, all_of, each_item, optional, pointer, require

from .schemas import check_schema

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")


# --- deprecation


def _warning_problems(warning: str) -> Iterator[str]:
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    position = 0
    for character in warning:
        if not character.isprintable():
            detail = f"non-printable character found at index {position}"
            yield f"must only contain printable UTF-8 characters; {detail}"
            return
        position += len(character.encode())


def _check_warning(version: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return ()
    problems = (
        _warning_problems(warning)
        if version.get("deprecated")
        else ["can only be set for deprecated versions"]
    )
    return [errors.invalid(path.child("deprecationWarning"), warning, problem) for problem in problems]


# --- JSON paths of the scale subresource


def _check_simple_path(text: str, path: Path) -> Iterable[FieldError]:
    return (
        ()
        if text.startswith(".")
        else (errors.invalid(path, text, "must be a simple json path starting with ."),)
    )


def _path_under(parents: str, *prefixes: str) -> Callable[[str, Path], Iterable[FieldError]]:
    def check(text: str, path: Path) -> Iterable[FieldError]:
        field_errors = [*_check_simple_path(text, path)]
        if field_errors or text.startswith(prefixes):
            return field_errors
        return (errors.invalid(path, text, f"should be a json path under {parents}"),)

    return check


_IN_SCALE: Final[Mapping[str, Callable[[str, Path], Iterable[FieldError]]]] = {
    "specReplicasPath": _path_under(".spec", ".spec."),
    "statusReplicasPath": _path_under(".status", ".status."),
}
_IN_SELECTOR: Final = _path_under("either .spec or .status", ".spec.", ".status.")


def _check_scale(scale: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    for name, check in _IN_SCALE.items():
        text = scale.get(name, "")
        yield from check(text, path.child(name)) if text else (errors.required(path.child(name)),)
    selector = scale.get("labelSelectorPath")
    if selector:
        yield from _IN_SELECTOR(selector, path.child("labelSelectorPath"))


# --- selectable fields

_SELECTABLE_TYPES: Final = frozenset({"string", "boolean", "integer"})
_OTHER_TYPE: Final = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
_MAX_FIELDS: Final = 8
_PARTS: Final = re.compile(r"[.\[\]]|[^.\[\]]+")


class _InvalidPath(ValueError):
    """A text that is not a path, or a path to no field; the message is upstream's."""


def _check_selectable_fields(
    fields: Sequence[ReadOnlyTree], schema: ReadOnlyTree, path: Path
) -> Iterator[FieldError]:
    seen: set[tuple[str, ...]] = set()
    for index, selectable in enumerate(fields):
        text, field_path = selectable.get("jsonPath", ""), path.index(index).child("jsonPath")
        if not text:
            yield errors.required(field_path, "")
            continue
        try:
            steps, field_schema = _field_at(text, schema)
        except _InvalidPath as error:
            yield errors.invalid(field_path, text, f"is an invalid path: {error}")
            continue
        if steps[0] == "metadata":
            yield errors.invalid(field_path, text, "must not point to fields in metadata")
        if field_schema.get("type") not in _SELECTABLE_TYPES:
            yield errors.invalid(field_path, text, _OTHER_TYPE)
        if steps in seen:
            yield errors.duplicate(field_path, text)
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


# --- columns


def _check_column_type(column: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    kind, path = column.get("type", ""), path.child("type")
    detail = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        return (errors.required(path, detail),)
    return () if kind in _COLUMN_TYPES else (errors.invalid(path, kind, detail),)


def _check_column_format(column: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    form = column.get("format", "")
    if not form or form in _COLUMN_FORMATS:
        return ()
    return (errors.invalid(path.child("format"), form, f"must be one of {','.join(_COLUMN_FORMATS)}"),)


def _check_column_path(column: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the path. Upstream's messages have the Go name of the field."""
    text, path = column.get("jsonPath", ""), path.child("JSONPath")
    return _check_simple_path(text, path) if text else (errors.required(path),)


_COLUMN: Final = all_of(require("name"), _check_column_type, _check_column_format, _check_column_path)

_COMMON: Final = {
    "schema": "validation",
    **{name: name for name in ("subresources", "additionalPrinterColumns", "selectableFields")},
}
"""The fields of a version, and the name of each in the spec if all versions have the same value."""


def _checks(language: Language, *, has_status: bool) -> Mapping[str, Check]:
    return {
        "schema": partial(check_schema, language=language, has_status=has_status),
        "subresources": pointer("scale", _check_scale),
        "additionalPrinterColumns": each_item(_COLUMN),
        "selectableFields": all_of(),  # checked with the schema, below
    }


def _check_selectable(schema_field: str, problem: str) -> Check:
    def check(tree: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        fields = tree.get("selectableFields")
        if not fields:
            return ()
        field_path, schema = (
            path.child("selectableFields"),
            (tree.get(schema_field) or {}).get("openAPIV3Schema"),
        )
        if schema is None:
            return (errors.invalid(field_path, "", problem),)
        return _check_selectable_fields(fields, schema, field_path)

    return check


_OWN_SELECTABLE: Final = _check_selectable(
    "schema", "may only be set when `version.schema.openAPIV3Schema` is not included"
)
_COMMON_SELECTABLE: Final = _check_selectable(
    "validation", "may only be set when validations.schema is included"
)


@cache
def version_check(language: Language, *, has_status: bool) -> Check:
    """Return the check of one version, with the rules of a CEL version; `has_status` if status is a subresource."""
    fields = (optional(name, check) for name, check in _checks(language, has_status=has_status).items())
    return all_of(_check_warning, *fields, _OWN_SELECTABLE)


@cache
def common_check(language: Language, *, has_status: bool) -> Check:
    """Return the check of the fields that all versions share."""
    checks = _checks(language, has_status=has_status).items()
    return all_of(*(optional(_COMMON[name], check) for name, check in checks), _COMMON_SELECTABLE)


def has_status(tree: ReadOnlyTree) -> bool:
    """Return whether status is a subresource, by the fields of a version or of all versions."""
    return (tree.get("subresources") or {}).get("status") is not None


def to_internal(spec: ReadOnlyTree) -> dict[str, Any]:
    """Return a spec in the form of upstream's internal type."""
    versions = [dict(version) for version in spec.get("versions") or ()]
    common: dict[str, Any] = {}
    for name, common_name in _COMMON.items():
        values = [version.get(name) or None for version in versions]
        if values and all(value == values[0] for value in values):
            common[common_name] = values[0]
            for version in versions:
                version.pop(name, None)
    return {**spec, **common, "versions": None if spec.get("versions") is None else versions}


def needs_webhook(spec: Mapping[str, Any]) -> bool:
    """Return whether a webhook converts between versions."""
    return (spec.get("conversion") or {}).get("strategy") == "Webhook"
