"""No write leaves a process that may not write any more, whatever it was doing when it lost that right.

It is asked at the last moment before each attempt, so neither a retry nor a process that slept can overlook it.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager

from controller_manager.runtime.wire import Answer, Request, Stream, Transport, Unreachable


class Fenced:
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
