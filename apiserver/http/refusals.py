"""Requests that are refused before authentication, with the texts of Go's net/http.

aiohttp's parser refuses most of them with its own messages; `of_head` finds Go's from the bytes of the head. Some
requests it accepts that Go refuses; `of_request` finds those.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from aiohttp import hdrs
from aiohttp.http import HttpVersion10, HttpVersion11, RawRequestMessage

BAD_REQUEST: Final = "400 Bad Request"
_MALFORMED_HOST: Final = f"{BAD_REQUEST}: malformed Host header"
TOO_LARGE: Final = "431 Request Header Fields Too Large"
NOT_IMPLEMENTED: Final = "501 Not Implemented"
_NO_CONNECT: Final = "405 Method Not Allowed"
_VERSION: Final = "505 HTTP Version Not Supported: unsupported protocol version"

_REQUEST_LINE: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^ ]+ HTTP/(\d)\.(\d)", re.DOTALL)
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-][!#$%&'*+.^_`|~0-9A-Za-z -]*")
"""A header's name as Go reads it at first; one with a blank is refused later, in other words."""
_HOST: Final = re.compile(r"[0-9A-Za-z!$%&'()*+,\-.:;=\[\]_~]*")
_VERSIONS: Final = (HttpVersion11, HttpVersion10)
_WRONG_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")


def text(refusal: str) -> str:
    """Return the body that goes with a status line."""
    return "Unsupported transfer encoding" if refusal == NOT_IMPLEMENTED else refusal


def _is_host(host: str) -> bool:
    """Whether a Host header has nothing but characters of hosts and ports."""
    return (_is_usual_host if len(host) <= _USUAL_LENGTH else _HOST.fullmatch)(host) is not None


_USUAL_LENGTH: Final = 255
_is_usual_host = lru_cache(maxsize=256)(_HOST.fullmatch)


def of_head(data: bytes) -> str:
    """Return the status line for a head that the parser has refused."""
    head, end, _ = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if not end or line is None:
        return BAD_REQUEST
    fields = [line.partition(b":") for line in lines]
    if not all(colon and _NAME.fullmatch(name) for name, colon, _ in fields):
        return BAD_REQUEST
    values: dict[bytes, list[bytes]] = {}
    for name, _, value in fields:
        values.setdefault(name.lower(), []).append(value.strip())
    return _of_fields(values, (int(line[1]), int(line[2])), is_connect=first.startswith(b"CONNECT "))


def _of_fields(values: dict[bytes, list[bytes]], version: tuple[int, int], *, is_connect: bool) -> str:
    hosts, is_old = values.get(b"host", ()), version < (1, 1)
    if len(hosts) > 1:
        return BAD_REQUEST
    if not is_old and not _is_chunked_or_absent(values.get(b"transfer-encoding", ())):
        return NOT_IMPLEMENTED
    if not all(length.isdigit() for length in values.get(b"content-length", ())):
        return BAD_REQUEST
    if version[0] != 1:
        return _VERSION
    if not hosts and not is_old and not is_connect:
        return f"{BAD_REQUEST}: missing required Host header"
    if hosts and not _is_host(hosts[0].decode("latin-1")):
        return _MALFORMED_HOST
    return f"{BAD_REQUEST}: invalid header name" if any(b" " in name for name in values) else BAD_REQUEST


def _is_chunked_or_absent(encodings: Sequence[bytes]) -> bool:
    return not encodings or (len(encodings) == 1 and encodings[0].lower() == b"chunked")


def of_request(message: RawRequestMessage) -> str:
    """Return the status line for a request that the parser has accepted and Go would not; "" for all others."""
    version, headers, target = message.version, message.headers, message.path
    if version not in _VERSIONS:
        return _VERSION if headers else BAD_REQUEST  # a request of HTTP/0.9 is a line alone
    if hdrs.TRANSFER_ENCODING in headers and version == HttpVersion11:
        encodings = [
            value.strip().encode("latin-1", "replace") for value in headers.getall(hdrs.TRANSFER_ENCODING)
        ]
        if not _is_chunked_or_absent(encodings):
            return NOT_IMPLEMENTED
    if not _is_host(headers.get(hdrs.HOST, "")):
        return _MALFORMED_HOST
    if "%" in target and _WRONG_ESCAPE.search(target.partition("?")[0]):
        return BAD_REQUEST
    return _NO_CONNECT if message.method == hdrs.METH_CONNECT else ""
