"""Methods of requests that the parser does not accept, or reads in another way than Go: it is given GET in their place.

Go's net/http accepts every token, and reads all methods alike; what is served is decided later. The parser knows a list,
and ends HTTP behind CONNECT.
"""

import re
from typing import Final

USUAL: Final = (b"GET ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"HEAD ", b"OPTIONS ", b"TRACE ")
"""How a head begins that the parser reads as Go does."""
_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_LINE: Final = re.compile(rb"(%b) ([^ \r\n]+) HTTP/1\.[01]\r\n" % _TOKEN)
_BEGINNING: Final = re.compile(rb"%b(?: |\Z)" % _TOKEN)
_BEGINNING_LENGTH: Final = 16
"""Bytes that are checked of a line that is not complete."""


def may_be_unusual(head: bytes | bytearray) -> bool:
    """Whether a head without the end of its first line begins with such a method, as far as it is there."""
    return not head.startswith(USUAL) and bool(_BEGINNING.match(head, 0, _BEGINNING_LENGTH))


def replace_unusual(head: bytes) -> tuple[bytes, str]:
    """Return a head for the parser, and the method that it does not have any more; "" if it is the same."""
    line = None if head.startswith(USUAL) else _LINE.match(head)
    if line is None or (line[1] == b"CONNECT" and not line[2].startswith(b"/")):
        return head, ""
    return b"GET" + head[line.end(1) :], line[1].decode()
