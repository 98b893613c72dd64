"""`/exec` and `/attach`: the streams of a command in a container, or of the container itself, over WebSocket or SPDY."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.container_runtime.streams import RESIZE, STDERR, STDIN, STDOUT, Streams, StreamsClosed

from . import spdy_streams, websocket_streams
from .http_errors import HttpError
from .sessions import Sessions
from .spdy_session import SpdySession
from .spdy_streams import SpdyStreams
from .statuses import error_status, failure_status
from .upgrade import UpgradedResponse, upgrade
from .websocket_streams import WebSocketStreams, websocket

CREATION_SECONDS: Final = 30.0
"""The maximum time in seconds in which a client opens its streams."""
LEAVE_SECONDS: Final = 2.0
"""How long a client that has left can receive the end of its command."""
LINGER_SECONDS: Final = 30.0
"""How long a client may take to receive what was sent before the connection is closed."""
SPDY: Final = "SPDY/3.1"
PROTOCOL_HEADER: Final = "X-Stream-Protocol-Version"
_NAMES: Final = {"input": STDIN, "output": STDOUT, "error": STDERR}

Work = Callable[[Streams], Coroutine[Any, Any, bytes]]
"""Executes the request with the streams; returns the Status for the client."""


class StreamOptions(Struct, frozen=True):
    streams: frozenset[int]
    tty: bool


def stream_options(query: Mapping[str, str]) -> StreamOptions:
    tty = query.get("tty") in ("1", "true")
    streams = {number for name, number in _NAMES.items() if query.get(name) in ("1", "true")}
    if tty:
        streams.discard(STDERR)
    if not streams:
        raise HttpError(400, "you must specify at least 1 of stdin, stdout, stderr")
    return StreamOptions(frozenset(streams | ({RESIZE} if tty else set())), tty)


class StreamServer:
    """Serves the streams of clients; a command continues when its client has left."""

    def __init__(self, clock: Clock, sessions: Sessions) -> None:
        self._clock = clock
        self._sessions = sessions

    async def serve(self, request: web.BaseRequest, options: StreamOptions, work: Work) -> web.StreamResponse:
        """Negotiate the protocol, and run the work until it is done or the client leaves."""
        kind = request.headers.get("Upgrade", "")
        if kind.lower() == "websocket":
            return await self._over_websocket(request, options, work)
        if kind.upper() == SPDY:
            return await self._over_spdy(request, options, work)
        raise HttpError(400, "unable to upgrade: missing upgrade headers in request")

    async def _over_websocket(
        self, request: web.BaseRequest, options: StreamOptions, work: Work
    ) -> web.StreamResponse:
        client_protocols = [
            protocol.strip()
            for line in request.headers.getall("Sec-WebSocket-Protocol", ())
            for protocol in line.split(",")
        ]
        if client_protocols and not set(client_protocols) & set(websocket_streams.PROTOCOLS):
            raise HttpError(
                403,
                f"requested protocol(s) are not supported: {client_protocols}; supports {websocket_streams.PROTOCOLS}",
            )
        socket = websocket(websocket_streams.PROTOCOLS)
        await socket.prepare(request)
        streams = WebSocketStreams(socket, options.streams)
        with suppress(StreamsClosed):
            await streams.start()
        await self._sessions.run_apart(self._run(streams, _run_work(streams, work), streams.listen()))
        return socket

    async def _over_spdy(
        self, request: web.BaseRequest, options: StreamOptions, work: Work
    ) -> web.StreamResponse:
        client_protocols = [
            name.strip() for line in request.headers.getall(PROTOCOL_HEADER, ()) for name in line.split(",")
        ]
        protocol = next((name for name in client_protocols if name in spdy_streams.PROTOCOLS), "")
        if client_protocols and not protocol:
            raise HttpError(
                403, f"unable to upgrade: unable to negotiate protocol: client supports {client_protocols}"
            )
        headers = {"Upgrade": SPDY} | ({PROTOCOL_HEADER: protocol} if protocol else {})
        connection = upgrade(request, headers)
        streams = SpdyStreams(options.streams, protocol)
        session = SpdySession(connection, streams.add)

        async def listen() -> None:
            await session.run()
            streams.time_out()

        async def run_when_complete() -> bytes:
            timer = self._clock.real.call_later(CREATION_SECONDS, streams.time_out)
            try:
                await streams.complete.wait()
            finally:
                timer.cancel()
            if streams.is_timed_out:
                return failure_status("timed out waiting for client to create streams")
            return await _run_work(streams, work)

        async def run() -> None:
            try:
                await self._run(streams, run_when_complete(), listen())
            finally:
                await connection.close()

        await self._sessions.run_apart(run())
        return UpgradedResponse()

    async def _run(
        self,
        streams: Streams,
        work: Coroutine[Any, Any, bytes],
        listen: Coroutine[Any, Any, None],
    ) -> None:
        """Run the work until it is done, or until the client leaves: the work continues then without a connection."""
        listener = supervision.start("streams of a client", _listen(streams, listen))
        worker = self._sessions.start("a command for a client", work)
        try:
            await asyncio.wait({listener, worker}, return_when=asyncio.FIRST_COMPLETED)
            if streams.departure.is_set():
                await self._wait(worker, LEAVE_SECONDS)
            status = _final_status(listener, worker)
            if status:
                await supervision.cancel_and_wait([worker])
            else:
                self._sessions.leave(worker)
            await self._finish(streams, status)
            await self._wait(listener, LINGER_SECONDS)
        except BaseException:
            worker.cancel()
            raise
        finally:
            await supervision.cancel_and_wait([listener])

    async def _finish(self, streams: Streams, status: bytes) -> None:
        if not streams.departure.is_set():
            await streams.finish(status)
            return
        with suppress(TimeoutError):  # a client that has left may read nothing
            async with supervision.timeout(self._clock.real, LEAVE_SECONDS):
                await streams.finish(status)

    async def _wait(self, task: "asyncio.Task[Any]", seconds: float) -> None:
        with suppress(TimeoutError):
            async with supervision.timeout(self._clock.real, seconds):
                await asyncio.wait([task])


def _final_status(listener: "asyncio.Task[None]", worker: "asyncio.Task[bytes]") -> bytes:
    """Return the Status for the client; b"" if the worker continues.

    A failed listener has precedence: it also ends the input of the command, which may succeed with the partial input.
    """
    for task in (listener, worker):
        error = task.exception() if task.done() else None
        if error is not None:
            return error_status(error)
    return worker.result() if worker.done() else b""


async def _listen(streams: Streams, listen: Coroutine[Any, Any, None]) -> None:
    await listen
    if streams.stdin is not None:
        await streams.stdin.end()
    await streams.sizes.end()
    streams.departure.set()


async def _run_work(streams: Streams, work: Work) -> bytes:
    try:
        return await work(streams)
    except StreamsClosed:
        return b""
