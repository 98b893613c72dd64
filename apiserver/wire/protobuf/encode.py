"""A JSON tree → its message's bytes, to the byte as the server writes them.

Fields go in the order of their numbers, maps in the order of their keys; numbers, strings and structs that are no
pointers in Go are written even if empty. What the message does not know (kind and apiVersion for two) is passed over,
as it is when a server reads JSON into a struct. A message is compiled when it is first met.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TypeAlias, TypeVar

from mockube.apimachinery.pieces import sorted_items
from mockube.apiserver.wire.protobuf.forms import FORMS, Json
from mockube.apiserver.wire.protobuf.scalars import SCALARS, write_string
from mockube.apiserver.wire.protobuf.tables import MAX_DEPTH, Field, fields_of
from mockube.apiserver.wire.protobuf.varint import LENGTH, ProtobufError, tag_of, varint, with_length

_T = TypeVar("_T")

Write: TypeAlias = Callable[[Json, int], bytes]
"""A value, and how many messages deep it may still go → its bytes."""

_INLINE = ""
"""The table's name for the field whose own fields JSON shows beside the others."""
_KEY, _VALUE = 1, 2
"""The fields of a map's entry."""


@cache
def encoder(message: str) -> Write:
    plain = _Message(message)
    form = FORMS.get(message)
    return plain if form is None else lambda value, depth: plain(form.from_json(value), depth)


class _Message:
    """One message, compiled. `_blank` is what is written of each field, by order of number, if the tree lacks it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._blank: list[bytes] = []
        self._writes: dict[str, tuple[int, Write]] = {}
        self._inlined: frozenset[str] = frozenset()
        for slot, field in enumerate(sorted(fields_of(name), key=attrgetter("number"))):
            write = _write_field(field)
            self._writes[field.name] = slot, write
            self._blank.append(_empty_value(field, write))
            if field.json_option == "inline":
                self._inlined = _names(field.element_type)

    def __call__(self, value: Json, depth: int) -> bytes:
        if depth == 0:
            raise ProtobufError("messages are nested too deeply")
        parts = self._blank.copy()
        writes = self._writes
        for name, member in self._members(value).items():
            if member is not None and name in writes:
                slot, write = writes[name]
                parts[slot] = write(member, depth - 1)
        return b"".join(parts)

    def _members(self, value: Json) -> dict[str, Json]:
        """The fields of an inlined struct are put back into a tree of their own."""
        if value is None:
            return {}
        members = _expect(dict, value)
        if not self._inlined:
            return members
        inner: dict[str, Json] = {}
        outer: dict[str, Json] = {_INLINE: inner}
        for name, member in members.items():
            (inner if name in self._inlined else outer)[name] = member
        return outer


def _names(message: str) -> frozenset[str]:
    """What JSON calls a message's fields, and those of what is inlined in it."""
    names: frozenset[str] = frozenset()
    for field in fields_of(message):
        names |= _names(field.element_type) if field.json_option == "inline" else {field.name}
    return names


def _empty_value(field: Field, write: Write) -> bytes:
    """Nothing where Go has nil, and zero elsewhere."""
    if field.is_repeated or field.is_map or field.optional or _is_nilable(field):
        return b""
    scalar = SCALARS.get(field.element_type)
    return write(None if scalar is None else scalar.zero, MAX_DEPTH)


def _is_nilable(field: Field) -> bool:
    scalar = SCALARS.get(field.element_type)
    return scalar is not None and scalar.nilable


def _write_field(field: Field) -> Write:
    """The writer of a whole field, tags and all."""
    if field.is_map:
        return _write_map(field)
    tag, write = _tag(field, field.number), _write_value(field)
    if field.is_repeated:
        return lambda values, depth: b"".join([tag + write(value, depth) for value in _expect(list, values)])
    return lambda value, depth: tag + write(value, depth)


def _write_map(field: Field) -> Write:
    """An entry of a map is a message of a key and a value."""
    tag, key_tag = varint(tag_of(field.number, LENGTH)), varint(tag_of(_KEY, LENGTH))
    value_tag, write = _tag(field, _VALUE), _write_value(field)
    nilable = _is_nilable(field)

    def entry(key: str, value: Json, depth: int) -> bytes:
        written = b"" if value is None and nilable else value_tag + write(value, depth)
        return tag + with_length(key_tag + write_string(key) + written)

    def write_entries(entries: Json, depth: int) -> bytes:
        return b"".join([entry(key, value, depth) for key, value in sorted_items(_expect(dict, entries))])

    return write_entries


def _tag(field: Field, number: int) -> bytes:
    scalar = SCALARS.get(field.element_type)
    return varint(tag_of(number, LENGTH if scalar is None else scalar.wire_type))


def _write_value(field: Field) -> Write:
    """The writer of one value: what follows the tag."""
    scalar, of = SCALARS.get(field.element_type), field.element_type
    if scalar is None:
        return lambda value, depth: with_length(encoder(of)(value, depth))
    write = scalar.write
    return lambda value, _: write(value)


def _expect(expected: type[_T], value: Json) -> _T:
    if type(value) is not expected:
        raise ProtobufError(f"cannot write {type(value).__name__} as {expected.__name__}")
    return value
