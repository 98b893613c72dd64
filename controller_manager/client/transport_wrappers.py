"""Wrappers around a transport: a bound on requests in flight, and the check that this manager still leads."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from mockube.controller_manager.client.wire import Answer, Request, Stream, Transport, Unreachable

UNDER_WAY: Final = 32
"""Enough to keep a server busy; each is a connection."""


class BoundedTransport:
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


class FencedTransport:
    """A `Transport` that is another one, as long as it may write."""

    def __init__(self, transport: Transport, may_write: Callable[[], bool]) -> None:
        self._transport = transport
        self._may_write = may_write

    @property
    def host(self) -> str:
        return self._transport.host

    async def send(self, request: Request, headers: Mapping[str, str]) -> Answer:
        if not (request.is_read or self._may_write()):
            raise Unreachable(f"{request.method} {request.target}: the lease is not held any more")
        return await self._transport.send(request, headers)

    def stream(self, request: Request, headers: Mapping[str, str]) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(request, headers)

    async def close(self) -> None:
        await self._transport.close()
