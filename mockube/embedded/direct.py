"""A `Transport` straight to a server in the same event loop: no socket, no TLS, no text of HTTP between them.

Requests are handed to the server's handler, so all that is decided on the way of a request is decided here as well: the
user, limits, faults.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from multidict import CIMultiDict

from mockube.apimachinery import uri
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import request_entity_too_large
from mockube.apiserver.authn.authenticators import NO_CERTIFICATE, ClientCertificate
from mockube.apiserver.request.filter import Handle
from mockube.apiserver.request.request import Frame
from mockube.apiserver.request.request import Request as HandlerRequest
from mockube.apiserver.request.response import Response
from mockube.controller_manager.client.wire import Answer, Request, Unreachable, no_answer
from mockube.embedded.pipe import Pipe

LOG: Final = logging.getLogger(__name__)


class DirectTransport:
    """Belongs to the event loop in which the server runs."""

    host = "inside"
    """As metrics name it."""

    def __init__(self, handle: Handle, clock: Clock) -> None:
        self._handle = handle
        self._clock = clock
        self._running: set[asyncio.Task[Response]] = set()

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        client = DirectClient(request)
        running = self._start(request, headers, client)
        timer = self._clock.call_later(request.timeout, client.ended.set)
        try:
            await client.ended.wait()
        finally:
            timer.cancel()
        if client.is_aborted:
            raise no_answer(request, "the connection was cut")
        if not running.done():
            raise no_answer(request, f"no response within {request.timeout:g} s")
        return _answer(running.result())

    @asynccontextmanager
    async def stream(self, request: Request, headers: Mapping[str, str]) -> AsyncIterator["_Stream"]:
        client = DirectClient(request)
        pipe = client.pipe
        running = self._start(request, headers, client)
        deadline = self._clock.call_later(request.timeout, pipe.close)
        try:
            await pipe.wait_started()
            if pipe.has_begun:
                yield _Stream(200, pipe)
            elif running.done() and not client.is_aborted:
                answer = _answer(running.result())
                pipe.set_content(answer.body)
                yield _Stream(answer.status, pipe)
            else:
                raise Unreachable(f"{request.method} {request.target}: the connection was cut")
        finally:
            deadline.cancel()
            client.leave()

    async def close(self) -> None:
        """Cancel the requests that are still running: no caller waits for them."""
        for running in self._running:
            running.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(
        self, request: Request, headers: Mapping[str, str], client: "DirectClient"
    ) -> "asyncio.Task[Response]":
        """Run in a task of its own: a request is completed even if its client has stopped waiting, as over a socket."""
        path, _, query = request.target.partition("?")
        sent = CIMultiDict({"Host": "localhost", **request.headers, **headers})
        handled = self._handle_request(
            HandlerRequest(request.method, uri.unescape(path), query, sent, client)
        )
        running = asyncio.get_running_loop().create_task(handled)
        self._running.add(running)
        running.add_done_callback(partial(self._on_end, client))
        return running

    def _on_end(self, client: "DirectClient", running: "asyncio.Task[Response]") -> None:
        """A request that fails without a response is cut, as over a socket; its caller may have stopped waiting."""
        self._running.discard(running)
        error = None if running.cancelled() else running.exception()
        if error is None:
            client.end()
        else:
            LOG.error("%s failed", client.uri, exc_info=error)
            client.abort()

    async def _handle_request(self, request: HandlerRequest) -> Response:
        return await self._handle(request)


class DirectClient:
    """The client of a request that is made in the server's event loop. Its body is streamed into a pipe."""

    address = ""
    certificate: ClientCertificate = NO_CERTIFICATE
    is_cut = False

    def __init__(self, request: Request) -> None:
        self.uri = request.target
        self.head = ""
        self.pipe = Pipe()
        self.ended = asyncio.Event()
        """Set when there is a response, or there will be none."""
        self.is_aborted = False
        self._body = request.body
        self._on_lost: Callable[[], None] | None = None

    @property
    def has_body(self) -> bool:
        return bool(self._body)

    def set_authenticated(self) -> None:
        """There is no connection to close for it."""

    def on_lost(self, callback: Callable[[], None] | None) -> None:
        self._on_lost = callback

    def abort(self) -> None:
        self.is_aborted = True
        self.end()

    def end(self) -> None:
        self.ended.set()
        self.pipe.close()

    def leave(self) -> None:
        """Stop reading."""
        self.pipe.close()
        if self._on_lost is not None:
            self._on_lost()

    async def read(self, limit: int) -> bytes:
        if len(self._body) > limit:
            raise request_entity_too_large(f"limit is {limit}")
        return self._body

    async def write(self, response: Response) -> None:
        """Nothing is written: the response is taken as it is."""

    def stream(self, _response: Response) -> Pipe:
        return self.pipe

    def messages(self, _protocols: Sequence[str], _frame: Frame, _on_closed: Callable[[], None]) -> Pipe:
        raise NotImplementedError("WebSockets need a socket")


class _Stream:
    def __init__(self, status: int, pipe: Pipe) -> None:
        self.status = status
        self.chunks = pipe.chunks

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])


def _answer(response: Response) -> Answer:
    return Answer(response.status, response.retry_after or None, response.body)
