"""`/portForward`: connections to a pod's ports, over SPDY, over SPDY in a WebSocket tunnel, or as WebSocket channels."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web

from mockube.apimachinery.gotext import int_or_none
from mockube.controller_manager.kubelet.server.http_errors import HttpError
from mockube.controller_manager.kubelet.server.spdy_session import ByteStream, SpdySession, SpdyStream
from mockube.controller_manager.kubelet.server.streams import InputStream, StreamsClosed
from mockube.controller_manager.kubelet.server.upgrade import UpgradedResponse, upgrade
from mockube.controller_manager.kubelet.server.websocket_streams import CLOSE_TYPES, websocket
from mockube.controller_manager.supervision import cancel_and_wait, log_failure, start

PROTOCOL: Final = "portforward.k8s.io"
TUNNEL: Final = f"SPDY/3.1+{PROTOCOL}"
CHANNELS: Final = ("v4.channel.k8s.io", "v4.base64.channel.k8s.io")
MAX_CONNECTIONS: Final = 500
MAX_PORTS: Final = 64

Connect = Callable[[int, ByteStream], Awaitable[str]]
"""Connects a client to a port of the pod; returns the error, or ""."""


async def serve_port_forward(request: web.BaseRequest, connect: Connect) -> web.StreamResponse:
    kind = request.headers.get("Upgrade", "").lower()
    if kind == "spdy/3.1":
        client_protocols = request.headers.get("X-Stream-Protocol-Version", PROTOCOL)
        if PROTOCOL not in client_protocols:
            raise HttpError(
                403, f"unable to upgrade: unable to negotiate protocol: client supports {client_protocols}"
            )
        connection = upgrade(request, {"Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": PROTOCOL})
        try:
            await _SpdyForwarder(connect).run(connection)
        finally:
            connection.close()
        return UpgradedResponse()
    if kind != "websocket":
        raise HttpError(400, "unable to upgrade: missing upgrade headers in request")
    offered_protocols = request.headers.get("Sec-WebSocket-Protocol", "")
    if TUNNEL in offered_protocols:
        socket = websocket([TUNNEL])
        await socket.prepare(request)
        with suppress(StreamsClosed):
            await _SpdyForwarder(connect).run(_TunnelStream(socket))
        await socket.close()
        return socket
    return await _serve_channels(request, connect)


class _TunnelStream:
    """The byte stream of a tunnel: the concatenated messages of a WebSocket."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def read(self, _: int) -> bytes:
        while (message := await self._socket.receive()).type not in CLOSE_TYPES:
            data = message.data if isinstance(message.data, bytes) else b""
            if data:
                return data
        return b""

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


class _ForwardedConnection:
    """The data stream of one connection over SPDY."""

    def __init__(self, stream: SpdyStream) -> None:
        self._stream = stream

    async def read(self, limit: int) -> bytes:
        return await self._stream.received.read(limit)

    async def write(self, data: bytes) -> None:
        await self._stream.write(data)


class _SpdyForwarder:
    """The connections of one SPDY session: each has a data and an error stream with its id in the headers."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._errors: dict[str, SpdyStream] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, carrier: ByteStream) -> None:
        self._session = SpdySession(carrier, self._add)
        try:
            with suppress(StreamsClosed):
                await self._session.run()
        finally:
            await cancel_and_wait(list(self._tasks))

    async def _add(self, stream: SpdyStream) -> None:
        headers = stream.headers
        number = headers.get("requestid", "") or headers.get("port", "")
        if headers.get("streamtype") == "error" and len(self._errors) < MAX_CONNECTIONS:
            self._errors[number] = stream
            return
        error = self._errors.pop(number, None)
        port = int_or_none(headers.get("port", ""))
        if headers.get("streamtype") != "data" or error is None or port is None or not 0 < port < 65536:
            await stream.reset()
            return
        task = start("a forwarded connection", self._forward(port, stream, error))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, port: int, data: SpdyStream, error: SpdyStream) -> None:
        with suppress(StreamsClosed):
            problem = await _try_connect(self._connect, port, _ForwardedConnection(data))
            if problem:
                await error.write(problem.encode())
            await data.end()
            await error.end()
        self._session.forget(data)
        self._session.forget(error)


class _Channel:
    """A channel of a WebSocket, which carries the data or the errors of one connection."""

    def __init__(self, socket: web.WebSocketResponse, number: int) -> None:
        self._socket = socket
        self._number = number
        self.received = InputStream()

    async def read(self, limit: int) -> bytes:
        return await self.received.read(limit)

    async def write(self, data: bytes) -> None:
        try:
            await self._socket.send_bytes(bytes([self._number]) + data)
        except ConnectionError as error:
            raise StreamsClosed from error


async def _serve_channels(request: web.BaseRequest, connect: Connect) -> web.StreamResponse:
    """Serve two channels for each port of the query; each starts with the port's number."""
    ports = _ports(request.query.getall("port", []))
    socket = websocket([CHANNELS[0]])
    await socket.prepare(request)
    channels = [_Channel(socket, number) for number in range(2 * len(ports))]
    with suppress(StreamsClosed):
        for channel in channels:
            await channel.write(ports[channel._number // 2].to_bytes(2, "little"))  # noqa: SLF001 - of the same module
        forward_tasks = [
            start(
                "a forwarded connection",
                _forward_channel(connect, port, channels[2 * index], channels[2 * index + 1]),
            )
            for index, port in enumerate(ports)
        ]
        listener = start("channels of a client", _listen(socket, channels))
        all_forwards = start("forwarded connections", _wait_for_all(forward_tasks))
        try:
            done, _ = await asyncio.wait([listener, all_forwards], return_when=asyncio.FIRST_COMPLETED)
            for failure in filter(None, (task.exception() for task in done)):
                for channel in channels[1::2]:
                    await channel.write(_internal_error(failure).encode())
        finally:
            await cancel_and_wait([all_forwards, *forward_tasks, listener])
        await socket.close()
    return socket


async def _wait_for_all(tasks: "Sequence[asyncio.Task[None]]") -> None:
    await asyncio.gather(*tasks)


async def _listen(socket: web.WebSocketResponse, channels: Sequence[_Channel]) -> None:
    while (message := await socket.receive()).type not in CLOSE_TYPES:
        data = message.data if isinstance(message.data, bytes) else str(message.data).encode()
        if data and data[0] < len(channels):
            await channels[data[0]].received.feed(data[1:])


def _ports(texts: Sequence[str]) -> Sequence[int]:
    numbers = [int_or_none(part) for text in texts for part in text.split(",")]
    ports = [port for port in numbers if port is not None and 0 < port < 65536]
    if not ports or len(ports) != len(numbers) or len(ports) > MAX_PORTS:
        raise HttpError(400, 'query parameter "port" is required')
    return ports


async def _forward_channel(connect: Connect, port: int, data: _Channel, error: _Channel) -> None:
    with suppress(StreamsClosed):
        problem = await _try_connect(connect, port, data)
        if problem:
            await error.write(problem.encode())


async def _try_connect(connect: Connect, port: int, data: ByteStream) -> str:
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
