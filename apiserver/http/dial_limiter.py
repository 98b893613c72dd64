"""A limit of the connections that are being opened to one address at the same time, in a fair order of users."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct, field

from mockube.component_base.clock import Clock

Address = tuple[str, int]


class _Waiter(Struct, eq=False, frozen=True):
    slot: asyncio.Future[None]
    since: float


class _Dials(Struct, eq=False):
    """The connections to one address that are being opened or wait."""

    current: int = 0
    waiting: OrderedDict[str, deque[_Waiter]] = field(default_factory=OrderedDict)
    """The waiting connections by user; the first user is next."""


class FairDialLimiter:
    """Limits the connections that are being opened to each address.

    A user with many waiting connections delays another user by one connection.
    """

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit: Final = limit
        self._clock = clock
        self._dials: dict[Address, _Dials] = {}

    @asynccontextmanager
    async def slot(self, address: Address, user: str) -> AsyncIterator[None]:
        """Wait until a connection may be opened."""
        dials = self._dials.setdefault(address, _Dials())
        if dials.current < self._limit:
            dials.current += 1
        else:
            await self._wait(dials, address, user)
        try:
            yield
        finally:
            self._release(dials, address)

    def fail(self, address: Address, seconds: float) -> None:
        """Raise TimeoutError in all that have waited for `seconds`: the address does not respond."""
        before = self._clock.monotonic() - seconds
        dials = self._dials.get(address, _Dials())
        for queue in dials.waiting.values():
            for waiting in queue:
                if waiting.since <= before and not waiting.slot.done():
                    waiting.slot.set_exception(TimeoutError())

    async def _wait(self, dials: _Dials, address: Address, user: str) -> None:
        slot = asyncio.get_running_loop().create_future()
        dials.waiting.setdefault(user, deque()).append(_Waiter(slot, self._clock.monotonic()))
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled() and slot.exception() is None:
                self._release(dials, address)
            raise

    def _release(self, dials: _Dials, address: Address) -> None:
        """Release a slot, and pass it to the next waiter."""
        dials.current -= 1
        while dials.waiting:
            user, queue = dials.waiting.popitem(last=False)
            slot = queue.popleft().slot
            if queue:
                dials.waiting[user] = queue
            if not slot.done():
                dials.current += 1
                slot.set_result(None)
                return
        if not dials.current:
            self._dials.pop(address, None)
