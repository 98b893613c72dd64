"""`/portForward`: connections to a pod's ports, over SPDY, over SPDY in a WebSocket tunnel, or as WebSocket channels."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web

from mockube.apimachinery.gotext import int_or_none
from mockube.component_base.supervision import cancel_and_wait, log_failure, start
from mockube.container_runtime.streams import ClientConnection, InputStream, StreamsClosed

from . import limits, websocket_streams
from .http_errors import HttpError
from .sessions import Sessions
from .spdy_session import ByteStream, SpdySession, SpdyStream
from .upgrade import UpgradedResponse, upgrade

PROTOCOL: Final = "portforward.k8s.io"
TUNNEL: Final = f"SPDY/3.1+{PROTOCOL}"
CHANNELS: Final = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io")

Connect = Callable[[int, ClientConnection], Awaitable[str]]
"""Connects a client to a port of the pod; returns the error, or ""."""


async def serve_port_forward(
    request: web.BaseRequest, connect: Connect, sessions: Sessions
) -> web.StreamResponse:
    kind = request.headers.get("Upgrade", "").lower()
    if kind == "spdy/3.1":
        client_protocols = request.headers.get("X-Stream-Protocol-Version", PROTOCOL)
        if PROTOCOL not in client_protocols:
            raise HttpError(
                403, f"unable to upgrade: unable to negotiate protocol: client supports {client_protocols}"
            )
        connection = upgrade(request, {"Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": PROTOCOL})
        await sessions.run_apart(_SpdyForwarder(connect).run(connection, connection.close))
        return UpgradedResponse()
    if kind != "websocket":
        raise HttpError(400, "unable to upgrade: missing upgrade headers in request")
    offered_protocols = request.headers.get("Sec-WebSocket-Protocol", "")
    if TUNNEL in offered_protocols:
        socket = websocket_streams.websocket([TUNNEL])
        await socket.prepare(request)
        tunnel = _TunnelStream(socket)
        await sessions.run_apart(_SpdyForwarder(connect).run(tunnel, tunnel.close))
        return socket
    ports = _ports(request.query.getall("port", []))
    socket = websocket_streams.websocket(CHANNELS)
    await socket.prepare(request)
    await sessions.run_apart(_serve_channels(socket, ports, connect))
    return socket


class _TunnelStream:
    """The byte stream of a tunnel: the concatenated messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self, _: int) -> bytes:
        while (message := await self._socket.receive()).type not in websocket_streams.CLOSE_TYPES:
            data = message.data if isinstance(message.data, bytes) else b""
            if data:
                return data
        return b""

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)

    async def close(self) -> None:
        await self._socket.close()


class _ForwardedConnection:
    """The data stream of one connection over SPDY."""

    def __init__(self, stream: SpdyStream) -> None:
        self._stream = stream
        self.departure = stream.departure

    async def read(self, limit: int) -> bytes:
        return await self._stream.received.read(limit)

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)

    async def end(self) -> bool:
        await self._stream.end()
        return True


class _SpdyForwarder:
    """The connections of one SPDY session: each has a data and an error stream with its id in the headers."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._first_streams: dict[str, SpdyStream] = {}
        """The first of the two streams of each connection."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, carrier: ByteStream, close: Callable[[], Awaitable[None]]) -> None:
        """Serve the session, and close it; what the client has sent is delivered after it has left."""
        self._session = SpdySession(carrier, self._add)
        try:
            with suppress(StreamsClosed):
                await self._session.run()
            await close()
            await asyncio.gather(*self._tasks)
        finally:
            await cancel_and_wait(list(self._tasks))

    async def _add(self, stream: SpdyStream) -> None:
        kind, port = stream.headers.get("streamtype"), int_or_none(stream.headers.get("port", ""))
        if kind not in ("data", "error") or port is None or not 0 < port < 65536:
            await stream.reset()
            return
        if kind == "error":
            stream.received.discard()
        number = stream.headers.get("requestid") or str(stream.number - (2 if kind == "data" else 0))
        other = self._first_streams.pop(number, None)
        if other is None and len(self._first_streams) < limits.MAX_FORWARDED_PAIRS:
            self._first_streams[number] = stream
            return
        if other is None or other.headers["streamtype"] == kind:
            await stream.reset()
            return
        data, error = (stream, other) if kind == "data" else (other, stream)
        task = start("a forwarded connection", self._forward(port, data, error))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, port: int, data: SpdyStream, error: SpdyStream) -> None:
        with suppress(StreamsClosed):
            problem = await _try_connect(self._connect, port, _ForwardedConnection(data))
            if problem:
                await error.write(problem.encode())
            await data.end()
            await error.end()
        data.received.discard()
        self._session.forget(data)
        self._session.forget(error)


