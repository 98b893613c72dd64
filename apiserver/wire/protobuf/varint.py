"""The encoding of numbers, tags, lengths and single fields in protobuf, independent of messages.

The functions that read raise IndexError if bytes are missing; `envelope.py` converts that to a ProtobufError.
"""

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types: the low three bits of a tag."""

_ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))
FIXED64_SIZE = 8
_SIZES = {FIXED64: FIXED64_SIZE, FIXED32: 4}
_WIDTH = 64
_MASK = (1 << _WIDTH) - 1


class ProtobufError(ValueError):
    """The bytes are not a valid message, or the tree cannot be encoded as one."""


class UnknownKind(ProtobufError):
    """Kubernetes has no protobuf message for this kind: custom resources and Tables have none."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no protobuf message for kind "{kind}" of version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


def varint(number: int) -> bytes:
    """Encode a number from 0 to 2⁶⁴-1."""
    if number < 0x80:
        return _ONE_BYTE[number]
    written = bytearray()
    while number >= 0x80:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def with_length(payload: bytes) -> bytes:
    return varint(len(payload)) + payload


def tag_of(number: int, wire_type: int) -> int:
    return number << 3 | wire_type


def varint_field(number: int, value: int) -> bytes:
    return varint(tag_of(number, VARINT)) + varint(value)


def bytes_field(number: int, payload: bytes) -> bytes:
    return varint(tag_of(number, LENGTH)) + with_length(payload)


def string_field(number: int, text: str) -> bytes:
    return bytes_field(number, text.encode())


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number that begins at a position, and its end."""
    first = data[position]
    if first < 0x80:
        return first, position + 1
    second = data[position + 1]
    if second < 0x80:
        return first & 0x7F | second << 7, position + 2
    return _read_long_varint(data, position)


def _read_long_varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while shift < _WIDTH:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _MASK, position
        shift += 7
    raise ProtobufError("proto: integer overflow")


def read_payload(data: bytes, position: int) -> tuple[bytes, int]:
    """Return the length-prefixed bytes that begin at a position, and their end."""
    size, position = read_varint(data, position)
    end = position + size
    if end > len(data):
        raise ProtobufError("unexpected EOF")
    return data[position:end], end


def read_parts(data: bytes) -> dict[int, bytes]:
    """Return the payload of each field with a length, by number; for small messages without repeated fields."""
    parts: dict[int, bytes] = {}
    position = 0
    while position < len(data):
        tag, position = read_varint(data, position)
        if tag & 7 == LENGTH:
            parts[tag >> 3], position = read_payload(data, position)
        else:
            position = skip(data, position, tag)
    return parts


def skip(data: bytes, position: int, tag: int) -> int:
    """Return the end of the value after this tag. Groups, which are obsolete, are refused."""
    wire_type = tag & 7
    if tag >> 3 == 0:
        raise ProtobufError(f"proto: illegal tag 0 (wire type {wire_type})")
    if wire_type == VARINT:
        return read_varint(data, position)[1]
    if wire_type == LENGTH:
        return read_payload(data, position)[1]
    size = _SIZES.get(wire_type)
    if size is None:
        raise ProtobufError(f"proto: illegal wireType {wire_type}")
    if position + size > len(data):
        raise ProtobufError("unexpected EOF")
    return position + size
