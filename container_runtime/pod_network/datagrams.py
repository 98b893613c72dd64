"""Datagrams of pods: to the cluster's name server, to simulated pods, and to addresses outside of the cluster."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from mockube.component_base.supervision import start

MAX_RELAYS: Final = 128
"""The pairs of a pod's port and an address that exchange datagrams by this process at the same time; further ones replace the oldest."""
MAX_WAITING: Final = 256
"""The datagrams of one port that wait for their answer; further ones are lost."""
MIN_SECONDS: Final = 1.0
"""How long a relay is not replaced, so that a pod that sends to all the world occupies only a part of the manager's time."""


class Receiver(asyncio.DatagramProtocol):
    """Calls a function with each datagram and its sender."""

    def __init__(self, receive: Callable[[bytes, Any], None]) -> None:
        self._receive = receive

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._receive(data, addr)


class Relay(Protocol):
    """What receives the datagrams of one port of a pod to one address."""

    opened_at: float
    is_used: bool
    """Whether a datagram came since the last check."""

    async def open(self, inner: socket.socket) -> None:
        """Begin with what a socket in the cluster's namespace receives."""

    def close(self) -> None: ...


class DatagramAnswers:
    """Answers the datagrams of one port of a pod, one after the other."""

    def __init__(self, opened_at: float, reply: Callable[[bytes], Awaitable[bytes]]) -> None:
        self.opened_at = opened_at
        self.is_used = True
        self._reply = reply
        self._inner: asyncio.DatagramTransport | None = None
        self._received: asyncio.Queue[tuple[bytes, Any]] = asyncio.Queue(MAX_WAITING)
        self._task: asyncio.Task[None] | None = None

    async def open(self, inner: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._inner, _ = await loop.create_datagram_endpoint(lambda: Receiver(self._receive), sock=inner)
        self._task = start("answers to datagrams", self._answer(self._inner))

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()
        if self._task is not None:
            self._task.cancel()

    def _receive(self, data: bytes, client: Any) -> None:
        self.is_used = True
        with suppress(asyncio.QueueFull):  # as a socket whose buffer is full
            self._received.put_nowait((data, client))

    async def _answer(self, inner: asyncio.DatagramTransport) -> None:
        while True:
            data, client = await self._received.get()
            answer = await self._reply(data)
            if answer:
                inner.sendto(answer, client)


class DatagramRelay:
    """Forwards the datagrams of one port of a pod to one address outside, and the answers back."""

    def __init__(self, opened_at: float, address: str, port: int) -> None:
        self.opened_at = opened_at
        self.is_used = True
        self._target = (address, port)
        self._inner: asyncio.DatagramTransport | None = None
        self._outer: asyncio.DatagramTransport | None = None
        self._client: Any = None

    async def open(self, inner: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._outer, _ = await loop.create_datagram_endpoint(
                lambda: Receiver(self._return), remote_addr=self._target
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
