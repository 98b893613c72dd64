"""A limit of the memory that large requests use together: a request beyond the limit waits.

A body of 3 MiB can take a hundred times as much memory when it is decoded, and there are several copies of it while the
request is handled. So the bytes of bodies and stored objects that are decoded at the same time are limited; other
requests wait with the bytes of their bodies alone, or before their bodies are read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from mockube.apimachinery import status

MAX_WAITING_REQUESTS: Final = 200
"""The maximum of requests that wait for memory, the same as of writes in flight. Further ones are refused."""


class MemoryLimit:
    """Bytes that requests may reserve together; a single request may reserve all of them."""

    def __init__(self, capacity: int, *, minimum: int) -> None:
        self.capacity = capacity
        self.minimum = minimum
        """Bytes that a request uses without a reservation."""
        self.reserved = 0
        self._growing: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Requests that have begun. They have priority, because they already use memory."""
        self._beginning: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._growing) + len(self._beginning)

    def try_reserve(self, size: int, *, before: int, has_begun: bool) -> bool:
        """Reserve `size` bytes in total and return True if there is room and no request before this one in the queue."""
        has_turn = not self._growing and (has_begun or not self._beginning)
        if not has_turn or self.reserved - before + size > self.capacity:
            return False
        self.reserved += size - before
        return True

    def release(self, size: int) -> None:
        """Release bytes, and resume the waiting requests for which there is room now."""
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
        """Release the `before` bytes; wait until `size` bytes are available, and reserve them."""
        if not has_begun and len(self._beginning) >= MAX_WAITING_REQUESTS:
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
    """The bytes that one request has reserved, until the request ends."""

    __slots__ = ("_has_begun", "_limit", "_size", "_suspended", "_suspensions")

    def __init__(self, limit: MemoryLimit) -> None:
        self._limit = limit
        self._has_begun = False
        self._size = 0
        self._suspended = 0
        self._suspensions = 0

    async def grow(self, size: int) -> bool:
        """Reserve `size` bytes in total; return whether the request waited for others.

        While the request waits, it has no reservation: others that have begun can end.
        """
        return self.needs_reservation(size) and await self._reserve(min(size, self._limit.capacity))

    def needs_reservation(self, size: int) -> bool:
        """Return whether `grow` must be awaited for this size: not for small requests, nor if the bytes are reserved."""
        return size >= self._limit.minimum and min(size, self._limit.capacity) > self._size

    @asynccontextmanager
    async def suspend(self) -> AsyncIterator[None]:
        """Release the bytes within the block, and reserve them again at the end of the last of several concurrent blocks."""
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
