"""A reader of DER, as strict as Go's cryptobyte: definite and minimal lengths, tags of one byte."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, NamedTuple

from mockube.apimachinery.memoize import memoize

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
UTF8_STRING: Final = 0x0C
NUMERIC_STRING: Final = 0x12
PRINTABLE_STRING: Final = 0x13
T61_STRING: Final = 0x14
IA5_STRING: Final = 0x16
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
BMP_STRING: Final = 0x1E
SEQUENCE: Final = 0x30
SET: Final = 0x31
CONTEXT: Final = 0x80
"""The class of tags that a type defines for its own fields."""
CONSTRUCTED: Final = 0x20
_LONG_TAG: Final = 0x1F
_LONG_FORM: Final = 0x80
_MAX_LENGTH_BYTES: Final = 4
"""Bytes of a length: Go reads no more (x/crypto/cryptobyte/asn1.go)."""
_MAX_OID_BYTES: Final = 5
"""Bytes of one number of an object identifier, which has 31 bits."""
_TIME: Final = re.compile(
    rb"(?P<year>[0-9]{2}|[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})"
    rb"(?P<second>[0-9]{2})?(?:Z|(?P<sign>[+-])(?P<hours>[0-9]{2})(?P<minutes>[0-5][0-9]))"
)


class CertificateError(ValueError):
    """A certificate cannot be parsed or is not trusted; the message is Go's."""


class BitString(NamedTuple):
    data: bytes
    padding: int
    """The number of unused bits of the last byte."""

    def right_aligned(self) -> bytes:
        """Return the bits as a number of the same length, with the unused bits at the beginning."""
        number = int.from_bytes(self.data) >> self.padding
        return number.to_bytes(len(self.data))

    def bit(self, index: int) -> bool:
        byte, offset = divmod(index, 8)
        is_present = index < len(self.data) * 8 - self.padding
        return is_present and bool(self.data[byte] & (0x80 >> offset))


class Reader:
    """Reads the elements of a value from its beginning. A method raises CertificateError(problem) if it cannot read."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __bool__(self) -> bool:
        """Return whether bytes are left."""
        return self._position < len(self._data)

    def peek(self, tag: int) -> bool:
        """Return whether the next element has this tag."""
        return self._position < len(self._data) and self._data[self._position] == tag

    def any(self, problem: str) -> tuple[int, bytes]:
        """Read an element with any tag; return the tag and the content."""
        start = self._position
        content = start + self._header(problem)
        return self._data[start], self._data[content : self._position]

    def any_element(self, problem: str) -> bytes:
        """Read an element with any tag; return it with its header."""
        start = self._position
        self._header(problem)
        return self._data[start : self._position]

    def element(self, tag: int, problem: str) -> bytes:
        """Read an element; return it with its header."""
        start = self._position
        if not self.peek(tag):
            raise CertificateError(problem)
        self._header(problem)
        return self._data[start : self._position]

    def content(self, tag: int, problem: str) -> bytes:
        start = self._position
        if not self.peek(tag):
            raise CertificateError(problem)
        return self._data[start + self._header(problem) : self._position]

    def nested_reader(self, tag: int, problem: str) -> "Reader":
        """Read an element; return a reader of its content."""
        return Reader(self.content(tag, problem))

    def optional(self, tag: int, problem: str) -> bytes | None:
        return self.content(tag, problem) if self.peek(tag) else None

    def _header(self, problem: str) -> int:
        """Move behind the next element; return the length of its header."""
        data, start = self._data, self._position
        if len(data) - start < 2 or data[start] & _LONG_TAG == _LONG_TAG:
            raise CertificateError(problem)
        length, header = data[start + 1], 2
        if length & _LONG_FORM:
            size = length & ~_LONG_FORM
            header = 2 + size
            if not 0 < size <= _MAX_LENGTH_BYTES or len(data) - start < header:
                raise CertificateError(problem)
            length = int.from_bytes(data[start + 2 : start + header])
            if length < _LONG_FORM or not data[start + 2]:
                raise CertificateError(problem)
        if start + header + length > len(data):
            raise CertificateError(problem)
        self._position = start + header + length
        return header

    def boolean(self, problem: str) -> bool:
        content = self.content(BOOLEAN, problem)
        if content not in (b"\x00", b"\xff"):
            raise CertificateError(problem)
        return content == b"\xff"

    def integer(self, problem: str, *, tag: int = INTEGER, bits: int | None = None) -> int:
        """Read a signed integer; `bits` limits its size."""
        content = self.content(tag, problem)
        value = int.from_bytes(content, signed=True)
        is_minimal = bool(content) and (len(content) == 1 or value >> (len(content) * 8 - 9) not in (0, -1))
        if not is_minimal or (bits is not None and not -(1 << bits - 1) <= value < 1 << bits - 1):
            raise CertificateError(problem)
        return value

    def bits(self, problem: str) -> BitString:
        content = self.content(BIT_STRING, problem)
        padding, data = content[:1], content[1:]
        if not padding or padding[0] > 7 or (padding[0] and not data):
            raise CertificateError(problem)
        if data and data[-1] & ((1 << padding[0]) - 1):
            raise CertificateError(problem)
        return BitString(data, padding[0])

    def identifier(self, problem: str) -> str:
        """Read an object identifier; return it in dotted form."""
        identifier = _identifier_text(self.content(OBJECT_IDENTIFIER, problem))
        if not identifier:
            raise CertificateError(problem)
        return identifier

    def time(self, tag: int, problem: str) -> datetime:
        return _parse_time(self.content(tag, problem), problem, has_short_year=tag == UTC_TIME)


@memoize(1000, max_length=32)
def _identifier_text(data: bytes) -> str:
    """Return an object identifier in dotted form; "" if it is invalid."""
    numbers, value, size = list[int](), 0, 0
    for byte in data:
        size += 1
        if size > _MAX_OID_BYTES or value >= 1 << 24 or (size == 1 and byte == _LONG_FORM):
            return ""
        value = value << 7 | byte & 0x7F
        if not byte & _LONG_FORM:
            numbers.append(value)
            value = size = 0
    if not numbers or size:
        return ""
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _parse_time(text: bytes, problem: str, *, has_short_year: bool) -> datetime:
    match = _TIME.fullmatch(text)
    if match is None or (len(match["year"]) == 2) != has_short_year:
        raise CertificateError(problem)
    if match["second"] is None and not has_short_year:
        raise CertificateError(problem)
    parts = {name: int(match[name] or 0) for name in ("month", "day", "hour", "minute", "second")}
    year = int(match["year"])
    if has_short_year:
        year += 1900 if year >= 50 else 2000
    try:
        # Python has no year 0, which is before all other times, too.
        return datetime(max(year, 1), **parts, tzinfo=_zone(match))
    except ValueError:
        raise CertificateError(problem) from None


def _zone(match: "re.Match[bytes]") -> timezone:
    """Return the zone; raise ValueError if it is UTC with an offset, which DER writes as Z."""
    if match["sign"] is None:
        return UTC
    offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"]))
    if not offset:
        raise ValueError
    return timezone(-offset if match["sign"] == b"-" else offset)
