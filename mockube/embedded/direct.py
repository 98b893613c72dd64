"""A `Transport` to a server in the same event loop, without socket, TLS and HTTP.

It calls the server's handler, so that all filters of a request apply: authentication, limits, faults.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from multidict import CIMultiDict

from mockube.apimachinery import uri
from mockube.apimachinery.status import request_entity_too_large
from mockube.apiserver.authn.authenticators import PeerCertificates
from mockube.apiserver.request.filter import Handle
from mockube.apiserver.request.request import Frame
from mockube.apiserver.request.request import Request as HandlerRequest
from mockube.apiserver.request.response import Response as HandlerResponse
from mockube.client.wire import Request, Response, Unreachable, no_response
from mockube.component_base.clock import Clock

from .pipe import Pipe

LOG: Final = logging.getLogger(__name__)


class DirectTransport:
    """A transport for the event loop in which the server runs."""

    host = "in-process"
    """The host label in metrics."""

    def __init__(self, handle: Handle, clock: Clock) -> None:
        self._handle = handle
        self._clock = clock
        self._tasks: set[asyncio.Task[HandlerResponse]] = set()

    async def send(self, request: Request, headers: Mapping[str, str]) -> Response:
        client = DirectClient(request)
        task = self._start(request, headers, client)
        timer = self._clock.call_later(request.timeout, client.ended.set)
        try:
            await client.ended.wait()
        finally:
            timer.cancel()
        if client.is_aborted:
            raise no_response(request, "the connection was cut")
        if not task.done():
            raise no_response(request, f"no response within {request.timeout:g} s")
        return _to_client_response(task.result())

    @asynccontextmanager
    async def stream(self, request: Request, headers: Mapping[str, str]) -> AsyncIterator["_Stream"]:
        client = DirectClient(request)
        pipe = client.pipe
        task = self._start(request, headers, client)
        deadline = self._clock.routine.call_later(request.timeout, pipe.close)
        try:
            await pipe.wait_started()
            if pipe.has_begun:
                yield _Stream(200, pipe)
            elif task.done() and not client.is_aborted:
                response = _to_client_response(task.result())
                pipe.set_content(response.body)
                yield _Stream(response.status, pipe)
            else:
                raise Unreachable(f"{request.method} {request.target}: the connection was cut")
        finally:
            deadline.cancel()
            client.disconnect()

    async def close(self) -> None:
        """Cancel the requests that still run: no caller waits for them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(
        self, request: Request, headers: Mapping[str, str], client: "DirectClient"
    ) -> "asyncio.Task[HandlerResponse]":
        """Start a task for the request, which completes even if the client has disconnected, as over a socket."""
        path, _, query = request.target.partition("?")
        sent_headers = CIMultiDict({"Host": "localhost", **request.headers, **headers})
        handling = self._handle_request(
            HandlerRequest(request.method, uri.unescape(path), query, sent_headers, client)
        )
        task = asyncio.get_running_loop().create_task(handling)
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_end, client))
        return task

    def _on_end(self, client: "DirectClient", task: "asyncio.Task[HandlerResponse]") -> None:
        """End the client's request. If it failed without a response, abort the connection, as over a socket, and log the error."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            client.end()
        else:
            LOG.error("%s failed", client.uri, exc_info=error)
            client.abort()

    async def _handle_request(self, request: HandlerRequest) -> HandlerResponse:
        return await self._handle(request)


class DirectClient:
    """The client of an in-process request. A streamed response body is written to a pipe."""

    address = ""
    port = 0
    is_secure = False
    certificates: PeerCertificates | None = None
    is_cut = False

    def __init__(self, request: Request) -> None:
        self.uri = request.target
        self.head = ""
        self.pipe = Pipe()
        self.ended = asyncio.Event()
        """Set when there is a response, or when there will be no response."""
        self.is_aborted = False
        self._body = request.body
        self._on_lost: Callable[[], None] | None = None

    @property
    def has_body(self) -> bool:
        return bool(self._body)

    def set_authenticated(self) -> None:
        """Do nothing: there is no connection with limits before authentication."""

    def set_unauthenticated(self) -> None:
        """Do nothing, for the same reason."""

    def on_lost(self, callback: Callable[[], None] | None) -> None:
        self._on_lost = callback

    def abort(self) -> None:
        self.is_aborted = True
        self.end()

    def end(self) -> None:
        self.ended.set()
        self.pipe.close()

    def disconnect(self) -> None:
        """Stop reading the response, and notify the server."""
        self.pipe.close()
        if self._on_lost is not None:
            self._on_lost()

    async def read(self, limit: int) -> bytes:
        if len(self._body) > limit:
            raise request_entity_too_large(f"limit is {limit}")
        return self._body

    async def write(self, response: HandlerResponse) -> None:
        """Do nothing: the transport returns the response itself."""

    def stream(self, _response: HandlerResponse) -> Pipe:
        return self.pipe

    def messages(self, _protocols: Sequence[str], _frame: Frame, _on_closed: Callable[[], None]) -> Pipe:
        raise NotImplementedError("WebSockets need a socket")


class _Stream:
    def __init__(self, status: int, pipe: Pipe) -> None:
        self.status = status
        self.chunks = pipe.chunks

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])


def _to_client_response(response: HandlerResponse) -> Response:
    return Response(response.status, response.retry_after or None, response.body)
