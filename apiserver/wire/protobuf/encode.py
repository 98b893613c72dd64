"""Encodes a JSON tree as a protobuf message, with the same bytes as upstream.

Fields are written in the order of their numbers, maps in the order of their keys; numbers, strings and structs that are
not pointers in Go are written even if they are empty. Fields that the message does not have, such as kind and apiVersion,
are ignored, as Go does. The encoder of a message is compiled when it is first needed.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TypeAlias, TypeVar

from mockube.apimachinery.piecewise import sorted_items

from .forms import FORMS, Json
from .scalars import SCALARS, write_string
from .tables import MAX_DEPTH, MessageField, fields_of
from .varint import LENGTH, ProtobufError, tag_of, varint, with_length

_T = TypeVar("_T")

Write: TypeAlias = Callable[[Json, int], bytes]
"""Encodes a value; the number is that of the message levels that may still follow."""

_INLINE = ""
"""The name of an inlined field, whose fields are those of the outer object in JSON."""
_KEY, _VALUE = 1, 2
"""The field numbers of an entry of a map."""


@cache
def encoder(message: str) -> Write:
    plain = _Message(message)
    form = FORMS.get(message)
    return plain if form is None else lambda value, depth: plain(form.from_json(value), depth)


class _Message:
    """The compiled encoder of a message. `_blank` has the bytes of each field that a tree lacks, in order of numbers."""

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
        """Return the fields of a message; those of an inlined struct are moved into an object of their own."""
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
    """Return the JSON names of the fields of a message and of its inlined structs."""
    names: frozenset[str] = frozenset()
    for field in fields_of(message):
        names |= _names(field.element_type) if field.json_option == "inline" else {field.name}
    return names


def _empty_value(field: MessageField, write: Write) -> bytes:
    """Return the bytes of a missing field: none if Go has nil, otherwise its zero value."""
    if field.is_repeated or field.is_map or field.optional or _is_nilable(field):
        return b""
    scalar = SCALARS.get(field.element_type)
    return write(None if scalar is None else scalar.zero, MAX_DEPTH)


def _is_nilable(field: MessageField) -> bool:
    scalar = SCALARS.get(field.element_type)
    return scalar is not None and scalar.nilable


def _write_field(field: MessageField) -> Write:
    """Return the encoder of a field with its tags."""
    if field.is_map:
        return _write_map(field)
    tag, write = _tag(field, field.number), _write_value(field)
    if field.is_repeated:
        return lambda values, depth: b"".join([tag + write(value, depth) for value in _expect(list, values)])
    return lambda value, depth: tag + write(value, depth)


def _write_map(field: MessageField) -> Write:
    """Return the encoder of a map, whose entries are messages of a key and a value."""
    tag, key_tag = varint(tag_of(field.number, LENGTH)), varint(tag_of(_KEY, LENGTH))
    value_tag, write = _tag(field, _VALUE), _write_value(field)
    nilable = _is_nilable(field)

    def entry(key: str, value: Json, depth: int) -> bytes:
        written = b"" if value is None and nilable else value_tag + write(value, depth)
        return tag + with_length(key_tag + write_string(key) + written)

    def write_entries(entries: Json, depth: int) -> bytes:
        return b"".join([entry(key, value, depth) for key, value in sorted_items(_expect(dict, entries))])

    return write_entries


def _tag(field: MessageField, number: int) -> bytes:
    scalar = SCALARS.get(field.element_type)
    return varint(tag_of(number, LENGTH if scalar is None else scalar.wire_type))


def _write_value(field: MessageField) -> Write:
    """Return the encoder of a value, without the tag."""
    scalar, of = SCALARS.get(field.element_type), field.element_type
    if scalar is None:
        return lambda value, depth: with_length(encoder(of)(value, depth))
    write = scalar.write
    return lambda value, _: write(value)


def _expect(expected: type[_T], value: Json) -> _T:
    if type(value) is not expected:
        raise ProtobufError(f"cannot write {type(value).__name__} as {expected.__name__}")
    return value
