"""Requests, their responses, and the errors of requests without a response. Independent of any HTTP library."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from msgspec import Struct

READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods of reads, which may be repeated."""


class Request(Struct, frozen=True, kw_only=True, gc=False):
    method: str
    target: str
    """The encoded path and query."""
    headers: Mapping[str, str]
    body: bytes = b""
    timeout: float
    """The seconds until the response must be complete, or a stream must have ended."""

    @property
    def is_read(self) -> bool:
        return self.method in READS


class Response(NamedTuple):
    """A complete response."""

    status: int
    retry_after: float | None
    """The Retry-After in seconds, if there is one."""
    body: bytes


class NoResponse(Exception):
    """A request got no response."""


class Unreachable(NoResponse):
    """A request without effect: it was not sent, or it is a read."""


class ConnectTimeout(Unreachable):
    """No connection was made in time: the server or this process is too busy. Nothing says that the server has restarted."""


class OutcomeUnknown(NoResponse):
    """A write was sent, and its outcome is unknown."""


def no_response(request: Request, problem: str) -> NoResponse:
    """Return the error of a request that was sent and got no response."""
    text = f"{request.method} {request.target}: {problem}"
    return Unreachable(text) if request.is_read else OutcomeUnknown(text)


class ResponseStream(Protocol):
    """A response that is read in chunks. An interruption ends the iteration like the regular end."""

    @property
    def status(self) -> int: ...

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes:
        """Read the rest, such as the body of an error response."""


class Transport(Protocol):
    """Sends requests to one server with one set of certificates. Raises `NoResponse` and nothing else."""

    @property
    def host(self) -> str:
        """The label of the server in metrics."""

    async def send(self, request: Request, headers: Mapping[str, str]) -> Response:
        """Send a request once, with additional headers, and return the response."""

    def stream(
        self, request: Request, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[ResponseStream]: ...

    async def close(self) -> None: ...
