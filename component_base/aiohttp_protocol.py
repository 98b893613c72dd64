"""The connections of aiohttp's server, with all names of that server that are not public: no other file uses one.

aiohttp has no public interface for what the API server and the kubelets' server need: the queue of parsed requests, whether a
connection was upgraded and the bytes after that, the states of keep-alive and shutdown, and the wait for a client that reads.
Any release may rename or change these names: `python -m tools.aiohttp_versions` runs the tests with each release that
pyproject.toml allows. Attributes that other files read are slots of aiohttp's class: an alias of a slot costs nothing.
"""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from aiohttp import EMPTY_PAYLOAD, StreamReader, hdrs, web
from aiohttp.http import RawRequestMessage, StreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import ERROR, PayloadAccessError, _ErrInfo

if TYPE_CHECKING:
    from multidict import CIMultiDict

__all__ = (
    "EMPTY_PAYLOAD",
    "ERROR",
    "AiohttpProtocol",
    "HeadWriter",
    "MalformedRequest",
    "Message",
    "PayloadAccessError",
    "SerialProtocol",
    "message_of",
)

MalformedRequest = _ErrInfo
"""Stands in the queue for a request that the parser refused: `exc` is why."""
Message: TypeAlias = RawRequestMessage | MalformedRequest

_handler: Final[Any] = web.RequestHandler


_IS_BEFORE_3_14_4: Final = hasattr(_handler, "_msg_queue_paused")
"""Whether the limit of the queue has the names of 3.14.1 to 3.14.3."""


class HeadWriter(StreamWriter):
    """Writes no Server header, as upstream does not, and the bytes of a proxied header as they were received."""

    async def write_headers(self, status_line: str, headers: "CIMultiDict[str]") -> None:
        headers.pop(hdrs.SERVER, None)
        await super().write_headers(status_line, headers)
        if not all(map(str.isascii, headers.values())):  # aiohttp omits the bytes that are not UTF-8
            lines = [status_line, *(f"{name}: {value}" for name, value in headers.items()), "\r\n"]
            self._headers_buf = "\r\n".join(lines).encode("utf-8", "surrogateescape")


def message_of(message: Message) -> RawRequestMessage:
    """Return a parsed request, or the one that stands for each malformed one."""
    return ERROR if isinstance(message, MalformedRequest) else message


class AiohttpProtocol(web.RequestHandler):
    """aiohttp's protocol of one connection, with its state."""

    __slots__ = ()

    requests: deque[tuple[Message, StreamReader]] = _handler._messages  # noqa: SLF001 - see above
    """The parsed requests that wait."""
    is_closed: bool = _handler._force_close  # noqa: SLF001 - see above
    is_upgraded: bool = _handler._upgraded  # noqa: SLF001 - see above
    """Whether the last request asked for another protocol, so that what follows is not parsed."""
    is_reading_paused: bool = _handler._reading_paused  # noqa: SLF001 - see above
    """Whether the body of the current request is read so slowly that the parser waits."""

    waits_for_room: bool = _handler._msg_queue_paused if _IS_BEFORE_3_14_4 else _handler._buffer_paused  # noqa: SLF001 - see above
    """Whether the parser waits for room in the queue."""
    continue_reading = (
        _handler._resume_msg_queue_reading if _IS_BEFORE_3_14_4 else _handler._resume_reading_if_drained  # noqa: SLF001 - see above
    )

    parse = web.RequestHandler.data_received
    """Add the requests in the data to the queue."""

    @property
    def is_handling(self) -> bool:
        """Whether aiohttp is calling the handler of a request."""
        return self._current_request is not None

    def refuse(self, error: HttpProcessingError) -> None:
        """Add a malformed request to the queue."""
        message = MalformedRequest(status=400, exc=error, message=error.message)
        self._messages.append((message, EMPTY_PAYLOAD))
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class SerialProtocol(AiohttpProtocol):
    """A connection whose requests are served in its own task, by a subclass.

    aiohttp starts a task for each request, which costs two iterations of the event loop before Python 3.12, as much as
    the parser does.
    """

    __slots__ = ()

    async def serve_request(self, message: Message, payload: StreamReader) -> bool:
        """Write the response to a request; return whether another one may follow."""
        raise NotImplementedError

    async def drain_body(self, payload: StreamReader) -> None:
        """Read the rest of an unused body."""
        raise NotImplementedError

    async def start(self) -> None:
        """Serve the client's requests one after another, until it or the server closes the connection."""
        try:
            while not self._force_close:
                if not self._messages:
                    await self._wait_for_request()
                if not await self._serve_next():
                    break
        except asyncio.CancelledError:
            self.force_close()
            raise
        except Exception as error:  # noqa: BLE001 - aiohttp's own errors; those of requests have responses
            self.log_exception("a connection is closed for an unexpected error", exc_info=error)
            self.force_close()
        if not self._force_close:
            self._task_handler = None
            if self.transport is not None:
                self.transport.close()

    async def _wait_for_request(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _serve_next(self) -> bool:
        """Serve the first parsed request; return whether another may follow."""
        message, payload = self._messages.popleft()
        self._request_in_progress = True
        try:
            keeps_open = await self.serve_request(message, payload)
        except ConnectionError:
            return False
        finally:
            self._request_in_progress = False
            if self._handler_waiter is not None:
                self._handler_waiter.set_result(None)
        self._keepalive = keeps_open
        if not payload.is_eof():
            await self.drain_body(payload)
        return keeps_open and self._stay_open()

    def _stay_open(self) -> bool:
        """Start the timeout until the next request; return False if the connection is being closed."""
        if self._close or self._force_close:
            return False
        self._next_keepalive_close_time = closes = self._loop.time() + self._keepalive_timeout
        if self._keepalive_handle is None:
            self._keepalive_handle = self._loop.call_at(closes, self._process_keepalive)
        return True

    async def drain(self) -> None:
        """Wait until the client has read enough for more to be written."""
        await self._drain_helper()

    async def _drain_helper(self) -> None:
        """Wait without a name for the future: an error that it raises has the frame, which would refer to the future for ever."""
        if self.transport is None:
            raise ConnectionResetError("the client has disconnected")
        if self._paused:
            if self._drain_waiter is None:
                self._drain_waiter = self._loop.create_future()
            await self._drain_waiter

    def note_taken_request(self) -> None:
        """Let the parser continue if it waits for room in the queue, from which a request was taken."""
        if self._parser is not None:
            self._parser.message_consumed()
        if self.waits_for_room and len(self._messages) <= self._msg_queue_resume_size:
            self.continue_reading()

    def take_upgrade_tail(self) -> bytes:
        """Return what has been received after a request for another protocol."""
        tail, self._message_tail = self._message_tail, b""
        return tail

    def decline_upgrade(self) -> None:
        """Continue with HTTP after a request for another protocol, unless a WebSocket has begun: parse what followed."""
        if self._payload_parser is not None or self._parser is None:
            return
        self._parser.set_upgraded(val=False)
        self._upgraded = False
        if tail := self.take_upgrade_tail():
            self.data_received(tail)
