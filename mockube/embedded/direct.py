"""A `Transport` straight to a server in the same event loop: no socket, no TLS, no text of HTTP between them.

The server's handler is given what it would be given by a socket, and its answer is taken before it would be written to
one. So all that is decided on the way of a request is decided here as well: who asks, whether there is room, faults.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from aiohttp import hdrs, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from mockube.apiserver.http.response import Answer as Whole
from mockube.apiserver.http.server import Server
from mockube.controller_manager.client.wire import Answer, Request, Unreachable, no_answer
from mockube.embedded.pipe import Pipe

UNLIMITED: Final = 1 << 40
"""A body is there as a whole: nobody needs to be held back."""


class DirectTransport:
    """Belongs to the event loop in which the server runs."""

    host = "inside"
    """As metrics name it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._working: set[asyncio.Task[web.StreamResponse]] = set()

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        line = _Line(self._loop)
        working = self._begin(request, headers, line, Pipe())
        either: set[asyncio.Future[Any]] = {working, line.lost}
        await asyncio.wait(either, timeout=request.timeout, return_when=asyncio.FIRST_COMPLETED)
        if line.lost.done():
            raise no_answer(request, "the connection was cut")
        if not working.done():
            raise no_answer(request, f"no answer within {request.timeout:g} s")
        return _answer(working.result())

    @asynccontextmanager
    async def stream(self, request: Request, headers: Mapping[str, str]) -> AsyncIterator["_Stream"]:
        line, pipe = _Line(self._loop), Pipe()
        working = self._begin(request, headers, line, pipe)
        deadline = self._loop.call_later(request.timeout, pipe.close)
        working.add_done_callback(lambda _: pipe.close())
        line.lost.add_done_callback(lambda _: pipe.close())
        try:
            await pipe.wait_begun()
            if pipe.has_begun:
                yield _Stream(200, pipe)
            elif working.done() and not line.lost.done():
                answer = _answer(working.result())
                pipe.give(answer.body)
                yield _Stream(answer.status, pipe)
            else:
                raise Unreachable(f"{request.method} {request.target}: the connection was cut")
        finally:
            deadline.cancel()
            pipe.close()
            self._server.connection_lost(cast("web.RequestHandler", line))

    async def close(self) -> None:
        """What is under way is ended: nobody waits for it any more."""
        for working in self._working:
            working.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    def _begin(
        self, request: Request, headers: Mapping[str, str], line: "_Line", pipe: Pipe
    ) -> "asyncio.Task[web.StreamResponse]":
        """In a task of its own: what a client waits for no longer is done all the same, as over a socket."""
        asked = _asked(request, headers, line, pipe)
        working = self._loop.create_task(self._handled(asked))
        self._working.add(working)
        working.add_done_callback(self._working.discard)
        return working

    async def _handled(self, asked: web.BaseRequest) -> web.StreamResponse:
        return await self._server.request_handler(asked)


class _Stream:
    def __init__(self, status: int, pipe: Pipe) -> None:
        self.status = status
        self.chunks = pipe.chunks

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])


class _Line(BaseProtocol):
    """The connection that a request thinks it came by; `lost` is done once the server has cut it."""

    peername = sockname = ssl_context = None

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.loop = loop
        self.lost: asyncio.Future[None] = loop.create_future()
        self.transport = _End(self.lost)


class _End(asyncio.Transport):
    def __init__(self, lost: "asyncio.Future[None]") -> None:
        super().__init__()
        self._lost = lost

    def abort(self) -> None:
        if not self._lost.done():
            self._lost.set_result(None)


def _asked(request: Request, headers: Mapping[str, str], line: _Line, pipe: Pipe) -> web.BaseRequest:
    sent = CIMultiDict({hdrs.HOST: "localhost", **request.headers, **headers})
    payload = EMPTY_PAYLOAD
    if request.body:
        sent[hdrs.CONTENT_LENGTH] = str(len(request.body))
        payload = StreamReader(line, UNLIMITED, loop=line.loop)
        payload.feed_data(request.body)
        payload.feed_eof()
    raw = tuple((name.encode(), value.encode()) for name, value in sent.items())
    message = RawRequestMessage(
        method=request.method,
        path=request.target,
        version=HttpVersion11,
        headers=CIMultiDictProxy(sent),
        raw_headers=raw,
        should_close=False,
        compression=None,
        upgrade=False,
        chunked=False,
        url=URL(request.target, encoded=True),
    )
    protocol, task = cast("web.RequestHandler", line), cast("asyncio.Task[None]", None)
    return web.BaseRequest(message, payload, protocol, pipe, task, line.loop)


def _answer(response: web.StreamResponse) -> Answer:
    """Of one that is there in full."""
    if isinstance(response, Whole):
        return Answer(response.status, response.retry_after or None, response.body)
    assert isinstance(response, web.Response)
    text, body = response.headers.get(hdrs.RETRY_AFTER), response.body
    assert isinstance(body, bytes)
    return Answer(response.status, float(text) if text else None, body)
