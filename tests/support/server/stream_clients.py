"""Clients of exec, attach, port-forward and proxied upgrades, which send frames and then end, close or cut their connection.

All have the same methods: `send`, `end` (of what the client sends), `read_all`, `close` (as a client does that has all it
wants) and `cut` (as a client does that is killed).
"""

import asyncio
import base64
import contextlib
from urllib.parse import urlencode

import aiohttp
import orjson

from mockube.kubelet.server.spdy import DataFrame, FrameReader, FrameWriter
from tests.support.processes.process import tls, token

PORT_FORWARD = "portforward.k8s.io"
TUNNEL = f"SPDY/3.1+{PORT_FORWARD}"


class WebSocketClient:
    """A client whose messages start with a channel's number; port-forward has its data in channel 0, both ways."""

    def __init__(self, socket, output=1):
        self._socket = socket
        self._output = output
        self._is_text = "base64" in (socket.protocol or "")

    def _message(self, channel, data):
        return f"{channel}{base64.b64encode(data).decode()}" if self._is_text else bytes([channel]) + data

    async def send(self, data):
        message = self._message(0, data)
        await (self._socket.send_str if self._is_text else self._socket.send_bytes)(message)

    async def end(self):
        """End the input, if the protocol can do that; otherwise only a close ends it."""
        if self._socket.protocol == "v5.channel.k8s.io":
            await self._socket.send_bytes(b"\xff\x00")

    async def resize(self, width, height):
        await self._socket.send_bytes(b"\x04" + orjson.dumps({"Width": width, "Height": height}))

    @property
    def ends_input(self):
        return self._socket.protocol == "v5.channel.k8s.io"

    async def messages(self):
        async for message in self._socket:
            if self._is_text:
                yield int(message.data[:1]), base64.b64decode(message.data[1:])
            else:
                yield message.data[0], message.data[1:]

    async def read_all(self):
        """Return the output and the Status."""
        output, status = bytearray(), b""
        async for channel, data in self.messages():
            if channel == self._output:
                output += data
            elif channel == 3:
                status += data
        return bytes(output), orjson.loads(status or b"null")

    async def read(self, size):
        """Return at least this many bytes of the output."""
        output = bytearray()
        async for channel, data in self.messages():
            output += data if channel == self._output else b""
            if len(output) >= size:
                break
        return bytes(output)

    async def close(self):
        await self._socket.close()

    def cut(self):
        self._socket._response.connection.transport.abort()


class SpdyClient:
    """A client of SPDY frames, over a connection or over the messages of a WebSocket."""

    ends_input = True

    def __init__(self, socket, streams):
        """`streams` has the headers of each stream; the input is in "stdin" or "data", the output in "stdout" or "data"."""
        self._socket = socket
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._numbers = {}
        self._headers = streams

    async def open(self):
        for number, (name, headers) in zip(range(1, 99, 2), self._headers.items(), strict=False):
            self._numbers[name] = number
            await self._socket.send(self._writer.syn_stream(number, {"streamtype": name, **headers}))
        self._input = self._numbers.get("stdin") or self._numbers.get("data")
        self._output = self._numbers.get("stdout") or self._numbers.get("data")

    async def send(self, data):
        await self._socket.send(self._writer.data(self._input, data))

    async def end(self):
        await self._socket.send(self._writer.data(self._input, b"", last=True))

    async def resize(self, width, height):
        size = orjson.dumps({"Width": width, "Height": height})
        await self._socket.send(self._writer.data(self._numbers["resize"], size))

    async def _receive(self, is_done):
        received, ended = {number: bytearray() for number in self._numbers.values()}, set()
        while not is_done(received[self._output], ended):
            data = await self._socket.receive()
            assert data, "the session has ended"
            for frame in self._reader.feed(data):
                if isinstance(frame, DataFrame):
                    received[frame.stream] += frame.data
                    ended |= {frame.stream} if frame.is_last else set()
        return received

    async def read_all(self):
        ends = {self._output, self._numbers["error"]}
        received = await self._receive(lambda _, ended: ends <= ended)
        await self.close()
        return bytes(received[self._output]), orjson.loads(received[self._numbers["error"]] or b"null")

    async def read(self, size):
        return bytes((await self._receive(lambda output, _: len(output) >= size))[self._output])

    async def close(self):
        await self._socket.close()

    def cut(self):
        self._socket.cut()


class PlainClient:
    """The bytes of a proxied connection after an upgrade."""

    ends_input = False

    def __init__(self, socket):
        self._socket = socket

    async def send(self, data):
        await self._socket.send(data)

    async def end(self):
        """Do nothing: over TLS only a close ends what a client sends."""

    async def read(self, size):
        output = bytearray()
        while len(output) < size:
            data = await self._socket.receive()
            assert data, "the connection has ended"
            output += data
        return bytes(output)

    async def close(self):
        await self._socket.close()

    def cut(self):
        self._socket.cut()


class _Bytes:
    """The bytes of a connection."""

    def __init__(self, reader, writer):
        self._reader, self._writer = reader, writer

    async def send(self, data):
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self):
        return await self._reader.read(1 << 16)

    async def close(self):
        self._writer.close()

    def cut(self):
        self._writer.transport.abort()


class _Messages:
    """The bytes of a tunnel, which are messages of a WebSocket."""

    def __init__(self, socket):
        self._socket = socket

    async def send(self, data):
        await self._socket.send_bytes(data)

    async def receive(self):
        message = await self._socket.receive()
        return message.data if message.type is aiohttp.WSMsgType.BINARY else b""

    async def close(self):
        await self._socket.close()

    def cut(self):
        self._socket._response.connection.transport.abort()


class StreamClients:
    """Opens clients of one cluster."""

    def __init__(self, cluster, session):
        self._cluster, self._session = cluster, session
        self._tls = tls(cluster.kubeconfig)

    async def web_socket(self, path, query, protocol):
        url = f"{self._cluster.url}{path}?{urlencode(query)}"
        protocols = [protocol] if protocol else []
        return await self._session.ws_connect(url, ssl=self._tls, protocols=protocols, max_msg_size=0)

    async def over_web_socket(self, path, query, protocol):
        return WebSocketClient(await self.web_socket(path, query, protocol))

    async def over_spdy(self, path, query, streams, protocol="v4.channel.k8s.io"):
        headers = {"X-Stream-Protocol-Version": protocol}
        client = SpdyClient(await self._upgrade(f"{path}?{urlencode(query)}", "SPDY/3.1", headers), streams)
        await client.open()
        return client

    async def over_tunnel(self, path, streams):
        client = SpdyClient(_Messages(await self.web_socket(path, [], TUNNEL)), streams)
        await client.open()
        return client

    async def forwarded_over_channels(self, path, port):
        socket = await self.web_socket(path, [("ports", port)], "v4.channel.k8s.io")
        for _ in range(2):
            await socket.receive()  # the port's number, in both channels
        return WebSocketClient(socket, output=0)

    async def over_upgrade(self, path):
        return PlainClient(await self._upgrade(path, "echo", {}))

    async def _upgrade(self, target, protocol, headers):
        host, port = self._cluster.url.removeprefix("https://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=self._tls)
        lines = [f"POST {target} HTTP/1.1", "Host: localhost", "Connection: Upgrade", f"Upgrade: {protocol}"]
        lines += [f"Authorization: Bearer {token(self._cluster.kubeconfig)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        return _Bytes(reader, writer)


@contextlib.asynccontextmanager
async def stream_clients(cluster):
    headers = {"Authorization": f"Bearer {token(cluster.kubeconfig)}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        yield StreamClients(cluster, session)
