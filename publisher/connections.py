"""The connections of clients, in tasks of their own: how many there are, which of them break, and their end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from mockube.component_base.clock import Clock
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.streams import StreamsClosed

from . import limits
from .sockets import SocketConnection

LOG: Final = logging.getLogger(__name__)

Serve = Callable[[SocketConnection], Awaitable[None]]
"""Serves a connection to its end."""


class Connections:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[SocketConnection, asyncio.Task[None]] = {}
        self._by_pod: dict[str, set[SocketConnection]] = {}
        """The connections to each pod, by its uid."""
        self._is_full = False

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, connection: SocketConnection, serve: Serve) -> None:
        """Serve a connection in a task; reset it if there are too many."""
        if len(self._tasks) >= limits.MAX_CONNECTIONS:
            if not self._is_full:
                LOG.warning(
                    "Published ports have %d connections: further ones are reset", limits.MAX_CONNECTIONS
                )
            self._is_full = True
            connection.reset()
            return
        self._is_full = False
        task = start("a connection to a published port", self._run(connection, serve))
        self._tasks[connection] = task
        task.add_done_callback(lambda _: self._tasks.pop(connection, None))

    async def _run(self, connection: SocketConnection, serve: Serve) -> None:
        try:
            await serve(connection)
        except StreamsClosed:
            pass
        except BaseException:
            connection.reset()
            raise
        finally:
            await connection.close()

    def note_pod(self, connection: SocketConnection, uid: str) -> None:
        """Note that a connection leads to a pod, for as long as it lasts."""
        self._by_pod.setdefault(uid, set()).add(connection)
        self._tasks[connection].add_done_callback(lambda _: self._forget_pod(connection, uid))

    def _forget_pod(self, connection: SocketConnection, uid: str) -> None:
        present = self._by_pod.get(uid, set())
        present.discard(connection)
        if not present:
            self._by_pod.pop(uid, None)

    def leads_to(self, uid: str) -> bool:
        """Return whether there is a connection to a pod."""
        return uid in self._by_pod

    def break_pod(self, uid: str) -> None:
        """Reset the connections to a pod that has ended."""
        for connection in [*self._by_pod.get(uid, ())]:
            self._break(connection)

    def _break(self, connection: SocketConnection) -> None:
        connection.reset()
        task = self._tasks.get(connection)
        if task is not None:
            task.cancel()

    async def end_idle(self) -> None:
        """Reset, until cancelled, connections without a byte for a long time."""
        while True:
            await self._clock.sleep(limits.SWEEP_SECONDS)
            oldest = self._clock.monotonic() - limits.IDLE_SECONDS
            for connection in [each for each in self._tasks if each.used_at < oldest]:
                self._break(connection)

    async def end(self) -> None:
        """Reset all connections, and wait until their tasks have ended."""
        tasks = [*self._tasks.values()]
        for connection in [*self._tasks]:
            connection.reset()
        await cancel_and_wait(tasks)
