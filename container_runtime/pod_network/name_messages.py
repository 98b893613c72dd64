"""Queries of name servers and their answers, as on the wire (RFC 1035). Pure."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_address
from typing import Final

from msgspec import Struct

from .decisions import Names

TYPES: Final = {"A": 1, "CNAME": 5, "PTR": 12, "TXT": 16, "AAAA": 28, "SRV": 33}
_NAMES_OF_TYPES: Final = {number: name for name, number in TYPES.items()}
_HEADER: Final = struct.Struct("!HHHHHH")
_RESPONSE, _AUTHORITATIVE, _TRUNCATED, _RECURSION_DESIRED, _RECURSION_AVAILABLE = (
    0x8000,
    0x400,
    0x200,
    0x100,
    0x80,
)
_OPCODE: Final = 0x7800
_CODE: Final = 0xF
_NO_SUCH_NAME, _NOT_IMPLEMENTED, SERVER_FAILURE = 3, 4, 2
_INTERNET: Final = 1
_OPT: Final = 41
_SECONDS: Final = 30
"""The time to live of a record, as in the Corefile of kubeadm."""
MAX_DATAGRAM: Final = 512
_MAX_LABEL: Final = 63
_MAX_NAME: Final = 255
_POINTER: Final = 0xC0
_RECORD: Final = struct.Struct("!HHIH")
_NAMES_IN_VALUES: Final = {2: (0, 1), 5: (0, 1), 6: (0, 2), 12: (0, 1), 15: (2, 1), 33: (6, 1)}
"""The bytes before the names in the value of a record, and how many names it has, by the type: NS, CNAME, SOA, PTR, MX and SRV."""
_SRV_FIELDS: Final = 4


class InvalidQuery(Exception):
    """A message is not a query."""


class InvalidAnswer(Exception):
    """A message is not the answer of a name server."""


class NameQuery(Struct, frozen=True, kw_only=True):
    number: int
    flags: int
    name: str
    kind: int
    question: bytes
    """The question as it was sent, which the answer repeats."""
    size: int
    """The bytes of the longest datagram that the client takes."""

    @property
    def record_type(self) -> str:
        """Return the type of the records; "" if the cluster has none of it."""
        return _NAMES_OF_TYPES.get(self.kind, "")


def parse_query(data: bytes) -> NameQuery:
    try:
        number, flags, questions, _, _, additional = _HEADER.unpack_from(data)
        if flags & _RESPONSE or questions != 1:
            raise InvalidQuery
        labels, offset = list[str](), _HEADER.size
        while length := data[offset]:
            if length > _MAX_LABEL:
                raise InvalidQuery
            labels.append(data[offset + 1 : offset + 1 + length].decode("ascii"))
            offset += 1 + length
        kind, _ = struct.unpack_from("!HH", data, offset + 1)
        end = offset + 5
        size = _datagram_size(data, end) if additional else MAX_DATAGRAM
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise InvalidQuery from error
    question = data[_HEADER.size : end]
    return NameQuery(
        number=number, flags=flags, name=".".join(labels), kind=kind, question=question, size=size
    )


def _datagram_size(data: bytes, offset: int) -> int:
    """Return what the record of EDNS says after the question."""
    root, kind, size = struct.unpack_from("!BHH", data, offset)
    return max(size, MAX_DATAGRAM) if root == 0 and kind == _OPT else MAX_DATAGRAM


def encode_answer(query: NameQuery, names: Names, *, is_datagram: bool = False) -> bytes:
    flags = _RESPONSE | _AUTHORITATIVE | _RECURSION_AVAILABLE | query.flags & _RECURSION_DESIRED
    if query.flags & _OPCODE:
        return (
            _HEADER.pack(query.number, flags | query.flags & _OPCODE | _NOT_IMPLEMENTED, 1, 0, 0, 0)
            + query.question
        )
    code = 0 if names.exists else _NO_SUCH_NAME
    return _encode_records_of(query, flags | code, [*_encode_records(names.records)], is_datagram=is_datagram)


def encode_target_query(query: NameQuery, target: str) -> bytes:
    """Return the query for the records of the same type of another name."""
    header = _HEADER.pack(query.number, _RECURSION_DESIRED, 1, 0, 0, 0)
    return header + _encode_name(target) + query.question[-4:]


def encode_answer_of_target(
    query: NameQuery, aliases: Sequence[tuple[str, str, str]], answer: bytes, *, is_datagram: bool = False
) -> bytes:
    """Return the aliases of a name, and what another server answers about the one to which they lead."""
    try:
        _, answer_flags, *_ = _HEADER.unpack_from(answer)
        records = [*_encode_records(aliases), *_read_records(answer)]
    except (IndexError, struct.error) as error:
        raise InvalidAnswer from error
    flags = _RESPONSE | _AUTHORITATIVE | _RECURSION_AVAILABLE | query.flags & _RECURSION_DESIRED
    flags |= answer_flags & (_CODE | _TRUNCATED)
    return _encode_records_of(query, flags, records, is_datagram=is_datagram)


def _encode_records_of(query: NameQuery, flags: int, records: Sequence[bytes], *, is_datagram: bool) -> bytes:
    header = _HEADER.pack(query.number, flags, 1, len(records), 0, 0)
    text = header + query.question + b"".join(records)
    if is_datagram and len(text) > query.size:
        return _HEADER.pack(query.number, flags & ~_CODE | _TRUNCATED, 1, 0, 0, 0) + query.question
    return text


def _read_records(data: bytes) -> Iterator[bytes]:
    """Yield the records of an answer, with whole names in place of references to other parts of the message."""
    _, _, questions, answers, _, _ = _HEADER.unpack_from(data)
    offset = _HEADER.size
    for _ in range(questions):
        offset = _read_name(data, offset)[1] + 4
    for _ in range(answers):
        name, offset = _read_name(data, offset)
        kind, number, seconds, length = _RECORD.unpack_from(data, offset)
        start = offset + _RECORD.size
        offset = start + length
        if offset > len(data):
            raise InvalidAnswer
        value = _read_value(data[:offset], start, kind)
        yield name + _RECORD.pack(kind, number, seconds, len(value)) + value


def _read_value(data: bytes, start: int, kind: int) -> bytes:
    """Return the value of a record, which the data ends with."""
    size, names = _NAMES_IN_VALUES.get(kind, (0, 0))
    parts, offset = [data[start : start + size]], start + size
    for _ in range(names):
        name, offset = _read_name(data, offset)
        parts.append(name)
    return b"".join(parts) + data[offset:]


def _read_name(data: bytes, offset: int) -> tuple[bytes, int]:
    """Return the whole name at a place of a message, and where it ends there."""
    name, end = b"", 0
    while length := data[offset]:
        if length >= _POINTER:
            (place,) = struct.unpack_from("!H", data, offset)
            end = end or offset + 2
            if place & 0x3FFF >= offset:
                raise InvalidAnswer
            offset = place & 0x3FFF
        elif length > _MAX_LABEL or len(name) + length > _MAX_NAME:
            raise InvalidAnswer
        else:
            name += data[offset : offset + 1 + length]
            offset += 1 + length
    return name + b"\0", end or offset + 1


def encode_failure(query: NameQuery) -> bytes:
    flags = _RESPONSE | _RECURSION_AVAILABLE | query.flags & _RECURSION_DESIRED | SERVER_FAILURE
    return _HEADER.pack(query.number, flags, 1, 0, 0, 0) + query.question


def _encode_records(records: Sequence[tuple[str, str, str]]) -> Iterable[bytes]:
    for name, record_type, value in records:
        data = _encode_value(record_type, value)
        if data is not None:
            fields = _RECORD.pack(TYPES[record_type], _INTERNET, _SECONDS, len(data))
            yield _encode_name(name) + fields + data


def _encode_value(record_type: str, value: str) -> bytes | None:
    match record_type:
        case "A" | "AAAA":
            return ip_address(value).packed
        case "CNAME" | "PTR":
            return _encode_name(value)
        case "SRV" if len(fields := value.split()) == _SRV_FIELDS:
            return struct.pack("!HHH", *map(int, fields[:3])) + _encode_name(fields[3])
        case "TXT":
            return bytes([len(value)]) + value.encode()
        case _:
            return None


def _encode_name(name: str) -> bytes:
    labels = [label.encode("ascii", "replace")[:_MAX_LABEL] for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
