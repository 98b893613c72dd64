"""Forward connections to a local port to a port of a pod, each over its own WebSocket."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import aiohttp

from mockube.client.kubeconfig import Access
from mockube.component_base.clock import RealClock
from mockube.component_base.supervision import cancel_and_wait, run_until

from .websocket import StreamFailed, messages, open_websocket

LOOPBACK: Final = "127.0.0.1"
PROTOCOLS: Final = ("v4.channel.k8s.io",)
DATA, ERROR = 0, 1
"""The channels. The first message of each is the number of the port."""
CHUNK: Final = 64 * 1024
MAX_ERRORS: Final = 20
RESPONSE_SECONDS: Final = 10.0
"""The time for the response to a client that has closed its side of the connection."""


class PortForward:
    """A local port whose connections lead to a port of a pod."""

    def __init__(self, access: Access, path: str) -> None:
        self._access = access
        self._path = path
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._port = 0
        self._errors: deque[str] = deque(maxlen=MAX_ERRORS)

    @property
    def host(self) -> str:
        """The local address, 127.0.0.1."""
        return LOOPBACK

    @property
    def port(self) -> int:
        """The local port."""
        return self._port

    @property
    def url(self) -> str:
        """The URL of the local port, for HTTP."""
        return f"http://{self.host}:{self.port}"

    @property
    def errors(self) -> Sequence[str]:
        """The newest errors of connections, such as a port on which nothing listens."""
        return [*self._errors]

    def __repr__(self) -> str:
        return f"<port-forward at {self.host}:{self.port}>"

    async def open(self, local_port: int) -> None:
        """Listen on a local port; 0 chooses a free one."""
        try:
            self._server = await asyncio.start_server(self._serve, LOOPBACK, local_port)
        except OSError as error:
            raise StreamFailed(f"the local port {local_port} cannot be used: {error.strerror}") from error
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await cancel_and_wait([*self._connections])

    def add_notes(self, error: BaseException | None) -> None:
        """Add the errors of connections to an error of the code that used them."""
        if error is not None:
            for problem in self.errors:
                error.add_note(f"port-forward: {problem}")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            async with open_websocket(self._access, self._path, PROTOCOLS) as socket:
                await run_until(_send(reader, socket), self._receive(socket, writer))
        except asyncio.CancelledError:
            pass  # the port-forward was closed; asyncio would log a cancelled connection as an error
        except (StreamFailed, ConnectionError) as error:
            self._errors.append(str(error))
        finally:
            self._connections.discard(task)
            writer.close()

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
        """Write what the pod sends, until it ends the connection."""
        seen: set[int] = set()
        async for channel, data in messages(socket):
            if channel not in seen:
                seen.add(channel)  # the number of the port
            elif channel == ERROR:
                raise StreamFailed(data.decode(errors="replace"))
            elif channel == DATA:
                writer.write(data)
                await writer.drain()


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    """Send what the client writes, and return some time after its end, for which the protocol has no message."""
    while data := await reader.read(CHUNK):
        await socket.send_bytes(bytes([DATA]) + data)
    await RealClock().sleep(RESPONSE_SECONDS)
