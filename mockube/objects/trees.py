"""Conversion of dicts and of models of client libraries into trees: dicts, lists, texts, numbers and booleans."""

import inspect
import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final, Protocol, TypeAlias

from mockube.apimachinery.timestamps import format_time

from .errors import InvalidType, InvalidValue

MAX_DEPTH: Final = 200
"""The depth of an object. A deeper one contains itself, or is refused by the server."""

MAX_INTEGER: Final = (1 << 63) - 1


class Model(Protocol):
    """An object of a client library, such as a model of the official client."""

    def to_dict(self) -> Any: ...


Object: TypeAlias = dict[str, Any]
"""An object, as JSON has it."""
Objects: TypeAlias = list[Object]
OneObject: TypeAlias = Mapping[str, Any] | Model
"""An object as a dict, or as a model of a client library."""


def to_tree(value: Any, path: str = "", depth: int = 0) -> Any:
    """Return a value as a tree; `path` is its place in messages."""
    if depth > MAX_DEPTH:
        raise InvalidValue(f"{_shorten(path)} is nested more than {MAX_DEPTH} times")
    match value:
        case None | bool():
            return value
        case str():
            return _text(value, path or "the object")
        case int() | float():
            return _number(value, path)
        case Mapping():
            return {
                _key(key, path): to_tree(member, f"{path}.{key}".lstrip("."), depth + 1)
                for key, member in value.items()
            }
        case list() | tuple():
            return [to_tree(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
        case datetime():
            return format_time(value.astimezone())
        case date():
            return value.isoformat()
        case _:
            if is_model(value):
                return to_tree(_model_fields(value), path, depth + 1)
    hint = ": encode it with base64" if isinstance(value, bytes) else ""
    raise InvalidType(
        f"{path or 'the object'} is of type {type(value).__name__}, which JSON does not have{hint}"
    )


def _text(value: str, name: str) -> str:
    if not value.isascii():
        encode_text(value, name)
    return value


def encode_text(text: str, name: str) -> bytes:
    """Return a text as UTF-8; raise InvalidValue for half of a surrogate pair, which UTF-8 does not have."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{name} has the character {text[error.start]!r} at position {error.start}, which UTF-8 does not have"
        ) from error


def _number(value: Any, path: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValue(f"{path} is {value}, which JSON does not have")
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise InvalidValue(f"{path} does not fit into 64 bits")
    return value


def is_model(value: Any) -> bool:
    """Return whether a value has the method `to_dict`, and is no class that has it."""
    return hasattr(value, "to_dict") and not inspect.isclass(value)


def _model_fields(model: Any) -> Any:
    """Return the fields of a model under their names in the API.

    `to_dict` of the two libraries that are generated from the OpenAPI specification returns the names in Python.
    """
    api_names = getattr(model, "attribute_map", None)
    if not isinstance(api_names, Mapping):
        return model.to_dict()
    fields = {name: getattr(model, attribute, None) for attribute, name in api_names.items()}
    return {name: value for name, value in fields.items() if value is not None}


def _key(key: object, path: str) -> str:
    if isinstance(key, str):
        return _text(key, f"a key of {path or 'the object'}")
    raise InvalidType(
        f"{path or 'the object'} has a key of type {type(key).__name__}: keys must be str, not {key!r}"
    )


def _shorten(path: str) -> str:
    return f"{path[:40]}..." if len(path) > 40 else path
