"""Datagrams of pods: to the cluster's name server, and to addresses outside of the cluster."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

MAX_RELAYS: Final = 128
"""The pairs of a pod's port and an outer address that exchange datagrams at the same time; further ones replace the oldest."""
MIN_SECONDS: Final = 1.0
"""How long a relay is not replaced, so that a pod that sends to all the world occupies only a part of the manager's time."""


class Receiver(asyncio.DatagramProtocol):
    """Calls a function with each datagram and its sender."""

    def __init__(self, receive: Callable[[bytes, Any], None]) -> None:
        self._receive = receive

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._receive(data, addr)


class DatagramRelay:
    """Forwards the datagrams of one port of a pod to one address outside, and the answers back."""

    def __init__(self, opened_at: float) -> None:
        self.opened_at = opened_at
        self._inner: asyncio.DatagramTransport | None = None
        self._outer: asyncio.DatagramTransport | None = None
        self._client: Any = None
        self.is_used = True
        """Whether a datagram came since the last check."""

    async def open(self, inner: socket.socket, address: str, port: int) -> None:
        """Begin to forward what a socket in the cluster's namespace receives."""
        loop = asyncio.get_running_loop()
        try:
            self._outer, _ = await loop.create_datagram_endpoint(
                lambda: Receiver(self._return), remote_addr=(address, port)
            )
        except OSError:
            inner.close()
            raise
        self._inner, _ = await loop.create_datagram_endpoint(lambda: Receiver(self._forward), sock=inner)

    def close(self) -> None:
        for transport in (self._inner, self._outer):
            if transport is not None:
                transport.close()

    def _forward(self, data: bytes, client: Any) -> None:
        self._client, self.is_used = client, True
        if self._outer is not None:
            self._outer.sendto(data)

    def _return(self, data: bytes, _: Any) -> None:
        self.is_used = True
        if self._inner is not None and self._client is not None:
            with suppress(OSError):
                self._inner.sendto(data, self._client)
