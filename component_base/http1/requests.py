"""The rules for requests beyond their syntax: what two servers could read in two ways is refused, before anything is forwarded.

Upstream: RFC 9110 and 9112; of what they leave open, the stricter of Go's net/http and nginx.
"""

import re
from functools import lru_cache
from typing import Final

from .heads import ProtocolError, RequestHead, is_usual_request

_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_QUOTED: Final = rb'"(?:[\t\x20\x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*+"'
CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;%b(?:=(?:%b|%b)?+)?+)*+" % (_TOKEN, _TOKEN, _QUOTED))
"""The line before a chunk, without blanks behind the size, which some servers take for a part of it."""
_TRAILER: Final = re.compile(
    rb"(?!(?:content-length|transfer-encoding):)%b:[^\x00-\x08\x0a-\x1f\x7f]*" % _TOKEN, re.IGNORECASE
)
_OTHER_VERSION: Final = re.compile(
    rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [^ \x00-\x1f\x7f]+ HTTP/(?!1\.[01])[0-9]\.[0-9]\r\n"
)
_METHOD: Final = re.compile("[A-Z_-]+")
"""The methods of nginx."""
_LENGTH: Final = re.compile(rb"[0-9]{1,15}")
_TAB: Final = re.compile(rb"\n(?:content-length|host|transfer-encoding):[^\t\r\n]*\t", re.IGNORECASE)
_PROTOCOL: Final = re.compile(r"(?!h2c(?:/|\Z))[!#$%&'*+.^_`|~0-9a-z/-]+", re.IGNORECASE)
_HOST: Final = re.compile(r"[0-9A-Za-z!$%&'()*+,\-.:;=\[\]_~]*")
_HOST_OF_NGINX: Final = re.compile(r"(?!\.?(?::|\Z))(?!.*\.\.)")
_WRONG_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_USUAL_LENGTH: Final = 255


def check_version(raw: bytes) -> None:
    """Raise a ProtocolError for a head of another version of HTTP."""
    if _OTHER_VERSION.match(raw):
        raise ProtocolError("the request has another version of HTTP", 505)


def check(head: RequestHead) -> None:
    """Raise a ProtocolError for a request that is malformed, or whose lines, end, host or target are not certain."""
    fields = head.fields
    if not is_usual_request(head.raw):
        raise ProtocolError("the request has a line without CRLF, or one that continues")
    if b"\t" in head.raw and _TAB.search(head.raw):
        raise ProtocolError("the request has a tab in a header that says where it goes, or where it ends")
    host = fields.get(b"host")
    if (host is None and not head.is_1_0) or (host is not None and not _names_host(host.decode("latin-1"))):
        raise ProtocolError("the request has no valid Host header")
    encoding, length = fields.get(b"transfer-encoding"), fields.get(b"content-length")
    if encoding is not None:
        if encoding.lower() != b"chunked":
            raise ProtocolError(f"the request is encoded as {encoding[:100]!r}", 501)
        if head.is_1_0 or length is not None:
            raise ProtocolError("the length of the request's body is not certain")
    elif length is not None and not _LENGTH.fullmatch(length):
        raise ProtocolError(f"the request has a length of {length[:100]!r}")
    _check_method(head.method)
    if not is_target(head.target):
        raise ProtocolError("the request has no valid target")


def _check_method(method: str) -> None:
    if not _METHOD.fullmatch(method):
        raise ProtocolError("the request has a method that nginx refuses")
    if method in ("CONNECT", "TRACE"):
        raise ProtocolError("the request asks for a tunnel or for itself", 405)


def check_trailer(line: bytes) -> None:
    """Raise a ProtocolError for a line behind the last chunk that is no header, or one that frames a body."""
    if not _TRAILER.fullmatch(line):
        raise ProtocolError("the request has an invalid trailer")


def is_host(host: str) -> bool:
    """Return whether a Host header has only characters of hosts and ports."""
    return (_is_usual_host if len(host) <= _USUAL_LENGTH else _HOST.fullmatch)(host) is not None


def _names_host(host: str) -> bool:
    """Return whether nginx accepts a Host header: it names a host, and has no empty label."""
    return is_host(host) and _HOST_OF_NGINX.match(host) is not None


_is_usual_host = lru_cache(maxsize=256)(_HOST.fullmatch)


def is_target(target: str) -> bool:
    """Return whether a target is a path, or a URL of HTTP; neither has a fragment or an invalid escape."""
    if "#" in target or ("%" in target and _WRONG_ESCAPE.search(target.partition("?")[0])):
        return False
    return target.startswith("/") or split_url(target)[0] != ""


def split_url(target: str) -> tuple[str, str]:
    """Return the host, with its port, and the path and query of a target that is a URL; "" if it is none of HTTP."""
    scheme, separator, rest = target.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):
        return "", target
    end = min((at for at in map(rest.find, "/?") if at >= 0), default=len(rest))
    host, path = rest[:end], rest[end:]
    return (host, path if path.startswith("/") else f"/{path}") if is_host(host) else ("", target)


def protocols(upgrade: str) -> str:
    """Return the protocols in an Upgrade header, without those over which a client could send requests that no rule has seen: HTTP/2."""
    named = (protocol.strip() for protocol in upgrade.split(","))
    return ", ".join(protocol for protocol in named if _PROTOCOL.fullmatch(protocol))
