"""Decodes a protobuf message to a JSON tree, as Go prints the same object.

This module decides the order of fields, and which of them are omitted, null or empty. The decoder of a message is
compiled when it is first needed. Missing bytes and invalid UTF-8 raise Python's errors, which `envelope.py` converts.
"""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeAlias

from mockube.apimachinery.piecewise import sorted_in_pieces

from . import varint
from .forms import FORMS, Json
from .scalars import SCALARS, ScalarCodec
from .tables import MessageField, fields_of
from .varint import ProtobufError

Tree: TypeAlias = dict[str, Json]
"""A decoded message. During decoding, `...` marks a field that JSON omits."""
Value: TypeAlias = Any
"""The value after a tag: a number or bytes."""
FieldValues: TypeAlias = dict[int, list[Value]]
"""By field number, the values of messages, lists and maps, which are converted after the whole message was read."""
Finish: TypeAlias = Callable[[Tree, list[Value], int], None]
Convert: TypeAlias = Callable[[Value, int], Json]
"""Converts a value. The last number, here and in Finish, is the number of message levels that may still follow."""

_KEY, _VALUE = 1, 2
"""The field numbers of an entry of a map."""

_SHORT = 32
"""The maximum bytes of a message that is cached."""


@cache
def decoder(message: str) -> Convert:
    plain = _message(message)
    form = FORMS.get(message)
    if form is None:
        return plain
    if not form.shared:
        return lambda payload, depth: form.to_json(plain(payload, depth))
    return _cached(lambda payload: form.to_json(plain(payload, 1)))


def _cached(convert: Callable[[bytes], Json]) -> Convert:
    """Cache short messages: an object and its neighbours have mostly the same times and quantities."""
    cached_convert = lru_cache(maxsize=4096)(convert)
    return lambda payload, _: (cached_convert if len(payload) <= _SHORT else convert)(payload)


@cache
def _message(message: str) -> "_Message":
    return _Message(message)


class _FieldReader(NamedTuple):
    """The reader of a tag. Without `read`, the value is stored for later; `zero` is the JSON of a zero value."""

    number: int
    name: str
    read: Callable[[Value], Json] | None = None
    zero: Json = None