class _Channel:
    """A channel of a WebSocket, which carries the data or the errors of one connection."""

    def __init__(self, socket: web.WebSocketResponse, number: int, departure: asyncio.Event) -> None:
        self._socket = socket
        self._number = number
        self.departure = departure
        self.received = InputStream()

    async def read(self, limit: int) -> bytes:
        return await self.received.read(limit)

    async def write(self, data: bytes) -> None:
        await websocket_streams.write_message(self._socket, self._number, data)

    async def end(self) -> bool:
        return True


async def _serve_channels(socket: web.WebSocketResponse, ports: Sequence[int], connect: Connect) -> None:
    """Serve two channels for each port of the query; each starts with the port's number."""
    departure = asyncio.Event()
    channels = [_Channel(socket, number, departure) for number in range(2 * len(ports))]
    for error_channel in channels[1::2]:
        error_channel.received.discard()
    with suppress(StreamsClosed):
        for number, channel in enumerate(channels):
            await channel.write(ports[number // 2].to_bytes(2, "little"))
    forward_tasks = [
        start(
            "a forwarded connection",
            _forward_channel(connect, port, channels[2 * index], channels[2 * index + 1]),
        )
        for index, port in enumerate(ports)
    ]
    listener = start("channels of a client", _listen(socket, channels, departure))
    all_forwards = start("forwarded connections", _wait_for_all(forward_tasks))
    try:
        done, _ = await asyncio.wait([listener, all_forwards], return_when=asyncio.FIRST_COMPLETED)
        failures = list(filter(None, (task.exception() for task in done)))
        if failures:
            await cancel_and_wait([all_forwards, *forward_tasks])
        with suppress(StreamsClosed):
            for failure in failures:
                for channel in channels[1::2]:
                    await channel.write(_internal_error(failure).encode())
        for channel in channels if all_forwards.done() else ():
            channel.received.discard()
        await socket.close()
        if not failures:
            await asyncio.wait([all_forwards])
    finally:
        await cancel_and_wait([all_forwards, *forward_tasks, listener])


async def _wait_for_all(tasks: "Sequence[asyncio.Task[None]]") -> None:
    await asyncio.gather(*tasks)


async def _listen(
    socket: web.WebSocketResponse, channels: Sequence[_Channel], departure: asyncio.Event
) -> None:
    while (message := await socket.receive()).type not in websocket_streams.CLOSE_TYPES:
        data = websocket_streams.decode_message(socket, message.data)
        if data and data[0] < len(channels):
            await channels[data[0]].received.feed(data[1:])
    for channel in channels:
        await channel.received.end()
    departure.set()


def _ports(texts: Sequence[str]) -> Sequence[int]:
    numbers = [int_or_none(part) for text in texts for part in text.split(",")]
    ports = [port for port in numbers if port is not None and 0 < port < 65536]
    if not ports or len(ports) != len(numbers) or len(ports) > limits.MAX_FORWARDED_PORTS:
        raise HttpError(400, 'query parameter "port" is required')
    return ports


async def _forward_channel(connect: Connect, port: int, data: _Channel, error: _Channel) -> None:
    with suppress(StreamsClosed):
        problem = await _try_connect(connect, port, data)
        if problem:
            await error.write(problem.encode())
    data.received.discard()


async def _try_connect(connect: Connect, port: int, data: ClientConnection) -> str:
    """Connect a client to a port; return the error, or ""."""
    try:
        return await connect(port, data)
    except StreamsClosed:
        raise
    except Exception as error:  # noqa: BLE001 - it is logged and sent to the client
        log_failure("a forwarded connection", error)
        return _internal_error(error)


def _internal_error(error: BaseException) -> str:
    return f"an internal error: {type(error).__name__}: {error}"
