"""Only so many requests are under way at once; the others wait for their turn, first come first served.

It is outside of all that happens to a request, so that neither its deadline nor a look at the lease comes too early.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from controller_manager.runtime.wire import Answer, Request, Stream, Transport

UNDER_WAY: Final = 32
"""Enough to keep a server busy; each is a connection."""


class Bounded:
    """A `Transport` that is another one, in turns. Streams are not counted: they last, and there are few."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._turns = asyncio.Semaphore(UNDER_WAY)

    @property
    def host(self) -> str:
        return self._transport.host

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        async with self._turns:
            return await self._transport.send(request, headers)

    def stream(self, request: Request, headers: Mapping[str, str]) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(request, headers)

    async def close(self) -> None:
        await self._transport.close()
