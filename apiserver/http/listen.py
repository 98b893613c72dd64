"""Listening sockets, and their graceful shutdown."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apiserver.http.server import HEAD_SECONDS, Server, silent_losses
from mockube.apiserver.pki.serving import ServingCertificates

LOG = logging.getLogger(__name__)

BACKLOG = 1024
RECOVERY_SECONDS = 0.1
"""The pause of accepting connections when the system has no socket left."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
SHUTDOWN_SECONDS = 0.02
"""How long a shutdown waits after its deadline for responses and for open connections."""


class Listener(Struct, frozen=True, kw_only=True):
    """One socket, bound; with TLS, or in the clear."""

    socket: socket.socket
    tls: ServingCertificates | None = None

    @property
    def port(self) -> int:
        port: int = self.socket.getsockname()[1]
        return port


def bind(address: str, port: int) -> socket.socket:
    """Bind a port without accepting connections. Port 0 is any free one."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


@asynccontextmanager
async def listening(
    server: Server,
    listeners: Sequence[Listener],
    *,
    clock: Clock,
    drain_seconds: float,
    before_drain: Callable[[], None],
) -> AsyncIterator[None]:
    """Serve; at the end accept no more connections, and wait until all requests have been answered.

    `before_drain` ends streams, which have no end of their own.
    """
    async with asyncio.TaskGroup() as group:
        accepting = [group.create_task(Acceptor(server, listener, clock).run()) for listener in listeners]
        with silent_losses():
            try:
                yield
            finally:
                for task in accepting:
                    task.cancel()
                await asyncio.wait(accepting)
                for listener in listeners:
                    listener.socket.close()
                before_drain()
                await server.drain(clock, drain_seconds)
                server.pre_shutdown()
                await server.shutdown(SHUTDOWN_SECONDS)
                await server.part(clock, SHUTDOWN_SECONDS)


class Acceptor:
    """Accepts the connections of one door. Until its TLS handshake is done, a connection counts as unauthenticated."""

    def __init__(self, server: Server, listener: Listener, clock: Clock) -> None:
        self._server = server
        self._listener = listener
        self._clock = clock
        self._opening: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        loop, listening_socket = asyncio.get_running_loop(), self._listener.socket
        listening_socket.setblocking(False)  # noqa: FBT003 - the standard library's
        try:
            while True:
                try:
                    accepted, address = await loop.sock_accept(listening_socket)
                except OSError as error:
                    await self._recover(error)
                    continue
                self._open(accepted, str(address[0]))
        finally:
            for task in self._opening:
                task.cancel()

    async def _recover(self, error: OSError) -> None:
        """Without files or memory for another socket: make room, and do not try again at once."""
        if error.errno not in _EXHAUSTED:
            return  # the client has gone away again
        LOG.warning("no connection can be accepted: %s", error)
        self._server.unauthenticated.evict()
        await self._clock.sleep(RECOVERY_SECONDS)

    def _open(self, accepted: socket.socket, address: str) -> None:
        task = asyncio.create_task(self._handshake(accepted), name="a handshake")
        self._opening.add(task)
        self._server.unauthenticated.add(task, address, task.cancel)
        task.add_done_callback(partial(self._on_opened, accepted))

    def _on_opened(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self._server.unauthenticated.discard(task)
        if task.cancelled():  # perhaps before it began, and then nothing else holds the socket
            accepted.close()

    async def _handshake(self, accepted: socket.socket) -> None:
        tls = self._listener.tls
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._server,
                accepted,
                ssl=None if tls is None else tls.context,
                ssl_handshake_timeout=None if tls is None else HEAD_SECONDS,
            )
        except (OSError, TimeoutError) as error:
            LOG.debug("a handshake failed: %s", error)
