"""The way from an operator in a network of its own to its API server, for as long as the operator runs."""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from mockube.component_base.supervision import start

_READ: Final = 1 << 16
_END_SECONDS: Final = 5.0


class ServerRelay:
    """Accepts connections in the operator's network at the address of a server, and relays them to the server.

    The operator's launcher hands a socket that listens there over by `channel`.
    """

    def __init__(self, server: str) -> None:
        address = urlsplit(server)
        self.address = (str(address.hostname), address.port or 443)
        self._own, self.channel = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="network of an operator", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End all connections."""
        with suppress(OSError):  # it is closed already
            self._own.shutdown(socket.SHUT_RDWR)
        self._thread.join(_END_SECONDS)
        self.channel.close()
        self._own.close()

    def _run(self) -> None:
        with suppress(OSError):  # it was closed before
            _, files, *_ = socket.recv_fds(self._own, 1, 1)
            if files:
                asyncio.run(self._serve(socket.socket(fileno=files[0])))

    async def _serve(self, listening: socket.socket) -> None:
        connections: set[asyncio.Task[None]] = set()

        def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = start("connection of an operator", self._relay(reader, writer))
            connections.add(task)
            task.add_done_callback(connections.discard)

        server = await asyncio.start_server(connect, sock=listening)
        self._own.setblocking(False)  # noqa: FBT003 - of the library
        await asyncio.get_running_loop().sock_recv(self._own, 1)  # the end
        server.close()  # the end of the loop cancels the connections

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection(*self.address)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, to_server), _copy(from_server, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy what arrives until one of the two connections ends, and end the other one."""
    with suppress(OSError):
        while data := await reader.read(_READ):
            writer.write(data)
            await writer.drain()
    writer.close()
