"""Bytes a client sent → a JSON tree."""

from typing import Any

import orjson
from msgspec import Struct

from apimachinery import status
from apimachinery.schema.scan import is_too_deep
from apiserver.wire import yaml_codec
from apiserver.wire.negotiate import FORMATS, sent


class Unreadable(ValueError):
    """The bytes are not what their media type says; the text is as Go's decoder would put it."""


class Parsed(Struct, frozen=True):
    tree: Any
    text: bytes = b""
    """The JSON that the tree was read from, if it was."""
    complaints: tuple[str, ...] = ()
    """What strict decoding refuses, as far as the tree does not show it: keys that came twice in YAML."""


def parse(data: bytes, content_type: str) -> Parsed:
    media_type = sent(content_type)[0] if content_type else "application/json"
    if media_type == "application/yaml":
        return Parsed(yaml_codec.load(data))
    if media_type != "application/json":
        raise status.unsupported_media_type([format_.value for format_ in FORMATS])
    if is_too_deep(data):
        raise Unreadable("exceeded max depth")
    try:
        return Parsed(orjson.loads(data), data)
    except orjson.JSONDecodeError as error:
        raise Unreadable(str(error)) from error
