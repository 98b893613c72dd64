"""The fields of each message: the rows of `messages.json`, read on demand.

Owns the shape of that file and the way from a kind to its message. Knows nothing of bytes. The file is derived by
`tools/protobuf_table.py`; a row is a field's name in JSON, its number, its type as Go would write it, and the option of
its Go JSON tag.
"""

from functools import cache
from importlib import resources
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from mockube.apiserver.wire.protobuf.varint import UnknownKind

JsonOption: TypeAlias = Literal["omitempty", "omitzero", "always", "empty", "inline"]
"""Of a field that is empty: left out; left out though it is a struct; shown, as null where Go has nil; shown as empty
even there, as the items of lists are, which the server never leaves nil. Inline: its fields stand beside the others."""

MAX_DEPTH = 100
"""Of messages within messages. Only the schemas of custom resources nest at will, and none gets near this."""

ANY_VERSION = "*"
"""In `kinds`: what every group and version has, DeleteOptions for one."""

_SLICE, _MAP, _POINTER = "[]", "map[string]", "*"


class Field(Struct, frozen=True, array_like=True):
    """A field of a message, in the order of JSON."""

    name: str
    number: int
    type: str
    json_option: JsonOption = "omitempty"

    @property
    def is_repeated(self) -> bool:
        return self.type.startswith(_SLICE)

    @property
    def is_map(self) -> bool:
        return self.type.startswith(_MAP)

    @property
    def optional(self) -> bool:
        """A pointer in Go: absent is something else than zero, and zero is shown."""
        return self.type.startswith(_POINTER)

    @property
    def element_type(self) -> str:
        """The type itself, or what a slice, a map or a pointer is of."""
        return self.type.removeprefix(_SLICE).removeprefix(_MAP).removeprefix(_POINTER)


class _Table(Struct, frozen=True):
    kinds: dict[str, dict[str, str]]
    messages: dict[str, msgspec.Raw]


@cache
def _table() -> _Table:
    return msgspec.json.decode((resources.files(__package__) / "messages.json").read_bytes(), type=_Table)


def fields_of(message: str) -> list[Field]:
    return msgspec.json.decode(_table().messages[message], type=list[Field])


def message_of(api_version: str, kind: str) -> str:
    kinds = _table().kinds
    message = kinds.get(api_version, {}).get(kind) or kinds[ANY_VERSION].get(kind)
    if message is None:
        raise UnknownKind(api_version, kind)
    return message
