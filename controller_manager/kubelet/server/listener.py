"""The listener of the simulated kubelets: serves their endpoints on a socket, over TLS."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from aiohttp import StreamReader, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage, StreamWriter
from aiohttp.web_protocol import RequestHandler

from mockube.controller_manager.kubelet.server.endpoints import KubeletEndpoints

if TYPE_CHECKING:
    from multidict import CIMultiDict

BACKLOG: Final = 1024
SHUTDOWN_SECONDS: Final = 0.5
"""How long streams may continue at shutdown, in seconds."""


class _ResponseWriter(StreamWriter):
    """Writes responses without the Server header, like a kubelet."""

    async def write_headers(self, status_line: str, headers: "CIMultiDict[str]") -> None:
        headers.pop(hdrs.SERVER, None)
        await super().write_headers(status_line, headers)


def _create_request(
    message: RawRequestMessage,
    payload: StreamReader,
    connection: RequestHandler,
    _: AbstractStreamWriter,
    task: "asyncio.Task[None]",
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, connection, _ResponseWriter(connection, loop), task, loop)


def listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=BACKLOG)


@asynccontextmanager
async def serving(
    endpoints: KubeletEndpoints, listener: socket.socket, tls: ssl.SSLContext
) -> AsyncIterator[None]:
    """Serve the endpoints during the block."""
    runner = web.ServerRunner(
        # Otherwise the disconnection of a client that follows a log without output is not noticed.
        web.Server(
            endpoints.handle,
            access_log=None,
            handler_cancellation=True,
            request_factory=_create_request,
        ),
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener, ssl_context=tls, backlog=BACKLOG).start()
        yield
    finally:
        await runner.cleanup()
