"""The first line of a request, which is checked before the parser gets it: the parser accepts lines that Go's net/http refuses, and refuses others.

Go accepts every token as a method and parses all requests alike; handlers refuse methods later. The parser accepts a list of
methods, and stops parsing HTTP after CONNECT: it gets GET in the place of other ones. It also skips blanks between words and single
line breaks before a request, accepts protocols such as RTSP, and refuses targets that are not ASCII.
"""

import re
import string
from typing import Final
from urllib.parse import quote_from_bytes

_PARSED_METHODS: Final = frozenset(
    {b"GET", b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"TRACE"}
)
"""The methods that the parser parses as Go does."""
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
match: Final = re.compile(rb"(?:\r\n)*+(%b) ([^\x00-\x20\x7f]+) HTTP/1\.[01]\r\n" % _TOKEN).match
"""Returns the match of a request's first line, with its method and target; None if it is malformed, or of another version."""
_BEGINNING: Final = re.compile(rb"(?:\r\n)*+(?:%b(?: |\Z)|\r?\Z)" % _TOKEN)
_BEGINNING_LENGTH: Final = 16
"""The number of bytes that are checked of an incomplete line."""
_FRAMING: Final = re.compile(
    rb"\r\n(content-length|transfer-encoding|upgrade)[ \t]*:[ \t]*([0-9]{0,15})", re.IGNORECASE
)


def may_become_line(head: bytes | bytearray) -> bool:
    """Return whether a head without a complete first line may be continued by one."""
    return _BEGINNING.match(head, 0, _BEGINNING_LENGTH) is not None


def is_custom(line: re.Match[bytes]) -> bool:
    """Return whether the parser needs another method in the place of the one of a line."""
    if line[1] == b"CONNECT":
        return line[2].startswith(b"/")
    return line[1] not in _PARSED_METHODS


def for_parser(data: bytes, line: re.Match[bytes]) -> bytes:
    """Return the data with a first line that the parser accepts: a usual method, and a target in ASCII."""
    if not line[2].isascii():
        target = quote_from_bytes(line[2], safe=string.printable).encode()
        data = b"%b%b%b" % (data[: line.start(2)], target, data[line.end(2) :])
    return b"GET" + data[line.end(1) :] if is_custom(line) else data


def message_length(data: bytes, head_length: int) -> int:
    """Return how many bytes of the data the first request has, whose head ends there; all of them if only the parser knows."""
    framing = _FRAMING.findall(data, 0, head_length)
    if not framing:
        return head_length
    (name, length), *others = framing
    is_counted = name.lower() == b"content-length" and length and not others
    return min(head_length + int(length), len(data)) if is_counted else len(data)
