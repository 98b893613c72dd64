"""URLs and their parts: `url('https://example.com/x')`. They are parsed as in Go's package net/url."""

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from mockube.apimachinery import uri
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import CelError, Opaque

DECLARED: Final = declare(
    """
    url string_to_url (string) -> kubernetes.URL
    getScheme url_get_scheme kubernetes.URL.() -> string
    getHost url_get_host kubernetes.URL.() -> string
    getHostname url_get_hostname kubernetes.URL.() -> string
    getPort url_get_port kubernetes.URL.() -> string
    getEscapedPath url_get_escaped_path kubernetes.URL.() -> string
    getQuery url_get_query kubernetes.URL.() -> map(string, list(string))
    isURL is_url_string (string) -> bool
    """
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_NO_PATH_ESCAPE = "$&+,/:;=@-_.~!*'()[]"


class URL(Opaque):
    __slots__ = ("host", "path", "query", "scheme", "text")
    type_name = "kubernetes.URL"

    def __init__(self, text: str) -> None:
        self.text = text
        rest = text.partition("#")[0]
        match = _SCHEME.match(rest)
        self.scheme = match[1].lower() if match else ""
        rest = rest[match.end() :] if match else rest
        rest, _, self.query = rest.partition("?")
        self.host = ""
        if rest.startswith("//") and (self.scheme or not rest.startswith("///")):
            authority, slash, path = rest[2:].partition("/")
            self.host = uri.unescape(authority.rpartition("@")[2])
            rest = slash + path
        self.path = rest if rest.startswith("/") or not self.scheme else ""

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, URL):
            raise CelError("no such overload")
        return self.text == other.text

    def __str__(self) -> str:
        return self.text

    @property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            return host[1:].partition("]")[0]
        return host.rpartition(":")[0] if re.search(":[0-9]*$", host) else host

    @property
    def port(self) -> str:
        match = re.search(r"(?:^[^\[]*|\]):([0-9]*)$", self.host)
        return match[1] if match else ""

    @property
    def escaped_path(self) -> str:
        if _is_escaped(self.path):
            return self.path
        return quote(uri.unescape_bytes(self.path), safe=_NO_PATH_ESCAPE.replace("[", "").replace("]", ""))


def _is_escaped(path: str) -> bool:
    return re.fullmatch(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*", path) is not None


def _url(text: str) -> URL:
    problem = uri.request_uri_problem(text)
    if problem:
        raise CelError(f"URL parse error during conversion from string: {problem}")
    return URL(text)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_url": _url,
    "url_get_scheme": lambda url: url.scheme,
    "url_get_host": lambda url: url.host,
    "url_get_hostname": lambda url: url.hostname,
    "url_get_port": lambda url: url.port,
    "url_get_escaped_path": lambda url: url.escaped_path,
    "url_get_query": lambda url: uri.parse_query(url.query),
    "is_url_string": uri.is_request_uri,
}
