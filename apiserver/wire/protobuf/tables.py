"""The fields of each message: the rows of `messages.json.gz`, read on demand.

`tools/minors/protobuf_table.py` derives that file. A row has a field's name in JSON, its number, its type in Go, and the option
of its JSON tag in Go.
"""

import gzip
from functools import cache
from importlib import resources
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from .varint import UnknownKind

JsonOption: TypeAlias = Literal["omitempty", "omitzero", "always", "empty", "inline"]
"""What JSON has for an empty field: omitempty: nothing; omitzero: nothing, even for a struct; always: null if Go has nil,
otherwise the empty value; empty: the empty value, as of the items of lists. inline: its fields are those of the outer
object."""

MAX_DEPTH = 100
"""The maximum depth of messages. Only schemas of custom resources have no other limit, and real ones stay far below."""

ANY_VERSION = "*"
"""The key in `kinds` of kinds that every group and version has, such as DeleteOptions."""

_SLICE, _MAP, _POINTER = "[]", "map[string]", "*"


class MessageField(Struct, frozen=True, array_like=True):
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
        """Whether it is a pointer in Go: a missing value differs from zero, and JSON has the zero."""
        return self.type.startswith(_POINTER)

    @property
    def element_type(self) -> str:
        """The type, or the element type of a slice, a map or a pointer."""
        return self.type.removeprefix(_SLICE).removeprefix(_MAP).removeprefix(_POINTER)


class _Table(Struct, frozen=True):
    kinds: dict[str, dict[str, str]]
    messages: dict[str, msgspec.Raw]


@cache
def _table() -> _Table:
    packed = (resources.files(__package__) / "messages.json.gz").read_bytes()
    return msgspec.json.decode(gzip.decompress(packed), type=_Table)


def fields_of(message: str) -> list[MessageField]:
    return msgspec.json.decode(_table().messages[message], type=list[MessageField])


def message_of(api_version: str, kind: str) -> str:
    kinds = _table().kinds
    message = kinds.get(api_version, {}).get(kind) or kinds[ANY_VERSION].get(kind)
    if message is None:
        raise UnknownKind(api_version, kind)
    return message