class _Message:
    """The compiled decoder of a message. `blank` is the tree of an empty message."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.blank: Tree = {}
        self._tags: dict[int, _FieldReader] = {}
        self._finishers: dict[int, Finish] = {}
        self._always: list[int] = []
        for field in fields_of(name):
            self._compile(field)

    def __call__(self, payload: bytes, depth: int) -> Tree:
        tree = self.blank.copy()
        self.fill(tree, payload, depth)
        return {name: value for name, value in tree.items() if value is not ...}

    def fill(self, tree: Tree, payload: bytes, depth: int) -> None:
        if depth == 0:
            raise ProtobufError("messages are nested too deeply")
        field_values = self._read(tree, payload)
        for number in self._always:
            field_values.setdefault(number, [])
        for number, values in field_values.items():
            self._finishers[number](tree, values, depth - 1)

    def _read(self, tree: Tree, data: bytes) -> FieldValues:
        """Read all fields. Most tags and lengths have one byte, and are read inline."""
        field_values: FieldValues = {}
        tags = self._tags
        position, end = 0, len(data)
        while position < end:
            tag = data[position]
            position += 1
            if tag > 0x7F:
                tag, position = varint.read_varint(data, position - 1)
            reader = tags.get(tag)
            if reader is None:
                position = self._skip(data, position, tag)
                continue
            number, name, read, zero = reader
            wire_type = tag & 7
            value: Value = varint.FIXED64_SIZE
            if wire_type != varint.FIXED64:
                value = data[position]
                position += 1
                if value > 0x7F:
                    value, position = varint.read_varint(data, position - 1)
            if wire_type != varint.VARINT:
                start, position = position, position + value
                if position > end:
                    raise ProtobufError("unexpected EOF")
                value = data[start:position]
            if read is None:
                field_values.setdefault(number, []).append(value)
            else:
                tree[name] = read(value) if value else zero
        return field_values

    def _skip(self, data: bytes, position: int, tag: int) -> int:
        for reader in self._tags.values():
            if reader.number == tag >> 3:
                raise ProtobufError(
                    f"proto: wrong wireType = {tag & 7} for field {reader.name} of {self._name}"
                )
        return varint.skip(data, position, tag)

    # --- compiling

    def _compile(self, field: MessageField) -> None:
        scalar = SCALARS.get(field.element_type)
        if field.json_option == "inline":
            self._inline(field)
        elif field.is_repeated or field.is_map or scalar is None:
            self._keep(field, scalar)
        else:
            self.blank[field.name] = _default_of(field, scalar)
            zero = ... if field.json_option == "omitempty" and not field.optional else scalar.zero
            reader = _FieldReader(field.number, field.name, scalar.read, zero)
            self._tags[varint.tag_of(field.number, scalar.wire_type)] = reader

    def _inline(self, field: MessageField) -> None:
        inner = _message(field.element_type)
        self.blank |= inner.blank
        self._always.append(field.number)
        self._tags[varint.tag_of(field.number, varint.LENGTH)] = _FieldReader(
            field.number, field.element_type
        )
        self._finishers[field.number] = lambda tree, values, depth: inner.fill(tree, b"".join(values), depth)

    def _keep(self, field: MessageField, scalar: ScalarCodec | None) -> None:
        self.blank[field.name] = None if field.json_option == "always" else ...
        if field.json_option == "empty" or not (field.is_repeated or field.is_map or field.optional):
            self._always.append(field.number)
        wire_types = {varint.LENGTH} if scalar is None or field.is_map else {varint.LENGTH, scalar.wire_type}
        for wire_type in wire_types:
            self._tags[varint.tag_of(field.number, wire_type)] = _FieldReader(field.number, field.name)
        self._finishers[field.number] = _finisher(field, scalar)


def _default_of(field: MessageField, scalar: ScalarCodec) -> Json:
    if field.json_option == "omitempty":
        return ...
    return None if field.optional or scalar.nilable else scalar.zero


def _finisher(field: MessageField, scalar: ScalarCodec | None) -> Finish:
    if field.is_map:
        return _map_finisher(field, scalar)
    if field.is_repeated:
        return _list_finisher(field, scalar)
    return _message_finisher(field)


def _map_finisher(field: MessageField, scalar: ScalarCodec | None) -> Finish:
    """Convert a map: an entry is a message of a key and a value, which is never a number."""
    name, of = field.name, field.element_type

    def finish(tree: Tree, values: list[Value], depth: int) -> None:
        convert = decoder(of) if scalar is None else lambda value, _: scalar.read(value)
        entries = [varint.read_parts(value) for value in values]
        read = {entry.get(_KEY, b"").decode(): convert(entry.get(_VALUE, b""), depth) for entry in entries}
        tree[name] = {key: read[key] for key in sorted_in_pieces(read)}

    return finish


def _list_finisher(field: MessageField, scalar: ScalarCodec | None) -> Finish:
    name, of = field.name, field.element_type

    def finish_messages(tree: Tree, values: list[Value], depth: int) -> None:
        convert = decoder(of)
        tree[name] = [convert(value, depth) for value in values]

    if scalar is None:
        return finish_messages
    read = scalar.read

    def finish_scalars(tree: Tree, values: list[Value], _: int) -> None:
        tree[name] = [read(value) for value in values]

    def finish_numbers(tree: Tree, values: list[Value], _: int) -> None:
        tree[name] = [read(number) for value in values for number in _unpack(value)]

    return finish_numbers if scalar.wire_type == varint.VARINT else finish_scalars


def _unpack(value: Value) -> Iterator[int]:
    """Yield the numbers of a list, which may be packed by clients that are not written in Go."""
    if isinstance(value, int):
        yield value
        return
    position = 0
    while position < len(value):
        number, position = varint.read_varint(value, position)
        yield number


def _message_finisher(field: MessageField) -> Finish:
    """Convert a message; the parts of a split message are joined."""
    name, of = field.name, field.element_type

    def finish(tree: Tree, values: list[Value], depth: int) -> None:
        tree[name] = decoder(of)(b"".join(values), depth)

    def finish_unless_zero(tree: Tree, values: list[Value], depth: int) -> None:
        value = decoder(of)(b"".join(values), depth)
        tree[name] = ... if value is None else value

    return finish_unless_zero if field.json_option == "omitzero" else finish
