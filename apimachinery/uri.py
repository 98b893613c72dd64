"""Parsing of URIs, queries and percent escapes, as by Go's net/url."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from . import gotext

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*+):")
_AUTHORITY: Final = re.compile(f"{_SCHEME.pattern}//")
_BAD_ESCAPE: Final = re.compile("%(?![0-9a-fA-F]{2})")
_ASCII_ESCAPE: Final = re.compile("%(?!25)[0-7]")
"""Escapes that are invalid in a host: those of ASCII characters other than the percent sign."""
_NOT_IN_HOST: Final = re.compile(r"""[\x00-\x7f](?<![A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>"%])""")
_ESCAPED_IN_ZONE: Final = re.compile("%([0-9a-fA-F]{2})")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PORT: Final = re.compile("(?::[0-9]*)?")
_NOT_FOR_REQUEST: Final = "invalid URI for request"
_MAX_PARAMETERS: Final = 10_000
"""The limit of Go (net/url/url.go), since it counts the parameters before it parses them."""


def parse_query(query: str) -> dict[str, list[str]]:
    """Return the values of each parameter.

    A pair with a semicolon or an invalid escape is ignored, and a query with too many pairs is ignored as a whole.
    """
    values: dict[str, list[str]] = {}
    pairs = query.split("&")
    if len(pairs) > _MAX_PARAMETERS:
        return values
    for pair in pairs:
        if pair and ";" not in pair and _is_well_escaped(pair):
            key, _, value = pair.replace("+", " ").partition("=")
            values.setdefault(unescape(key), []).append(unescape(value))
    return values


def unescape(text: str) -> str:
    """Decode percent escapes, with U+FFFD for invalid UTF-8. A text with an invalid escape is returned unchanged."""
    if text.isascii() and "%" not in text:
        return text
    return gotext.decode_utf8(unescape_bytes(text)) if _is_well_escaped(text) else text


def unescape_bytes(text: str) -> bytes:
    """Decode percent escapes, which must all be valid."""
    data = text.encode(errors="surrogateescape")
    if b"%" not in data:
        return data
    # `urllib.parse.unquote_to_bytes` creates an object for each escape: 300,000 for 1 MiB. Python's own escapes need none.
    python_escapes = data.replace(b"\\", b"\\\\").replace(b"%", b"\\x")
    return python_escapes.decode("unicode_escape").encode("latin-1")


def _is_well_escaped(text: str) -> bool:
    return "%" not in text or _BAD_ESCAPE.search(text) is None


def is_request_uri(text: str) -> bool:
    """Return whether Go's url.ParseRequestURI accepts a text."""
    if not text or _CONTROL.search(text):
        return False
    if text == "*":
        return True
    match = _SCHEME.match(text)
    if text.startswith(":"):
        return False
    scheme, rest = (match[1].lower(), text[match.end() :]) if match else ("", text)
    rest = rest.partition("?")[0]
    if not rest.startswith("/"):
        return bool(scheme)
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if not _is_authority(scheme, authority):
            return False
        rest = slash + path
    return _is_well_escaped(rest)


def _is_authority(scheme: str, authority: str) -> bool:
    user, _, host = authority.rpartition("@")
    return (
        _USER.fullmatch(user) is not None
        and _is_well_escaped(user)
        and (_is_ipv6_literal(host) if "[" in host else _is_host(scheme, host))
    )


def _is_host(scheme: str, host: str) -> bool:
    """Return whether a host with an optional port is valid. For http and https, it may contain only the colon of the port."""
    colon = host.find(":") if scheme in ("http", "https") else host.rfind(":")
    return (colon < 0 or _PORT.fullmatch(host, colon) is not None) and _has_valid_host_characters(host)


def _has_valid_host_characters(host: str) -> bool:
    return not (_BAD_ESCAPE.search(host) or _ASCII_ESCAPE.search(host) or _NOT_IN_HOST.search(host))


def _is_ipv6_literal(host: str) -> bool:
    """Return whether a host is an IPv6 address in brackets, with an optional zone and port."""
    address, bracket, port = host[1:].rpartition("]")
    if not host.startswith("[") or "[" in address or not bracket or not _PORT.fullmatch(port):
        return False
    name, separator, zone = address.partition("%25")
    if not _has_valid_host_characters(name) or (separator and not _is_zone(zone)):
        return False
    try:
        parsed = ip_address(unescape(name) + (f"%{zone and 'zone'}" if separator else ""))
    except ValueError:
        return False
    return isinstance(parsed, IPv6Address) and not isinstance(parsed, IPv4Address)


def _is_zone(zone: str) -> bool:
    if _BAD_ESCAPE.search(zone) or _NOT_IN_HOST.search(zone):
        return False
    escaped = (chr(int(match[1], 16)) for match in _ESCAPED_IN_ZONE.finditer(zone))
    return all(
        character.isascii() and (character in "% " or not _NOT_IN_HOST.match(character))
        for character in escaped
    )


# --- errors


def request_uri_problem(text: str) -> str:
    """Return the error of Go's `url.ParseRequestURI` for a text; "" if it is valid."""
    if is_request_uri(text):
        return ""
    return f"parse {gotext.quote(text)}: {_reason(text)}"


def _reason(text: str) -> str:
    if not text:
        return "empty url"
    if _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    if text.startswith(":"):
        return "missing protocol scheme"
    match = _SCHEME.match(text)
    rest = (text[match.end() :] if match else text).partition("?")[0]
    if not match and not rest.startswith("/"):
        return _NOT_FOR_REQUEST
    authority = rest[2:].partition("/")[0] if match and rest.startswith("//") else ""
    return _authority_reason(match[1].lower() if match else "", authority, rest)


def _authority_reason(scheme: str, authority: str, rest: str) -> str:
    host = authority.rpartition("@")[2]
    if host.startswith("[") and "]" not in host:
        return "missing ']' in host"
    port = _port(scheme, host)
    if not _PORT.fullmatch(port):
        return f"invalid port {gotext.quote(port)} after host"
    bad = _BAD_ESCAPE.search(rest)
    if bad:
        return f"invalid URL escape {gotext.quote(rest[bad.start() : bad.start() + 3])}"
    unexpected = re.search(r"""[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>"%\x80-\U0010ffff]""", host)
    if unexpected:
        return f"invalid character {gotext.quote(unexpected[0])} in host name"
    return "net/url: invalid userinfo" if "@" in authority else _NOT_FOR_REQUEST


def _port(scheme: str, host: str) -> str:
    """Return what follows the host, with the colon. For http and https, that is all from the first colon on."""
    _, bracket, rest = host.rpartition("]")
    if bracket:
        return rest
    colon = rest.find(":") if scheme in ("http", "https") else rest.rfind(":")
    return rest[colon:] if colon >= 0 else ""


def parse_problem(text: str) -> str:
    """Return the error of Go's `url.Parse` for a text; "" if it is valid."""
    before_fragment, _, fragment = text.partition("#")
    if _AUTHORITY.match(before_fragment):
        if problem := request_uri_problem(before_fragment):
            return problem
    elif before_fragment.startswith(":") or _CONTROL.search(before_fragment):
        return request_uri_problem(before_fragment)
    elif not _SCHEME.match(before_fragment) and ":" in before_fragment.partition("?")[0].partition("/")[0]:
        return f"parse {gotext.quote(before_fragment)}: first path segment in URL cannot contain colon"
    if bad := _BAD_ESCAPE.search(fragment):
        return f"parse {gotext.quote(text)}: invalid URL escape {gotext.quote(fragment[bad.start() : bad.start() + 3])}"
    return ""


def host(text: str) -> str:
    """Return the host and the port of a valid URL; "" without them."""
    rest = text.partition("#")[0]
    scheme = _SCHEME.match(rest)
    rest = (rest[scheme.end() :] if scheme else rest).partition("?")[0]
    if not rest.startswith("//") or (not scheme and rest.startswith("///")):
        return ""
    return unescape(rest[2:].partition("/")[0].rpartition("@")[2])
