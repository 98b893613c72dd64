"""The paths of requests as proxies compare them with their rules. Pure.

A backend may read `/public/../admin`, `/public/%2e%2e/admin` and `//admin` as `/admin`, so the rules must, too. nginx compares the path
without any escapes, and its backend gets the path as the client sent it (src/http/ngx_http_parse.c). Traefik and Envoy compare
the normal form of RFC 3986 without double slashes, and their backends get the same form.
"""

import re
from typing import Final
from urllib.parse import quote

from mockube.apimachinery import uri

_UNUSUAL: Final = re.compile(r"%|//|/\.")
_ESCAPE: Final = re.compile("%([0-9a-fA-F]{2})")
_UNRESERVED: Final = re.compile("[A-Za-z0-9._~-]")
_ESCAPED_SLASH: Final = re.compile("%(?:2f|5c)", re.IGNORECASE)
_NOT_ESCAPED_BY_NGINX: Final = "/!$&'()*+,;=:@[]"


def nginx_path(path: str) -> str | None:
    """Return the path that nginx compares with its locations; None for one that it refuses."""
    if not _UNUSUAL.search(path):
        return path
    decoded = uri.unescape_bytes(path)
    if b"\0" in decoded:
        return None
    return _without_dots(decoded.decode("utf-8", "surrogateescape"), refuses_parents=True)


def escaped_for_nginx(text: str) -> str:
    """Return a part of a path that nginx has decoded as it writes it into a request."""
    return quote(text, safe=_NOT_ESCAPED_BY_NGINX, errors="surrogateescape")


def normal_path(path: str) -> str:
    """Return the normal form of RFC 3986 (6.2.2), in which unreserved characters are not escaped and escapes are in upper case."""
    if not _UNUSUAL.search(path):
        return path
    return _without_dots(_ESCAPE.sub(_normal_escape, path), refuses_parents=False) or "/"


def path_without_escaped_slashes(path: str) -> str:
    """Return the normal form of a path whose escaped slashes and backslashes are slashes, to which gateways of Envoy redirect."""
    return normal_path(_ESCAPED_SLASH.sub("/", path)) if _ESCAPED_SLASH.search(path) else path


def _normal_escape(escape: "re.Match[str]") -> str:
    character = chr(int(escape[1], 16))
    return character if _UNRESERVED.fullmatch(character) else escape[0].upper()


def _without_dots(path: str, *, refuses_parents: bool) -> str | None:
    """Return a path without dot segments and double slashes; None if it leads above the root and that is refused."""
    segments: list[str] = []
    *folders, last = path.split("/")[1:]
    for segment in (*folders, last):
        if segment == "..":
            if segments:
                segments.pop()
            elif refuses_parents:
                return None
        elif segment not in ("", "."):
            segments.append(segment)
    ending = "/" if segments and last in ("", ".", "..") else ""
    return f"/{'/'.join(segments)}{ending}"
