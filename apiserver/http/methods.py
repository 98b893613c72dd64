"""Replace request methods that the parser does not accept, or parses differently from Go, by GET.

Go's net/http accepts every token as a method and parses all requests alike; handlers refuse methods later. The parser
accepts a list of methods, and stops parsing HTTP after CONNECT.
"""

import re
from typing import Final

STANDARD_METHODS: Final = (
    b"GET ",
    b"POST ",
    b"PUT ",
    b"PATCH ",
    b"DELETE ",
    b"HEAD ",
    b"OPTIONS ",
    b"TRACE ",
)
"""The first bytes of a head that the parser parses as Go does."""
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_LINE: Final = re.compile(rb"(%b) ([^ \r\n]+) HTTP/1\.[01]\r\n" % _TOKEN)
_BEGINNING: Final = re.compile(rb"%b(?: |\Z)" % _TOKEN)
_BEGINNING_LENGTH: Final = 16
"""The number of bytes that are checked of an incomplete line."""


def may_be_custom_method(head: bytes | bytearray) -> bool:
    """Return whether a head with an incomplete first line may begin with such a method."""
    return not head.startswith(STANDARD_METHODS) and bool(_BEGINNING.match(head, 0, _BEGINNING_LENGTH))


def replace_custom_method(head: bytes) -> tuple[bytes, str]:
    """Return a head without a usual method for the parser, and the replaced method; "" if none was replaced."""
    line = _LINE.match(head)
    if line is None or (line[1] == b"CONNECT" and not line[2].startswith(b"/")):
        return head, ""
    return b"GET" + head[line.end(1) :], line[1].decode()
