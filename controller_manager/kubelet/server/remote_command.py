"""`/exec` and `/attach`: the streams of a command in a container, or of the container itself, over WebSocket or SPDY."""

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
    error_status,
    failure_status,
)
from mockube.controller_manager.kubelet.server.terminal import Terminal
from mockube.controller_manager.kubelet.server.upgrade import UpgradedResponse, upgrade
from mockube.controller_manager.kubelet.server.websocket_streams import WebSocketStreams, websocket
from mockube.controller_manager.supervision import cancel_and_wait, run_with, start

CREATION_SECONDS: Final = 30.0
"""The maximum time in seconds in which a client opens its streams."""
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
        await streams.start()
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

    async def run_when_complete(_: Streams) -> bytes:
        timer = clock.call_later(CREATION_SECONDS, streams.time_out)
        try:
            await streams.complete.wait()
        finally:
            timer.cancel()
        if streams.is_timed_out:
            return failure_status("timed out waiting for client to create streams")
        return await _with_terminal(streams, options, work)

    try:
        await _run(streams, StreamOptions(options.streams, tty=False), run_when_complete, session.run())
    finally:
        connection.close()
    return UpgradedResponse()


async def _run(
    streams: Streams, options: StreamOptions, work: Work, listen: Coroutine[Any, Any, None]
) -> None:
    """Run the work until it is done; cancel it if the client disconnects."""
    listener = start("streams of a client", listen)
    worker = start("a command for a client", _run_work(streams, options, work))
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

    A failed listener has precedence: it also ends the input of the command, which may succeed with the partial input.
    """
    for task in (listener, worker):
        error = task.exception() if task.done() else None
        if error is not None:
            return error_status(error)
    return worker.result() if worker.done() else b""


async def _run_work(streams: Streams, options: StreamOptions, work: Work) -> bytes:
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
    input_task = start("input of a terminal", terminal.forward_input())
    return await run_with(work(terminal), background_tasks=[input_task])
