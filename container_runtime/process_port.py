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
    open_socket: Callable[[str, str, int], Awaitable[socket.socket]] | None = None
    """Opens a socket in a network in which an address belongs to the process, for a source address, of a kind such as `SOCK_STREAM`.

    None if the network is this machine's.
    """
    find_loopback: Callable[[], str] = lambda: ""
    """Returns the loopback address on which alone the process listens; "" if it listens on others, too."""

    source: str = ""
    """The address that the process sees of its client, in a network of its own; "" for that of the network's gateway."""

    @property
    def has_own_network(self) -> bool:
        return self.open_socket is not None

    def at_listener(self) -> "ProcessPort":
        """Return the port at the address on which the process listens."""
        loopback = self.find_loopback()
        return replace(self, host=loopback) if loopback else self

    def seen_from(self, source: str) -> "ProcessPort":
        """Return the port as a client with an address reaches it."""
        return replace(self, source=source)

    def at_address(self, host: str) -> "ProcessPort":
        """Return the port at another address of the same pod."""
        return replace(self, host=host) if self.has_own_network else self

    async def open_own_socket(self, host: str, kind: int = socket.SOCK_STREAM) -> socket.socket | None:
        """Open a socket in the network of the process; return None if that is this machine's."""
        return None if self.open_socket is None else await self.open_socket(host, self.source, kind)

    async def connect(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection, with the options of `asyncio.open_connection`."""
        connected = await self._connect_socket()
        if connected is None:
            return await asyncio.open_connection(self.host, self.port, **options)
        if options.get("ssl"):
            options.setdefault("server_hostname", self.host)
        try:
            return await asyncio.open_connection(sock=connected, **options)
        except BaseException:
            connected.close()
            raise

    async def _connect_socket(self) -> socket.socket | None:
        try:
            return await self._connect_to(self.host)
        except ConnectionRefusedError:
            loopback = self.find_loopback()
            if not loopback:
                raise
            return await self._connect_to(loopback)

    async def _connect_to(self, host: str) -> socket.socket | None:
        opened = await self.open_own_socket(host)
        if opened is None:
            return None
        try:
            await asyncio.get_running_loop().sock_connect(opened, (host, self.port))
        except BaseException:
            opened.close()
            raise
        return opened
