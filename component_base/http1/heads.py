"""Start lines and headers. As Go's net/http, a line may end with LF alone, and a header may continue on the next line."""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias, TypeVar

_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: (.*))?")
_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^ \x00-\x1f\x7f]+) HTTP/1\.([01])")
_FIELD: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++:[^\x00-\x08\x0a-\x1f\x7f]*+"
_FIELDS: Final = rb"((?:" + _FIELD + rb"\r\n)*+)\r\n"
_USUAL_RESPONSE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\r\n\x00]*+))?+\r\n" + _FIELDS)
_USUAL_REQUEST: Final = re.compile(_REQUEST_LINE.pattern + rb"\r\n" + _FIELDS)
"""Heads whose lines all end with CRLF and do not continue: they are checked by one expression."""
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
"""What a header must not contain, as in Go: control characters other than a tab."""
_TRAILER: Final = re.compile(rb"(?:" + _FIELD + rb"|[ \t][^\x00-\x08\x0a-\x1f\x7f]*+)")
_TOKEN: Final = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_JOINED: Final = frozenset({b"connection", b"content-length", b"host", b"transfer-encoding"})
_SHOWN: Final = 100
"""Bytes of the other side's that an error repeats."""


class ProtocolError(Exception):
    """What the other side has sent is not HTTP/1.1."""

    def __init__(self, problem: str, status: int = 400) -> None:
        super().__init__(problem)
        self.status = status
        """What a server returns."""


class BadStartLine(ProtocolError):
    """The first line is not that of a message of HTTP/1.1."""

    def __init__(self, line: bytes, kind: str) -> None:
        super().__init__(f"the {kind} begins with {line[:_SHOWN]!r}")
        self.line = line[:_SHOWN].decode("utf-8", "replace")


class MessageTooLong(ProtocolError):
    """The head, or a line between chunks, is longer than its limit."""


class IncompleteMessage(ProtocolError):
    """The connection ended before the message."""

    def __init__(self, kind: str, *, has_begun: bool) -> None:
        super().__init__(f"the connection ended before the {kind} was complete")
        self.has_begun = has_begun
        """Whether a byte of the message was received."""


class ResponseHead(NamedTuple):
    status: int
    reason: bytes
    is_1_0: bool
    fields: dict[bytes, bytes]
    """The first value of each header by its lower-case name; all values, joined by commas, of Host and those that frame a message."""
    raw: bytes
    """All bytes of the head."""

    def header(self, name: str) -> str:
        """Return a header by its lower-case name; "" without one. Bytes that are not UTF-8 become surrogates."""
        return _text(self.fields.get(name.encode(), b""))


class RequestHead(NamedTuple):
    method: str
    target: str
    is_1_0: bool
    fields: dict[bytes, bytes]
    raw: bytes


Head = TypeVar("Head", ResponseHead, RequestHead)
_Match: TypeAlias = Callable[[bytes], re.Match[bytes] | None]


def parse_response(raw: bytes) -> ResponseHead:
    (minor, status, reason), lines = _split(
        raw, "response", _USUAL_RESPONSE.fullmatch, _STATUS_LINE.fullmatch
    )
    return ResponseHead(int(status), reason or b"", minor == b"0", _fields(lines), raw)


def parse_request(raw: bytes) -> RequestHead:
    (method, target, minor), lines = _split(raw, "request", _USUAL_REQUEST.fullmatch, _REQUEST_LINE.fullmatch)
    return RequestHead(method.decode(), _text(target), minor == b"0", _fields(lines), raw)


def is_usual_request(raw: bytes) -> bool:
    """Return whether all lines of a request's head end with CRLF, and none continues."""
    return _USUAL_REQUEST.fullmatch(raw) is not None


