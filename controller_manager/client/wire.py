"""A request, its response, and the two errors without a response.

Independent of any library: `transport` sends requests, `client` builds them.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from msgspec import Struct

READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that may be repeated."""


class Request(Struct, frozen=True, kw_only=True, gc=False):
    method: str
    target: str
    """Path and query, encoded."""
    headers: Mapping[str, str]
    body: bytes = b""
    timeout: float
    """Seconds until the whole answer must be there; of a stream, until it must have ended."""

    @property
    def is_read(self) -> bool:
        return self.method in READS


class Answer(NamedTuple):
    status: int
    retry_after: float | None
    """The Retry-After in seconds, if there is one."""
    body: bytes


class NoAnswer(Exception):
    """The server has not answered."""


class Unreachable(NoAnswer):
    """Nothing was done: there was no connection, or the request was a read."""


class OutcomeUnknown(NoAnswer):
    """A write was sent, and its outcome is unknown."""


def no_answer(request: Request, problem: str) -> NoAnswer:
    """Of a request that was sent."""
    text = f"{request.method} {request.target}: {problem}"
    return Unreachable(text) if request.is_read else OutcomeUnknown(text)


class Stream(Protocol):
    """A response that is read in pieces. Iteration ends with the stream, whether it was ended or interrupted."""

    @property
    def status(self) -> int: ...

    def chunks(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes:
        """Read all of it: the body of an error response."""


class Transport(Protocol):
    """One server, reached with one set of certificates. Raises `NoAnswer` and nothing else."""

    @property
    def host(self) -> str:
        """As metrics name it."""

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        """One attempt, with headers beside the request's own."""

    def stream(self, request: Request, headers: Mapping[str, str]) -> AbstractAsyncContextManager[Stream]: ...

    async def close(self) -> None: ...
