"""A port on which the process of a container listens, and how this process connects to it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

LOOPBACK: Final = "127.0.0.1"


class ProcessPort(Struct, frozen=True):
    host: str
    port: int
    open_socket: Callable[[], Awaitable[socket.socket]] | None = None
    """Opens a socket in a network in which the host has its address; None for that of this machine."""

    async def connect_socket(self) -> socket.socket | None:
        """Return a connected socket; None if `asyncio` opens one as well."""
        if self.open_socket is None:
            return None
        opened = await self.open_socket()
        try:
            await asyncio.get_running_loop().sock_connect(opened, (self.host, self.port))
        except BaseException:
            opened.close()
            raise
        return opened

    async def connect(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection, with the options of `asyncio.open_connection`."""
        connected = await self.connect_socket()
        if connected is None:
            return await asyncio.open_connection(self.host, self.port, **options)
        if options.get("ssl"):
            options.setdefault("server_hostname", self.host)
        try:
            return await asyncio.open_connection(sock=connected, **options)
        except BaseException:
            connected.close()
            raise
