"""Decoding of request bodies by Content-Type: JSON, YAML or protobuf to a tree."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import status
from mockube.apimachinery.gonumbers import with_go_numbers
from mockube.apimachinery.piecewise import decode_in_pieces, sorted_in_pieces
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.schema.decode import has_duplicates, is_too_deep

from . import go_json
from .negotiation import FORMATS, MediaType, parse_media_type
from .protobuf import envelope
from .protobuf.varint import ProtobufError


class UnreadableBody(ValueError):
    """The bytes are not of their media type; the message is that of Go's decoder."""


class NotJson(UnreadableBody):
    """The body is not JSON. Upstream reads the kind from it first, with another message."""


class ParsedObject(Struct, frozen=True):
    tree: Any
    text: bytes = b""
    """The JSON that the tree was decoded from; b"" for other formats."""
    complaints: tuple[str, ...] = ()
    """Errors of strict decoding that cannot be found in the tree: duplicate keys in YAML."""
    is_binary: bool = False
    """Whether it was protobuf: unknown fields are ignored, even by strict decoding."""


def parse(data: bytes, content_type: str) -> ParsedObject:
    """Decode a body by its Content-Type; without one, as JSON."""
    return _reader(content_type)(data)


def check_format(content_type: str) -> None:
    """Raise UnsupportedMediaType for a Content-Type that cannot be decoded."""
    _reader(content_type)


def _reader(content_type: str) -> Callable[[bytes], ParsedObject]:
    read = _READERS.get(parse_media_type(content_type)) if content_type else _json
    if read is None:
        raise status.unsupported_media_type([format_.value for format_ in FORMATS])
    return read


def duplicate_keys(parsed: ParsedObject) -> tuple[str, ...]:
    """Return the YAML decoder's errors for duplicate keys."""
    if not parsed.text or not has_duplicates(parsed.text, parsed.tree):
        return parsed.complaints
    return load(parsed.text).strict_errors


def _json(data: bytes) -> ParsedObject:
    if is_too_deep(data):
        raise NotJson("exceeded max depth")
    try:
        return ParsedObject(decode_in_pieces(data), data)
    except orjson.JSONDecodeError:
        return _json_as_go(data)


def _json_as_go(data: bytes) -> ParsedObject:
    """Decode JSON that orjson refuses: Go accepts some of it, and refuses the rest with errors of its own."""
    text = go_json.replace_invalid_characters(data)
    with suppress(orjson.JSONDecodeError):
        return ParsedObject(decode_in_pieces(text), text)
    if syntax_problem := go_json.syntax_error(data):
        raise NotJson(syntax_problem)
    try:
        return ParsedObject(go_json.decode(text), text)
    except go_json.NumberOutOfRange as error:
        raise NotJson(str(error)) from error


def _yaml(data: bytes) -> ParsedObject:
    """Decode YAML; an empty body is an object without fields."""
    try:
        parsed = parse_applied(data)
    except UnreadableBody as error:
        raise UnreadableBody(str(error).removeprefix(CONVERTING)) from error
    return ParsedObject({}) if parsed.tree is None else replace(parsed, tree=_sort_keys(parsed.tree))


def _sort_keys(tree: Any) -> Any:
    """Return the tree with sorted keys, as Go's maps are written, so that errors have Go's order."""
    if isinstance(tree, dict):
        return {key: _sort_keys(tree[key]) for key in sorted_in_pieces(tree)}
    return [_sort_keys(item) for item in tree] if isinstance(tree, list) else tree


def parse_applied(data: bytes) -> ParsedObject:
    """Parse an applied configuration, which upstream converts first, with its own errors.

    Upstream writes YAML as JSON before it is read: `2.0` is 2, and `1e3` is 1000.
    """
    if data.lstrip()[:1] in (b"{", b"[") and not is_too_deep(data):  # JSON is YAML, and decoded much faster
        with suppress(orjson.JSONDecodeError):
            return ParsedObject(with_go_numbers(decode_in_pieces(data)), data)
    try:
        loaded = load(data)
    except YamlError as error:
        raise UnreadableBody(str(error)) from error
    return ParsedObject(with_go_numbers(loaded.tree), b"", loaded.strict_errors)


def _protobuf(data: bytes) -> ParsedObject:
    try:
        return ParsedObject(envelope.decode(data), is_binary=True)
    except ProtobufError as error:
        raise UnreadableBody(str(error)) from error


_READERS: Mapping[str, Callable[[bytes], ParsedObject]] = {
    MediaType.JSON: _json,
    MediaType.YAML: _yaml,
    MediaType.PROTOBUF: _protobuf,
}
CONVERTING = "error converting YAML to JSON: "
