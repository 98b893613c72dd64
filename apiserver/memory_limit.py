"""A limit of the memory that large requests use together: those beyond it wait for their turn.

A decoded body of 3 MiB can take a hundred times as much, and there are several copies of it while it is handled. So only so
many bytes of bodies and stored objects are decoded at a time, while other requests wait with nothing but the bytes of
their bodies, or before these are read.
"""

import asyncio
from collections import deque
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

    def try_reserve(self, size: int, *, before: int) -> bool:
        """Reserve so many bytes in total if there is room, and nobody waits whose turn is earlier."""
        has_turn = not self._growing and (before or not self._beginning)
        if not has_turn or self.reserved - before + size > self.capacity:
            return False
        self.reserved += size - before
        return True

    def release(self, size: int) -> None:
        """Give bytes back, and let those continue for which there is room now."""
        self.reserved -= size
        while queue := self._growing or self._beginning:
            wanted, future = queue[0]
            if not future.done():
                if self.reserved + wanted > self.capacity:
                    return
                self.reserved += wanted
                future.set_result(None)
            queue.popleft()

    async def wait(self, size: int, *, before: int) -> None:
        """Give back what was reserved before; wait until so many bytes can be reserved, and reserve them."""
        if not before and len(self._beginning) >= MOST_WAITING:
            raise status.too_many_requests("too many large requests are waiting, please try again later", 1)
        future = asyncio.get_running_loop().create_future()
        (self._growing if before else self._beginning).append((size, future))
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

    __slots__ = ("_limit", "_size")

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._size = 0

    async def grow(self, size: int) -> bool:
        """Reserve so many bytes in total; return whether other requests were waited for meanwhile.

        While the request waits, it has no reservation: others that have begun can end.
        """
        limit, before = self._limit, self._size
        size = min(size, limit.capacity)
        if size < limit.least or size <= before:
            return False
        if limit.try_reserve(size, before=before):
            self._size = size
            return False
        self._size = 0
        await limit.wait(size, before=before)
        self._size = size
        return True

    def release(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._limit.release(size)
