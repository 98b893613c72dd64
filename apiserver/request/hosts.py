"""Check the Host and Origin of requests against the allowed host names, to prevent DNS rebinding and CSRF.

With DNS rebinding, the name of a page of http://evil.example resolves to 127.0.0.1 after the page was loaded. Its
requests then reach this server, and the browser treats them as same-origin. Their Host is still the name of the page,
which is not a name of this server. An address as Host is safe, since no name is resolved. A name without a dot is that of
a machine or a service in the local network; with a bearer token, which a web page does not have, it is allowed too.

A page of another site can also send a write without reading the response (CSRF); the browser sends the site of the page
as the Origin.
"""

from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from multidict import MultiMapping

from mockube.apimachinery import hosts, names
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.status import ApiError, BadRequest, Details, Forbidden

from .request import AUTHORIZATION, Request

ANY: Final = "*"
"""As an allowed host: allows every name."""
_MAX_HEADER_LENGTH: Final = 300
"""Characters of a header that may hold a name of 253 and a port."""
_HOST: Final = "Host"
_ORIGIN: Final = "Origin"
_HTTP_1_0: Final = (1, 0)
_BEARER: Final = "bearer "
_READ_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HINT: Final = "If it is, name it with --allowed-hosts."


class Hosts:
    """The allowed host names. `own` are names, addresses, and patterns such as *.example.com, in which `*` is one label."""

    def __init__(self, own: Iterable[str] = ()) -> None:
        self.replace(own)

    def replace(self, own: Iterable[str]) -> None:
        names = {name.lower().rstrip(".") for name in own}
        self._names = frozenset({hosts.LOCAL, *names})
        self._checks = ANY not in names
        # Requests repeat a few hosts.
        self._check_cached = lru_cache(maxsize=256)(self._check)

    def check(self, request: Request) -> None:
        """Raise an ApiError if a request is for another server, or from a page of another site."""
        headers = request.headers
        host = headers.get(_HOST)
        if host is None:
            if request.version > _HTTP_1_0:
                raise BadRequest("missing required Host header", Details())
        elif self._checks and host and not (self._is_allowed(host) or _is_of_the_network(host, headers)):
            raise ApiError(
                f"the host {quote(host[:_MAX_HEADER_LENGTH])} is not a name of this server. {_HINT}",
                Details(),
                code=HTTPStatus.MISDIRECTED_REQUEST,
            )
        if self._checks and _ORIGIN in headers:
            self._check_origin(request, headers[_ORIGIN], host or "")

    def _check_origin(self, request: Request, origin: str, host: str) -> None:
        is_read = request.method in _READ_ONLY and "Upgrade" not in request.headers
        if is_read or (host and origin.lower().partition("://")[2] == host.lower()):
            return
        name = hosts.host_name(origin.partition("://")[2]) if len(origin) <= _MAX_HEADER_LENGTH else None
        if name is None or not (self._is_known(name) or hosts.is_loopback(name)):
            raise Forbidden(
                f"a page of {quote(origin[:_MAX_HEADER_LENGTH])} may only read: it is not a site of this server. {_HINT}",
                Details(),
            )

    def _is_allowed(self, host: str) -> bool:
        return len(host) <= _MAX_HEADER_LENGTH and self._check_cached(host)

    def _check(self, host: str) -> bool:
        name = hosts.host_name(host)
        return name is not None and (hosts.is_address(name) or self._is_known(name))

    def _is_known(self, name: str) -> bool:
        label, dot, rest = name.partition(".")
        return name in self._names or bool(label and dot and f"*.{rest}" in self._names)


def _is_of_the_network(host: str, headers: MultiMapping[str]) -> bool:
    """Return whether a host is a name without a dot, and the request has a bearer token, which no browser adds."""
    if headers.get(AUTHORIZATION, "")[: len(_BEARER)].lower() != _BEARER or len(host) > _MAX_HEADER_LENGTH:
        return False
    name = hosts.host_name(host)
    return name is not None and not names.check_dns1123_label(name)
