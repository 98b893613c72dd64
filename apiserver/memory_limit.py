"""A limit of the memory that large requests use together: a request beyond the limit waits.

A body of 3 MiB can take a hundred times as much memory when it is decoded, and there are several copies of it while the
request is handled. So the bytes of bodies and stored objects that are decoded at the same time are limited; other
requests wait with the bytes of their bodies alone, or before their bodies are read.

A client that sends slowly keeps its reservation for a minute. So each user has a share: a user who has a reservation gets a
further one only if it leaves as much free as the user has then. One user can have half of the memory, a second one half of
the rest, and so on: some is always free for a user who has none. Users take turns.

A body is reserved as a whole before it is read. If reservations grew while bodies arrive, many incomplete bodies could use all
memory, and each would wait for the others to end; and a client could still send all but the last byte.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import status

MAX_WAITING_REQUESTS: Final = 200
"""The maximum of requests that wait for memory, the same as of writes in flight. Further ones are refused."""


class _Waiting(Struct, eq=False):
    """A request that waits."""

    size: int
    reserved: asyncio.Future[bool]
    """The result is whether its bytes are reserved; if not, the request is refused."""


class _Owner(Struct, eq=False):
    """The requests of one user."""

    reserved: int = 0
    growing: deque[_Waiting] = field(default_factory=deque)
    """Requests that have begun. They have priority, because they already use memory."""
    beginning: deque[_Waiting] = field(default_factory=deque)


class MemoryLimit:
    """Bytes that requests may reserve together; a single request may reserve all of them."""

    def __init__(self, capacity: int, *, minimum: int) -> None:
        self.capacity = capacity
        self.minimum = minimum
        """Bytes that a request uses without a reservation."""
        self.reserved = 0
        self._owners: dict[str, _Owner] = {}
        """The users with requests that wait or have a reservation, by name, in the order of their last turns."""

    @property
    def waiting(self) -> int:
        return sum(len(owner.growing) + len(owner.beginning) for owner in self._owners.values())

    def try_reserve(self, owner: str, size: int, *, before: int, has_begun: bool) -> bool:
        """Reserve `size` bytes in total and return True if there is room and no request has to be served before this one."""
        requests = self._owners.get(owner)
        if requests is None:
            requests = _Owner()
        elif requests.growing or (requests.beginning and not has_begun):
            return False
        free = self.capacity - self.reserved + before
        if size > free or not _is_in_share(requests.reserved - before, size, free):
            return False
        if self._next(has_begun=has_begun) is not None:
            return False
        self._reserve(owner, requests, size - before)
        return True

    def release(self, owner: str, size: int) -> None:
        """Release bytes, and resume the waiting requests for which there is room now."""
        self.reserved -= size
        requests = self._owners[owner]
        requests.reserved -= size
        self._resume()
        if not (requests.reserved or requests.growing or requests.beginning):
            del self._owners[owner]

    async def wait(self, owner: str, size: int, *, before: int, has_begun: bool) -> None:
        """Release the `before` bytes; wait until `size` bytes are available, and reserve them."""
        if not has_begun:
            self._make_room_in_queue(owner)
        requests = self._owners.setdefault(owner, _Owner())
        waiting = _Waiting(size, asyncio.get_running_loop().create_future())
        queue = requests.growing if has_begun else requests.beginning
        queue.append(waiting)
        self.release(owner, before)
        try:
            is_reserved = await waiting.reserved
        except asyncio.CancelledError:
            is_reserved = not waiting.reserved.cancelled() and waiting.reserved.result()
            if waiting in queue:
                queue.remove(waiting)
            if owner in self._owners:
                self.release(owner, size if is_reserved else 0)
            raise
        if not is_reserved:
            raise _too_many()

    def _next(self, *, has_begun: bool = False) -> str | None:
        """Return the user whose request is served next, once there is room; only a request that has begun if `has_begun`.

        A request beyond the share of its user does not hold up other users.
        """
        free, beginning = self.capacity - self.reserved, None
        for name, owner in self._owners.items():
            queue = owner.growing or owner.beginning
            if queue and _is_in_share(owner.reserved, queue[0].size, free):
                if owner.growing:
                    return name
                beginning = beginning or name
        return None if has_begun else beginning

    def _resume(self) -> None:
        while (name := self._next()) is not None:
            owner = self._owners[name]
            queue = owner.growing or owner.beginning
            first = queue[0]
            if not first.reserved.done():
                if self.reserved + first.size > self.capacity:
                    return
                self._reserve(name, owner, first.size)
                first.reserved.set_result(True)
            queue.popleft()

    def _reserve(self, name: str, owner: _Owner, size: int) -> None:
        """Reserve bytes, and put the user behind the others."""
        self.reserved += size
        owner.reserved += size
        self._owners.pop(name, None)
        self._owners[name] = owner

    def _make_room_in_queue(self, owner: str) -> None:
        """Refuse a request if too many wait: a new one of this user, or the last one of a user of whom more wait."""
        queues = {name: requests.beginning for name, requests in self._owners.items()}
        if sum(map(len, queues.values())) < MAX_WAITING_REQUESTS:
            return
        largest = max(queues.values(), key=len)
        if len(largest) <= len(queues.get(owner, ())) + 1:
            raise _too_many()
        last = largest.pop()
        if not last.reserved.done():
            last.reserved.set_result(False)


def _is_in_share(reserved: int, size: int, free: int) -> bool:
    """Return whether a user with `reserved` bytes may have `size` more: if they are the first, or leave as many free."""
    return not reserved or reserved + size <= free - size


def _too_many() -> status.ApiError:
    return status.too_many_requests("too many large requests are waiting, please try again later", 1)


class Reservation:
    """The bytes that one request of a user has reserved, until the request ends."""

    __slots__ = ("_has_begun", "_limit", "_owner", "_size", "_suspended", "_suspensions")

    def __init__(self, limit: MemoryLimit, owner: str) -> None:
        self._limit = limit
        self._owner = owner
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
        if limit.try_reserve(self._owner, size, before=before, has_begun=has_begun):
            self._size = size
            return False
        self._size = 0
        await limit.wait(self._owner, size, before=before, has_begun=has_begun)
        self._size = size
        return True

    def release(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._limit.release(self._owner, size)
