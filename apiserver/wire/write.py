"""JSON trees → bytes, in any of the formats."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from mockube.apiserver.wire import yaml_codec
from mockube.apiserver.wire.negotiation import Format
from mockube.apiserver.wire.protobuf import envelope

_WRITERS: Mapping[Format, Callable[[Any], bytes]] = {
    Format.JSON: orjson.dumps,
    Format.YAML: yaml_codec.dump,
    Format.PROTOBUF: envelope.encode,
}


def write(tree: Any, format_: Format) -> bytes:
    return _WRITERS[format_](tree)
