"""The connections of clients, in tasks of their own: how many there are, which of them break, and their end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from mockube.component_base.clock import Clock
from mockube.component_base.connection_limit import ConnectionLimit
from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.streams import StreamsClosed

from . import limits
from .sockets import SocketConnection
from .unfinished_heads import UnfinishedHead, UnfinishedHeads

LOG: Final = logging.getLogger(__name__)

Serve = Callable[[SocketConnection], Awaitable[None]]
"""Serves a connection to its end."""


class Connections:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[SocketConnection, asyncio.Task[None]] = {}
        self._by_pod: dict[str, set[SocketConnection]] = {}
        """The connections to each pod, by its uid."""
        self._ending: set[asyncio.Task[None]] = set()
        """The tasks of connections that were reset, which do not count any more."""
        self._heads = UnfinishedHeads()
        self._limit = ConnectionLimit(limits.MAX_CONNECTIONS)
        self._is_full = False

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, connection: SocketConnection, serve: Serve) -> None:
        """Serve a connection in a task; reset an idle one if there are too many."""
        was_full, self._is_full = self._is_full, len(self._limit) >= self._limit.maximum
        if self._is_full and not was_full:
            LOG.warning(
                "Published ports have %d connections: old ones are reset for further ones",
                self._limit.maximum,
            )
        self._limit.add(
            connection, connection.address, partial(self._break, connection), lambda: connection.used_at
        )
        task = start("a connection to a published port", self._run(connection, serve))
        self._tasks[connection] = task
        task.add_done_callback(lambda _: self._forget(connection, task))

    def _forget(self, connection: SocketConnection, task: asyncio.Task[None]) -> None:
        self._limit.discard(connection)
        self._tasks.pop(connection, None)
        self._ending.discard(task)

    def head_of(self, connection: SocketConnection) -> UnfinishedHead:
        """Return what notes the heads of requests of a connection."""
        return self._heads.of(partial(self._limit.note_request, connection))

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
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: self._forget_pod(connection, uid))

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
        self._limit.discard(connection)
        task = self._tasks.pop(connection, None)
        if task is not None:
            self._ending.add(task)
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
        tasks = [*self._tasks.values(), *self._ending]
        for connection in [*self._tasks]:
            connection.reset()
        await cancel_and_wait(tasks)
