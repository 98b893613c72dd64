"""Sockets that requests come in by, and how they are closed without cutting anybody off."""

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from apiserver.http.connections import Server

BACKLOG = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One socket, bound; with TLS, or in the clear."""

    socket: socket.socket
    tls: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        port: int = self.socket.getsockname()[1]
        return port


def bind(address: str, port: int) -> socket.socket:
    """Take a port; nobody is let in yet. Port 0 is any that is free."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


@asynccontextmanager
async def listening(
    server: Server, doors: Sequence[Door], *, drain_seconds: float, before_drain: Callable[[], None]
) -> AsyncIterator[None]:
    """Serve; at the end let nobody in any more, and wait until all who are in have had their answer.

    `before_drain` ends what would not end by itself.
    """
    runner = _Runner(server, before_drain, shutdown_timeout=drain_seconds)
    await runner.setup()
    try:
        for door in doors:
            await web.SockSite(runner, door.socket, ssl_context=door.tls, backlog=BACKLOG).start()
        yield
    finally:
        await runner.cleanup()


class _Runner(web.ServerRunner):
    """aiohttp closes idle connections, calls `shutdown`, and then waits for the others."""

    __slots__ = ("_before_drain",)

    def __init__(self, server: Server, before_drain: Callable[[], None], *, shutdown_timeout: float) -> None:
        super().__init__(server, access_log=None, shutdown_timeout=shutdown_timeout)
        self._before_drain = before_drain

    async def shutdown(self) -> None:
        self._before_drain()
