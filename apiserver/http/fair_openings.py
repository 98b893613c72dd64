"""A limit of the connections that are being opened to one address at the same time; users take turns."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.clock import Clock

Address = tuple[str, int]


class _Waiter(Struct, eq=False, frozen=True):
    turn: asyncio.Future[None]
    since: float


class _Dials(Struct, eq=False):
    """The connections to one address that are being opened or wait."""

    current: int = 0
    waiting: OrderedDict[str, deque[_Waiter]] = field(default_factory=OrderedDict)
    """The waiting connections by user; the first user is next."""


class FairDialLimiter:
    """Limits the connections that are being opened to each address.

    A user with many waiting connections delays another user by one turn.
    """

    def __init__(self, limit: int, clock: Clock) -> None:
        self._limit: Final = limit
        self._clock = clock
        self._openings: dict[Address, _Dials] = {}

    @asynccontextmanager
    async def turn(self, address: Address, user: str) -> AsyncIterator[None]:
        """Wait until a connection may be opened."""
        openings = self._openings.setdefault(address, _Dials())
        if openings.current < self._limit:
            openings.current += 1
        else:
            await self._wait(openings, address, user)
        try:
            yield
        finally:
            self._end(openings, address)

    def fail(self, address: Address, seconds: float) -> None:
        """Raise TimeoutError in all that have waited for `seconds`: the address does not respond."""
        before = self._clock.monotonic() - seconds
        openings = self._openings.get(address, _Dials())
        for queue in openings.waiting.values():
            for waiting in queue:
                if waiting.since <= before and not waiting.turn.done():
                    waiting.turn.set_exception(TimeoutError())

    async def _wait(self, openings: _Dials, address: Address, user: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        openings.waiting.setdefault(user, deque()).append(_Waiter(turn, self._clock.monotonic()))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._end(openings, address)
            raise

    def _end(self, openings: _Dials, address: Address) -> None:
        """End a turn, and begin the next one."""
        openings.current -= 1
        while openings.waiting:
            user, queue = openings.waiting.popitem(last=False)
            turn = queue.popleft().turn
            if queue:
                openings.waiting[user] = queue
            if not turn.done():
                openings.current += 1
                turn.set_result(None)
                return
        if not openings.current:
            self._openings.pop(address, None)
