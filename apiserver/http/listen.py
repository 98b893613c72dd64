"""Sockets that requests come in by, and how they are closed without cutting anybody off."""

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from apimachinery.clock import Clock
from apiserver.http.connections import Server, silent_losses

BACKLOG = 1024
FAREWELL_SECONDS = 0.02
"""How long those are waited for, when all time is over, who have not had their answer, or keep their connection."""


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
    server: Server,
    doors: Sequence[Door],
    *,
    clock: Clock,
    drain_seconds: float,
    before_drain: Callable[[], None],
) -> AsyncIterator[None]:
    """Serve; at the end let nobody in any more, and wait until all who are in have had their answer.

    `before_drain` ends what would not end by itself.
    """
    runner = web.ServerRunner(server, access_log=None, shutdown_timeout=FAREWELL_SECONDS)
    await runner.setup()
    with silent_losses():
        try:
            for door in doors:
                await web.SockSite(runner, door.socket, ssl_context=door.tls, backlog=BACKLOG).start()
            yield
        finally:
            for site in runner.sites:
                await site.stop()
            before_drain()
            await server.drain(clock, drain_seconds)
            await runner.cleanup()
            await server.part(clock, FAREWELL_SECONDS)
