"""`/exec` and `/attach`: a command in a container, or the container's own, over a WebSocket or SPDY."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.controller_manager.kubelet.server import spdy_streams, websocket_streams
from mockube.controller_manager.kubelet.server.http_errors import HttpError
from mockube.controller_manager.kubelet.server.spdy_session import SpdySession
from mockube.controller_manager.kubelet.server.spdy_streams import SpdyStreams
from mockube.controller_manager.kubelet.server.streams import (
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    Streams,
    StreamsClosed,
    failure,
    fault,
)
from mockube.controller_manager.kubelet.server.terminal import Terminal
from mockube.controller_manager.kubelet.server.upgrade import UpgradedResponse, upgrade
from mockube.controller_manager.kubelet.server.websocket_streams import WebSocketStreams, websocket
from mockube.controller_manager.supervision import cancel_and_wait, run_with, start

CREATION_SECONDS: Final = 30.0
"""How long a client may take to open its streams."""
SPDY: Final = "SPDY/3.1"
PROTOCOL_HEADER: Final = "X-Stream-Protocol-Version"
_NAMES: Final = {"input": STDIN, "output": STDOUT, "error": STDERR}

Work = Callable[[Streams], Coroutine[Any, Any, bytes]]
"""Does with the streams what was requested; returns the Status by which it ends."""


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


async def serve_streams(
    request: web.BaseRequest, options: StreamOptions, work: Work, clock: Clock
) -> web.StreamResponse:
    """Negotiate the protocol, and run the work until it is done or the client disconnects."""
    kind = request.headers.get("Upgrade", "")
    if kind.lower() == "websocket":
        return await _over_websocket(request, options, work)
    if kind.upper() == SPDY:
        return await _over_spdy(request, options, work, clock)
    raise HttpError(400, "unable to upgrade: missing upgrade headers in request")


async def _over_websocket(request: web.BaseRequest, options: StreamOptions, work: Work) -> web.StreamResponse:
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
    try:
        await streams.begin()
        await _run(streams, options, work, streams.listen())
    except StreamsClosed:
        pass
    return socket


async def _over_spdy(
    request: web.BaseRequest, options: StreamOptions, work: Work, clock: Clock
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

    async def when_complete(_: Streams) -> bytes:
        timer = clock.call_later(CREATION_SECONDS, streams.time_out)
        try:
            await streams.complete.wait()
        finally:
            timer.cancel()
        if streams.is_given_up:
            return failure("timed out waiting for client to create streams")
        return await _with_terminal(streams, options, work)

    try:
        await _run(streams, StreamOptions(options.streams, tty=False), when_complete, session.run())
    finally:
        connection.close()
    return UpgradedResponse()


async def _run(
    streams: Streams, options: StreamOptions, work: Work, listening: Coroutine[Any, Any, None]
) -> None:
    """Run the work until it is done; it is cancelled if the client disconnects."""
    listener = start("streams of a client", listening)
    worker = start("a command for a client", _status_of(streams, options, work))
    try:
        await asyncio.wait({listener, worker}, return_when=asyncio.FIRST_COMPLETED)
        status = _final_status(listener, worker)
        if status:
            await cancel_and_wait([worker])
            await streams.finish(status)
    finally:
        await cancel_and_wait([worker, listener])


def _final_status(listener: "asyncio.Task[None]", worker: "asyncio.Task[bytes]") -> bytes:
    """Return the Status for the client; b"" if it has disconnected.

    A failed listener comes first: it also ends the input of the command, which may take that for all of it.
    """
    for task in (listener, worker):
        error = task.exception() if task.done() else None
        if error is not None:
            return fault(error)
    return worker.result() if worker.done() else b""


async def _status_of(streams: Streams, options: StreamOptions, work: Work) -> bytes:
    try:
        return await _with_terminal(streams, options, work)
    except StreamsClosed:
        return b""


async def _with_terminal(streams: Streams, options: StreamOptions, work: Work) -> bytes:
    if not options.tty:
        return await work(streams)
    terminal = Terminal(streams)
    if terminal.stdin is None:
        return await work(terminal)
    typing = start("what is typed into a terminal", terminal.edit())
    return await run_with(work(terminal), beside=[typing])
