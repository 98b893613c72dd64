"""aiohttp's server, which besides can tell somebody that his connection is lost, and can be drained.

A request that only waits, such as a watch, would otherwise not hear of it before it has something to send. And when
aiohttp itself closes connections it drops what is still being sent to it, so they are not closed before all requests
that have begun are answered.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from apimachinery.clock import Clock

LOG = logging.getLogger(__name__)


def _is_no_fault_of_a_client(record: logging.LogRecord) -> bool:
    """What is no HTTP is logged as an error with its stack by aiohttp; anybody could fill the log so."""
    error = record.exc_info[1] if record.exc_info else None
    if not isinstance(error, HttpProcessingError | web.RequestPayloadError):
        return True
    LOG.debug("what is no HTTP was refused: %s", error)
    return False


LOG.addFilter(_is_no_fault_of_a_client)


@contextmanager
def silent_losses() -> Iterator[None]:
    """Else a client that goes away in the middle of an answer is warned of once for each piece that is still to come."""

    def is_no_loss(record: logging.LogRecord) -> bool:
        return record.msg != "SSL connection is closed"

    logger = logging.getLogger("asyncio")
    logger.addFilter(is_no_loss)
    try:
        yield
    finally:
        logger.removeFilter(is_no_loss)


class Server(web.Server):
    def __init__(
        self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], **settings: Any
    ) -> None:
        super().__init__(self._answer, logger=LOG, **settings)
        self._handler = handler
        self._callbacks: dict[web.RequestHandler, Callable[[], None]] = {}
        self._answering = 0
        self._idle = asyncio.Event()
        self._draining = False
        self._open: dict[web.RequestHandler, asyncio.Transport] = {}
        self._empty = asyncio.Event()

    def on_lost(self, request: web.BaseRequest, callback: Callable[[], None]) -> None:
        self._callbacks[request.protocol] = callback

    def forget(self, request: web.BaseRequest) -> None:
        self._callbacks.pop(request.protocol, None)

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._open[handler] = transport

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._open.pop(handler, None)
        if not self._open:
            self._empty.set()
        callback = self._callbacks.pop(handler, None)
        if callback is not None:
            callback()

    async def drain(self, clock: Clock, seconds: float) -> None:
        """Close each connection with its next answer; wait, but not for ever, until nobody is owed one."""
        self._draining = True
        if not self._answering:
            return
        timer = clock.call_later(seconds, self._idle.set)
        await self._idle.wait()
        timer.cancel()

    async def part(self, clock: Clock, seconds: float) -> None:
        """Wait until every connection is closed; those that their clients keep open for so long are cut.

        With TLS both sides have to say goodbye, and a client that is busy or idle says nothing.
        """
        await self._wait_empty(clock, seconds)
        for transport in [*self._open.values()]:
            transport.abort()
        await self._wait_empty(clock, seconds)

    async def _wait_empty(self, clock: Clock, seconds: float) -> None:
        if not self._open:
            return
        self._empty.clear()
        timer = clock.call_later(seconds, self._empty.set)
        await self._empty.wait()
        timer.cancel()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._answering += 1
        try:
            answer = await self._handler(request)
        finally:
            self._answering -= 1
            if self._draining and not self._answering:
                self._idle.set()
        if self._draining:
            answer.force_close()
        return answer
