"""Encode objects and watch events: an event is a line of JSON, a document of YAML, or a length-prefixed message."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from mockube.apimachinery.piecewise import encoder_for_size

from . import yaml_codec
from .negotiation import MediaType
from .protobuf import envelope


def json_text(kind: str, text: bytes) -> bytes:
    """Return the frame of an object whose JSON exists already."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), text)


def _json(kind: str, tree: Any) -> bytes:
    return json_text(kind, orjson.dumps(tree))


def _yaml(kind: str, tree: Any) -> bytes:
    return b"---\n" + yaml_codec.dump({"type": kind, "object": tree})


def _protobuf(kind: str, tree: Any) -> bytes:
    return envelope.watch_frame(kind, envelope.encode(tree))


FRAMES: Mapping[MediaType, Callable[[str, Any], bytes]] = {
    MediaType.JSON: _json,
    MediaType.YAML: _yaml,
    MediaType.PROTOBUF: _protobuf,
}


_ENCODERS: Mapping[MediaType, Callable[[Any], bytes]] = {
    MediaType.YAML: yaml_codec.dump,
    MediaType.PROTOBUF: envelope.encode,
}


def encode_object(tree: Any, format_: MediaType, size: int = 0) -> bytes:
    """Return the body of a response with one object, which was made of about `size` bytes."""
    return encoder_for_size(size)(tree) if format_ is MediaType.JSON else _ENCODERS[format_](tree)
