"""What an HTTP proxy knows of a request, and what becomes of it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from mockube.network.ingress import Backend

Header = tuple[str, str]


class ProxiedRequest(Struct, frozen=True, kw_only=True):
    method: str
    target: str
    """The path and the query."""
    host: str
    """The host in the request, in lower case and without a port."""
    headers: Mapping[str, str]
    """The headers by their names in lower case."""
    uses_tls: bool
    client: str
    port: int
    """The port to which the client has connected."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0] or "/"

    @property
    def query(self) -> str:
        """The query with its question mark."""
        path, mark, query = self.target.partition("?")
        del path
        return f"{mark}{query}"


class FixedAnswer(Struct, frozen=True, kw_only=True):
    status: int
    headers: Sequence[Header] = ()
    body: bytes = b""


class Forward(Struct, frozen=True, kw_only=True):
    """Where a request is sent."""

    backend: Backend
    target: str
    """The path and the query that the backend gets."""
    host: str = ""
    """The Host header; "" for that of the request."""
    uses_tls: bool = False
    """Whether the backend gets TLS; nobody verifies its certificate."""
    headers: Sequence[Header] = ()
    """Headers that replace those of the request; an empty one removes them."""
    added_headers: Sequence[Header] = ()
    response_headers: Sequence[Header] = ()
    added_response_headers: Sequence[Header] = ()
    seconds: float = 60.0
    """The time without a byte of the backend after which the client gets 504."""
    max_body: int = 0
    """The maximum length of a body; 0 for any."""


class HttpRouter(Protocol):
    def decide(self, request: ProxiedRequest) -> FixedAnswer | Forward: ...

    def error_body(self, status: int) -> bytes:
        """Return the page for an error of the proxy."""
