"""A port on which the process of a container listens, and how this process connects to it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

LOOPBACK: Final = "127.0.0.1"


class ProcessPort(Struct, frozen=True):
    host: str
    port: int
    open_socket: Callable[[str], Awaitable[socket.socket]] | None = None
    """Opens a socket in a network in which an address belongs to the process; None if that is this machine's."""
    find_loopback: Callable[[], str] = lambda: ""
    """Returns the loopback address on which alone the process listens; "" if it listens on others, too."""

    @property
    def has_own_network(self) -> bool:
        return self.open_socket is not None

    def at_listener(self) -> "ProcessPort":
        """Return the port at the address on which the process listens."""
        loopback = self.find_loopback()
        return replace(self, host=loopback) if loopback else self

    async def connect(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection, with the options of `asyncio.open_connection`."""
        if self.open_socket is None:
            return await asyncio.open_connection(self.host, self.port, **options)
        connected = await self._connect_socket(self.open_socket)
        if options.get("ssl"):
            options.setdefault("server_hostname", self.host)
        try:
            return await asyncio.open_connection(sock=connected, **options)
        except BaseException:
            connected.close()
            raise

    async def _connect_socket(self, open_socket: Callable[[str], Awaitable[socket.socket]]) -> socket.socket:
        try:
            return await self._connect_to(self.host, open_socket)
        except ConnectionRefusedError:
            loopback = self.find_loopback()
            if not loopback:
                raise
            return await self._connect_to(loopback, open_socket)

    async def _connect_to(
        self, host: str, open_socket: Callable[[str], Awaitable[socket.socket]]
    ) -> socket.socket:
        opened = await open_socket(host)
        try:
            await asyncio.get_running_loop().sock_connect(opened, (host, self.port))
        except BaseException:
            opened.close()
            raise
        return opened
