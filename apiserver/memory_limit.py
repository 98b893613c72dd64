"""A limit of the memory that large requests use together: those beyond it wait for their turn.

A decoded body of 3 MiB can take a hundred times as much, and there are several copies of it while it is handled. So only so
many bytes of bodies and stored objects are decoded at a time, while other requests wait with nothing but the bytes of
their bodies, or before these are read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from mockube.apimachinery import status

MOST_WAITING: Final = 200
"""Requests that wait for memory: as many as there are writes in flight. The next one is refused."""


class MemoryLimit:
    """Bytes that requests may reserve together; a single request may reserve all of them."""

    def __init__(self, capacity: int, *, least: int) -> None:
        self.capacity = capacity
        self.least = least
        """Bytes that a request uses without a reservation."""
        self.reserved = 0
        self._growing: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Requests that have begun, which come first: they already use memory."""
        self._beginning: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._growing) + len(self._beginning)

    def try_reserve(self, size: int, *, before: int, has_begun: bool) -> bool:
        """Reserve so many bytes in total if there is room, and nobody waits whose turn is earlier."""
        has_turn = not self._growing and (has_begun or not self._beginning)
        if not has_turn or self.reserved - before + size > self.capacity:
            return False
        self.reserved += size - before
        return True

    def release(self, size: int) -> None:
        """Give bytes back, and let those continue for which there is room now."""
        self.reserved -= size
        while queue := self._growing or self._beginning:
            awaited, future = queue[0]
            if not future.done():
                if self.reserved + awaited > self.capacity:
                    return
                self.reserved += awaited
                future.set_result(None)
            queue.popleft()

    async def wait(self, size: int, *, before: int, has_begun: bool) -> None:
        """Give back what was reserved before; wait until so many bytes can be reserved, and reserve them."""
        if not has_begun and len(self._beginning) >= MOST_WAITING:
            raise status.too_many_requests("too many large requests are waiting, please try again later", 1)
        future = asyncio.get_running_loop().create_future()
        (self._growing if has_begun else self._beginning).append((size, future))
        self.release(before)
        try:
            await future
        except asyncio.CancelledError:
            reserved = future.done() and not future.cancelled()
            future.cancel()
            self.release(size if reserved else 0)
            raise


class Reservation:
    """What one request has reserved. It is released at the end of the request."""

    __slots__ = ("_has_begun", "_limit", "_size", "_suspended", "_suspensions")

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._has_begun = False
        self._size = 0
        self._suspended = 0
        self._suspensions = 0

    async def grow(self, size: int) -> bool:
        """Reserve so many bytes in total; return whether other requests were waited for meanwhile.

        While the request waits, it has no reservation: others that have begun can end.
        """
        return self.lacks(size) and await self._reserve(min(size, self._limit.capacity))

    def lacks(self, size: int) -> bool:
        """Return whether so many bytes are to be reserved yet: small requests need not await that."""
        return size >= self._limit.least and min(size, self._limit.capacity) > self._size

    @asynccontextmanager
    async def suspend(self) -> AsyncIterator[None]:
        """Release the bytes for a while, and reserve them again at the end of the last of several such whiles."""
        if not self._suspensions:
            self._suspended = self._size
            self.release()
        self._suspensions += 1
        is_cancelled = False
        try:
            yield
        except asyncio.CancelledError:
            is_cancelled = True
            raise
        finally:
            self._suspensions -= 1
            if self._suspended and not self._suspensions and not is_cancelled:
                await self._reserve(self._suspended)

    async def _reserve(self, size: int) -> bool:
        limit, before, has_begun = self._limit, self._size, self._has_begun
        self._has_begun = True
        if limit.try_reserve(size, before=before, has_begun=has_begun):
            self._size = size
            return False
        self._size = 0
        await limit.wait(size, before=before, has_begun=has_begun)
        self._size = size
        return True

    def release(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._limit.release(size)
