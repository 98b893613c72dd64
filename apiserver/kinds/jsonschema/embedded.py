"""Embedded objects: their apiVersion, kind and metadata are decoded and validated like those of any object."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.schema.decode import DecodeError

from .schema import ANY_VALUE, Schema, additional_properties, is_embedded, properties


class EmbeddedError(DecodeError):
    """The apiVersion, kind or metadata of an embedded object has a wrong type."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


ReadMetadata: TypeAlias = Callable[[Any, Path], Any]
"""Decodes an object's metadata; raises `DecodeError` if a field has a wrong type."""

Coerce: TypeAlias = Callable[[Any, Path, ReadMetadata], Any]
"""Returns a new value, which may share unchanged parts with the old one."""

_VERSION_PARTS: Final = 2
_DEFAULT_NAME: Final = {"name": "fakename"}
"""The name of an embedded object, which may have none, in the check of its metadata."""


def coercer(schema: Schema) -> Coerce | None:
    """Return the decoder of embedded objects; None if a schema has none."""
    coercers = {
        name: inner
        for name, member_schema in properties(schema).items()
        if (inner := coercer(member_schema)) is not None
    }
    coerce_member, coerce_item = _coercer_of(additional_properties(schema)), _coercer_of(schema.get("items"))
    embedded = is_embedded(schema)
    if not coercers and coerce_member is None and coerce_item is None and not embedded:
        return None

    def coerce(value: Any, path: Path, read: ReadMetadata) -> Any:
        if value.__class__ is list and coerce_item is not None:
            return [coerce_item(item, path.index(index), read) for index, item in enumerate(value)]
        if value.__class__ is not dict:
            return value
        changed = _decode_metadata(value, path, read) if embedded else {}
        for name in value.keys() & coercers.keys():
            changed[name] = coercers[name](value[name], path.child(name), read)
        if coerce_member is not None:
            others = value.keys() - properties(schema).keys()
            changed |= {name: coerce_member(value[name], path.key(name), read) for name in others}
        return value | changed

    return coerce


def _coercer_of(schema: Schema | None) -> Coerce | None:
    return None if schema is None or schema is ANY_VALUE else coercer(schema)


def _decode_metadata(value: Mapping[str, Any], path: Path, read: ReadMetadata) -> dict[str, Any]:
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str):
            raise EmbeddedError(errors.invalid(path.child(name), value[name], "must be a string"))
    if "metadata" not in value:
        return {}
    try:
        return {"metadata": read(value["metadata"], path.child("metadata"))}
    except DecodeError as error:
        field_error = errors.invalid(path.child("metadata"), value["metadata"], str(error))
        raise EmbeddedError(field_error) from error


def embedded_checker(schema: Schema) -> Check | None:
    """Return the check of embedded objects; None if a schema has none."""
    checkers = {
        name: inner
        for name, member_schema in properties(schema).items()
        if (inner := embedded_checker(member_schema)) is not None
    }
    check_member, check_item = _checker_of(additional_properties(schema)), _checker_of(schema.get("items"))
    embedded = is_embedded(schema)
    if not checkers and check_member is None and check_item is None and not embedded:
        return None

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        field_errors: list[FieldError] = []
        if value.__class__ is list and check_item is not None:
            for index, item in enumerate(value):
                field_errors += check_item(item, path.index(index))
        if value.__class__ is not dict:
            return field_errors
        if embedded:
            field_errors += _check_type_and_metadata(value, path)
        for name, item in value.items():
            if name in checkers:
                field_errors += checkers[name](item, path.child(name))
            elif check_member is not None and name not in properties(schema):
                field_errors += check_member(item, path.key(name))
        return field_errors

    return check


def _checker_of(schema: Schema | None) -> Check | None:
    return None if schema is None or schema is ANY_VALUE else embedded_checker(schema)


def _check_type_and_metadata(value: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield errors.required(path.child(name), "")
    for name, problems in (("apiVersion", _version_problems), ("kind", _kind_problems)):
        text = value.get(name)
        if name in value and not text:
            yield errors.invalid(path.child(name), "", "must not be empty")
        elif text:
            yield from (errors.invalid(path.child(name), text, problem) for problem in problems(text))
    metadata = value.get("metadata")
    if metadata is not None:
        tree = {"metadata": _DEFAULT_NAME | {name: member for name, member in metadata.items() if member}}
        namespaced = bool(metadata.get("namespace"))
        yield from objectmeta.check(
            tree, objectmeta.ANY_NAME, namespaced=namespaced, path=path.child("metadata")
        )


def _version_problems(version: str) -> list[str]:
    if version.count("/") < _VERSION_PARTS:
        return []
    return [f"unexpected GroupVersion string: {version}"]


def _kind_problems(kind: str) -> list[str]:
    problems = names.check_dns1035_label(kind.lower())
    if not problems:
        return []
    return [f"may have mixed case, but should otherwise match: {','.join(problems)}"]