def check_beginning(data: bytes, kind: str) -> None:
    """Refuse what cannot become the head of a response, before its end, which may never come."""
    first, line_break, _ = data.partition(b"\n")
    first = first.removesuffix(b"\r")
    is_possible = _STATUS_LINE.fullmatch(first) if line_break else b"HTTP/1."[: len(data)] == data[:7]
    if kind == "response" and not is_possible:
        raise BadStartLine(first, kind)


def check_trailer(line: bytes, kind: str, *, is_first: bool) -> None:
    """Refuse a line behind the last chunk that is no header. It may have line feeds alone, and continue the header before it."""
    for number, part in enumerate(line.split(b"\n")):
        is_continuation = part[:1] in (b" ", b"\t")
        if not _TRAILER.fullmatch(part) or (is_continuation and is_first and not number):
            raise ProtocolError(f"invalid {kind} trailer {line[:_SHOWN]!r}")


def pairs(head: ResponseHead | RequestHead) -> list[tuple[str, str]]:
    """Return all headers as they were sent, in their order, for a proxy. Bytes that are not UTF-8 become surrogates."""
    kind = "response"  # it was parsed before, so there are no errors
    _, *lines = _lines(head.raw, kind)
    split = (line.partition(b":") for line in _unfold(lines))
    return [(_text(name), _text(value.strip(b" \t"))) for name, _, value in split]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _control_character(kind: str) -> ProtocolError:
    return ProtocolError(f"the {kind} header contains a control character")


def _lines(raw: bytes, kind: str) -> list[bytes]:
    """Return the lines of a head, whose last one is empty."""
    count = raw.count(b"\r\n")
    if count == raw.count(b"\n"):
        lines = raw.split(b"\r\n")
    else:
        lines = [line.removesuffix(b"\r") for line in raw.split(b"\n")]
        count = raw.count(b"\r") - sum(line.count(b"\r") for line in lines)
    if count != raw.count(b"\r") or b"\0" in raw:
        raise _control_character(kind)
    del lines[-2:]
    return lines


def _split(
    raw: bytes, kind: str, match_usual: _Match, match_start_line: _Match
) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """Return the parts of a head's start line, and its other lines."""
    matched = match_usual(raw)
    if matched is not None:
        *parts, block = matched.groups()
        lines = block.split(b"\r\n")
        del lines[-1]
        return parts, lines
    first, *lines = _checked_lines(raw, kind)
    matched = match_start_line(first)
    if matched is None:
        raise BadStartLine(first, kind)
    return matched.groups(), lines


def _checked_lines(raw: bytes, kind: str) -> list[bytes]:
    """Return the lines of an unusual head, without line breaks in headers; refuse one with a wrong name."""
    first, *lines = _lines(raw, kind)
    lines = _unfold(lines)
    for line in lines:
        name, colon, _ = line.partition(b":")
        if not (name and colon) or name.translate(None, _TOKEN):
            if not _STATUS_LINE.fullmatch(first) and not _REQUEST_LINE.fullmatch(first):
                raise BadStartLine(first, kind)
            raise ProtocolError(f"invalid {kind} header {line[:_SHOWN]!r}")
        if _CONTROL.search(line):
            raise _control_character(kind)
    return [first, *lines]


def _fields(lines: Sequence[bytes]) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        fields[name.lower()] = value.strip(b" \t")
    return fields if len(fields) == len(lines) else _fields_with_repeated(lines)


def _fields_with_repeated(lines: Sequence[bytes]) -> dict[bytes, bytes]:
    values: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        values.setdefault(name.lower(), []).append(value.strip(b" \t"))
    return {name: b", ".join(each if name in _JOINED else each[:1]) for name, each in values.items()}


def _unfold(lines: Sequence[bytes]) -> list[bytes]:
    """Join each line that begins with a space to the header before it."""
    headers: list[list[bytes]] = []
    for line in lines:
        if headers and line[:1] in (b" ", b"\t"):
            headers[-1].append(line.strip(b" \t"))
        else:
            headers.append([line])
    return [b" ".join(parts) for parts in headers]
