"""The listeners of published ports: each has a key, and what serves its connections."""

import asyncio
import os
from typing import NamedTuple

from mockube.component_base.clock import Clock

from . import limits
from .bindings import Endpoint
from .connections import Connections, Serve
from .sockets import NoSocket, SocketConnection, accept, open_socket


class Listening(NamedTuple):
    """Where this machine listens, and why it is not the first choice."""

    endpoint: Endpoint
    problem: str


class _Listener(NamedTuple):
    request: tuple[str, tuple[int, ...]]
    server: asyncio.Server
    listening: Listening


class Listeners:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pid = os.getpid()
        self.connections = Connections(clock)
        self._listeners: dict[str, _Listener] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._listeners

    def find(self, key: str) -> Listening | None:
        """Return where the listener of a key listens; None if there is none."""
        listener = self._listeners.get(key)
        return None if listener is None else listener.listening

    async def open(self, key: str, address: str, candidates: tuple[int, ...], serve: Serve) -> Listening:
        """Listen on the first of some ports that can be had, unless the key has a listener for them already.

        Raise `NoSocket` if none can be had.
        """
        present = self._listeners.get(key)
        if present is not None and present.request == (address, candidates):
            return present.listening
        self.close(key)
        if self._pid != os.getpid():
            raise NoSocket("a fork of a cluster publishes nothing")
        if len(self._listeners) >= limits.MAX_LISTENERS:
            raise NoSocket(f"{limits.MAX_LISTENERS} ports are published already")
        opened = open_socket(address, candidates)

        def add(connection: SocketConnection) -> None:
            self.connections.add(connection, serve)

        server = await accept(opened.listener, self._clock, add)
        endpoint = Endpoint(*opened.listener.getsockname()[:2])
        listening = Listening(endpoint, opened.problem)
        self._listeners[key] = _Listener((address, candidates), server, listening)
        return listening

    def close(self, key: str) -> None:
        """Listen no more; connections that are open continue."""
        listener = self._listeners.pop(key, None)
        if listener is not None:
            listener.server.close()

    async def end(self) -> None:
        """Close all listeners and connections."""
        for key in [*self._listeners]:
            self.close(key)
        await self.connections.end()
