"""The listener of the simulated kubelets: serves their endpoints on a socket, over TLS."""

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage, StreamWriter
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from mockube.component_base.aiohttp_protocol import ERROR, AiohttpProtocol, MalformedRequest

from .endpoints import KubeletEndpoints

if TYPE_CHECKING:
    from multidict import CIMultiDict

LOG: Final = logging.getLogger(__name__)
HEAD_BYTES: Final = (1 << 20) + 4096
"""The limit of a request line and all headers together, as in Go: a mebibyte and some slack."""
HEADERS: Final = 10_000
"""The limit of the number of headers, as of the API server."""
BACKLOG: Final = 1024
_TOO_LARGE: Final = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
SHUTDOWN_SECONDS: Final = 0.5
"""How long streams may continue at shutdown, in seconds."""


class _Connection(AiohttpProtocol):
    """A connection whose head as a whole is limited; aiohttp limits each line and the number of headers."""

    __slots__ = ("_head_bytes", "_is_refused", "_node_of", "node")

    def __init__(self, manager: "_Server", **settings: Any) -> None:
        super().__init__(manager, **settings)
        self._head_bytes = 0
        """The number of bytes of a head that is not complete yet."""
        self._is_refused = False
        self._node_of = manager.node_of
        self.node = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.node = self._node_of(transport.get_extra_info("peername"))

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if self.requests or self.is_handling:
            self._head_bytes = 0
            self._is_refused = bool(self.requests) and isinstance(self.requests[-1][0], MalformedRequest)
            return
        self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES:
            self._is_refused = True
            self.refuse(LineTooLong(b"", HEAD_BYTES))

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Respond as Go does to a request that cannot be parsed, and log one line, without its text."""
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        if isinstance(exc, LineTooLong):
            answer, reason = _TOO_LARGE, f"its head has more than {HEAD_BYTES} bytes"
        else:
            answer, reason = HTTPStatus.BAD_REQUEST, f"it is malformed ({type(exc).__name__})"
        LOG.warning("A request from %s is refused: %s", request.remote, reason)
        response = web.Response(status=answer.value, text=f"{answer.value} {answer.phrase}")
        response.force_close()
        return response


class _Server(web.Server):
    node_of: Callable[[Any], str] = staticmethod(lambda _: "")
    """Returns the node to which the client at an address has connected; "" if its requests say it."""

    def __call__(self) -> _Connection:
        return _Connection(
            self,
            loop=asyncio.get_running_loop(),
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
            max_headers=HEADERS,
            access_log=None,
        )


class _ResponseWriter(StreamWriter):
    """Writes responses without the Server header, like a kubelet."""

    async def write_headers(self, status_line: str, headers: "CIMultiDict[str]") -> None:
        headers.pop(hdrs.SERVER, None)
        await super().write_headers(status_line, headers)


def _create_request(
    message: RawRequestMessage,
    payload: StreamReader,
    connection: web.RequestHandler,
    _: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    if message is ERROR:
        message = message._replace(version=HttpVersion11)
    return web.BaseRequest(message, payload, connection, _ResponseWriter(connection, loop), task, loop)


def listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


@asynccontextmanager
async def serving(
    endpoints: KubeletEndpoints,
    listener: socket.socket,
    tls: ssl.SSLContext,
    node_of: Callable[[Any], str] = lambda _: "",
) -> AsyncIterator[None]:
    """Serve the endpoints during the block. `node_of` returns the node to which the client at an address has connected, if it is known."""
    # Otherwise the disconnection of a client that follows a log without output is not noticed.
    server = _Server(endpoints.handle, handler_cancellation=True, request_factory=_create_request)
    server.node_of = node_of
    runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.SockSite(runner, listener, ssl_context=tls, backlog=BACKLOG).start()
        yield
    finally:
        await runner.cleanup()
        await endpoints.end()
