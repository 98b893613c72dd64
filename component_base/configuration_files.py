"""Decoding of configuration files into records, with the errors of Go's strict decoder.

A record is a subclass of `Record`. A field that is absent or null keeps its default.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import without_nulls

_MISTYPED: Final = re.compile(
    r"Expected `([^`]*+)`(?:, got `([^`]*+)`| [<>]= -?\d+)(?: - at `\$\.?+([^`]*+)`)?"
)
_GO_KINDS: Final = {"str": "string", "int": "number", "float": "number"}
_GO_TYPES: Final = {"str": "string", "bool": "bool"}


class ConfigurationError(ValueError):
    """A configuration is invalid; the message is upstream's."""


class Record(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base class of the records of configuration files."""


def decode(tree: Any, kind: type[Struct]) -> Any:
    """Decode a tree into a record of a class, or raise ConfigurationError."""
    try:
        # Go leaves a field unchanged for null.
        record = msgspec.convert(without_nulls(tree), kind)
    except msgspec.ValidationError as error:
        raise ConfigurationError(_go_message(str(error), kind)) from error
    if unknown := [f"unknown field {quote(name)}" for name in unknown_fields(tree, kind)]:
        raise ConfigurationError(f"strict decoding error: {', '.join(unknown)}")
    return record


def unknown_fields(tree: Any, kind: type, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields that a class does not declare, in the order of upstream's decoder."""
    types_by_name = {field.encode_name: field.type for field in structs.fields(kind)}
    for name in sorted(tree or ()):
        value = tree[name]
        if name not in types_by_name:
            yield f"{path}{name}"
            continue
        record, is_list = _record_of(types_by_name[name])
        if record is not None and is_list:
            for index, item in enumerate(value or ()):
                yield from unknown_fields(item, record, f"{path}{name}[{index}].")
        elif record is not None:
            yield from unknown_fields(value, record, f"{path}{name}.")


def _record_of(type_: Any) -> tuple[type[Struct] | None, bool]:
    """Return the record class in a field's type, and whether the field is a list of such records."""
    parts = [
        argument
        for argument in get_args(type_)
        if isinstance(argument, type) and issubclass(argument, Struct)
    ]
    if parts:
        return parts[0], get_origin(type_) is tuple
    return (type_ if isinstance(type_, type) and issubclass(type_, Struct) else None), False


def _go_message(problem: str, kind: type[Struct]) -> str:
    """Convert a message of msgspec to that of Go's decoder."""
    match = _MISTYPED.fullmatch(problem)
    if match is None:
        return problem
    expected_type, json_type = match[1].partition(" |")[0], match[2] or "int"
    names = re.sub(r"\[[^\[\]]*+\]", "", match[3] or "").split(".")
    owner, type_ = _go_owner_and_type(kind, names, _GO_TYPES.get(expected_type, expected_type))
    json_kind = _GO_KINDS.get(json_type, json_type)
    return (
        f"json: cannot unmarshal {json_kind} into Go struct field {owner}.{'.'.join(names)} of type {type_}"
    )


def _go_owner_and_type(kind: type[Struct], names: Sequence[str], go_type: str) -> tuple[str, str]:
    """Return the Go names of the record that contains a field, and of the field's type."""
    owner, record, is_list = kind, kind, False
    for name in names:
        owner = record
        types = {field.encode_name: field.type for field in structs.fields(owner)}
        inner_record, is_list = _record_of(types[name])
        if inner_record is None:
            return (
                owner.__name__,
                f"[]{go_type}" if is_list else "[]string" if go_type == "array" else go_type,
            )
        record = inner_record
    return owner.__name__, f"[]v1.{record.__name__}" if is_list else f"v1.{record.__name__}"
