"""The ports on which programs accept connections themselves, such as nc, and the clients that connect to them."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from mockube.component_base import supervision
from mockube.component_base.clock import Clock
from mockube.container_runtime.streams import ClientConnection, StreamsClosed

from .flows import Flow

_LISTEN_SECONDS: Final = 1.0
"""How long a client waits for a program that is not listening at the moment: a loop starts it again."""
_BACKLOG: Final = 128
"""How many clients wait for a program to accept them; more are refused."""
_READ: Final = 16 * 1024
_Key = tuple[str, int]


class ListeningSocket:
    """The socket of a program that listens on a port."""

    def __init__(self, port: "ListenedPort", notify: Callable[[], None]) -> None:
        self._port = port
        self.notify = notify

    def accept(self) -> tuple[Flow, Flow] | None:
        """Return what comes from the next client and what goes to it; None if there is none yet."""
        return self._port.waiting.popleft() if self._port.waiting else None

    def close(self) -> None:
        if self._port.listener is self:
            self._port.listener = None


class ListenedPort:
    """A port of a pod, from the time at which a command listens there first until it ends."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self.listener: ListeningSocket | None = None
        self.listening = asyncio.Event()
        self.waiting: deque[tuple[Flow, Flow]] = deque()
        self._forget = forget

    def close(self) -> None:
        for incoming, outgoing in self.waiting:
            incoming.leave()
            outgoing.end()
        self.waiting.clear()
        self.listener = None
        self._forget()


class PortListeners:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ports: dict[_Key, ListenedPort] = {}

    def knows(self, uid: str, port: int) -> bool:
        """Return whether a command listens on a port of a pod, or has listened there and still runs."""
        return (uid, port) in self._ports

    def open(self, uid: str, port: int) -> ListenedPort | None:
        """Note a command that listens on a port for the first time; return None if one is known there."""
        key = uid, port
        if key in self._ports:
            return None
        opened = self._ports[key] = ListenedPort(partial(self._forget, key))
        return opened

    def _forget(self, key: _Key) -> None:
        self._ports.pop(key, None)

    def listen(self, uid: str, port: int, notify: Callable[[], None]) -> ListeningSocket | None:
        """Listen on a port that is known; return None if it is in use."""
        opened = self._ports[uid, port]
        if opened.listener is not None:
            return None
        opened.listener = ListeningSocket(opened, notify)
        opened.listening.set()
        return opened.listener

    async def connect(self, uid: str, port: int) -> tuple[Flow, Flow] | None:
        """Connect to a port; return what goes there and what comes back, or None if nothing listens."""
        opened = self._ports.get((uid, port))
        if opened is None:
            return None
        with suppress(TimeoutError):
            async with supervision.timeout(self._clock, _LISTEN_SECONDS):
                while opened.listener is None:
                    opened.listening.clear()
                    await opened.listening.wait()
        if opened.listener is None or len(opened.waiting) >= _BACKLOG:
            return None
        sent, received = Flow(), Flow()
        opened.waiting.append((sent, received))
        opened.listener.notify()
        return sent, received

    async def serve(self, uid: str, port: int, client: ClientConnection) -> None:
        """Connect a client to the program that listens on a port, until one of them has ended the connection."""
        flows = await self.connect(uid, port)
        if flows is None:
            return
        sent, received = flows
        sender = supervision.start("a connection to a program", _send(client, sent))
        try:
            with suppress(StreamsClosed):
                while data := await received.read(_READ):
                    await client.write(data)
                if await client.end():
                    await _wait_until_read(sent)
        finally:
            sent.end()
            received.leave()
            await supervision.cancel_and_wait([sender])


async def _send(client: ClientConnection, sent: Flow) -> None:
    with suppress(StreamsClosed):
        while data := await client.read(_READ):
            await sent.write(data)
        sent.end()


async def _wait_until_read(sent: Flow) -> None:
    """Wait until the program reads no more, or has read all that its client has sent."""
    while not sent.is_left and not sent.is_over:
        await sent.change()
