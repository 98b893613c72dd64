"""The common parts of proxies: cancellation when the client disconnects, copies of bodies, protocol upgrades."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import hdrs
from multidict import CIMultiDict

from mockube.apimachinery import status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.status import ApiError
from mockube.apiserver.request.request import BodySink, Request
from mockube.apiserver.request.response import Response
from mockube.component_base.http1 import heads
from mockube.component_base.http1.heads import ResponseHead
from mockube.component_base.http1.writing import LAST_CHUNK, encode_chunk

from .adapter import SocketClient, Tunnel
from .backend_connection import LIMIT, BackendConnection, flush

LOG: Final = logging.getLogger(__name__)
CANCELED: Final = "context canceled"
"""Upstream's error of a request whose client has disconnected."""


def _service_unreachable() -> ApiError:
    return status.ServiceUnavailable(f"error trying to reach service: {CANCELED}")


class Exchanges:
    """The forwarded requests that are active, so that all can be cancelled."""

    def __init__(self) -> None:
        self._running: set[Callable[[], None]] = set()

    def end_all(self) -> None:
        """Cancel all forwarded requests, which may be endless streams."""
        for cut in [*self._running]:
            cut()

    async def run(
        self,
        request: Request,
        work: Coroutine[Any, Any, Response],
        cancellation_error: Callable[[], ApiError] = _service_unreachable,
    ) -> Response:
        """Return the result of the work; it is cancelled when its client disconnects, or by `end_all`.

        As upstream, the response that has begun is the one that is recorded; before that it is an error.
        """
        task = asyncio.current_task()
        assert task is not None
        before, is_cut = task.cancelling(), False

        def cut() -> None:
            nonlocal is_cut
            is_cut = True
            task.cancel()

        self._running.add(cut)
        request.client.on_lost(cut)
        try:
            return await work
        except asyncio.CancelledError:
            if not is_cut or task.uncancel() > before:
                raise
            if not request.stream_status:
                raise cancellation_error() from None
            request.is_aborted = request.stream_status != HTTPStatus.SWITCHING_PROTOCOLS
            return Response(request.stream_status)
        finally:
            self._running.discard(cut)
            request.client.on_lost(None)


async def switch_protocols(request: Request, backend: BackendConnection) -> Response:
    """Forward the response to an upgrade request: a tunnel or an error."""
    head = await backend.read_head()
    if head.status != HTTPStatus.SWITCHING_PROTOCOLS:
        if head.status < HTTPStatus.BAD_REQUEST:
            raise status.internal_error(f"invalid upgrade response: status code {head.status}")
        response = Response(head.status, (), head.header("content-type"))
        return await copy_body(request, response, backend.body())
    request.begin_stream(head.status)
    tunnel = cast("SocketClient", request.client).take_over()
    request.client.on_lost(None)  # what the client has sent before is still forwarded
    tunnel.writer.write(head.raw)
    await _pipe(tunnel, backend)
    return Response(HTTPStatus.SWITCHING_PROTOCOLS)


async def _pipe(tunnel: Tunnel, backend: BackendConnection) -> None:
    """Copy both ways until the backend ends. When the client leaves, the backend still gets all that it sent."""
    directions = (
        asyncio.create_task(_copy_to_backend(tunnel.reader, backend), name="from the client"),
        asyncio.create_task(_copy_to_client(backend, tunnel.writer), name="from the backend"),
    )
    try:
        await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for direction in directions:
            direction.cancel()
        for result in await asyncio.gather(*directions, return_exceptions=True):
            if isinstance(result, Exception):
                LOG.error("a tunnel to a backend failed", exc_info=result)
        tunnel.writer.close()


async def _copy_to_backend(reader: asyncio.StreamReader, backend: BackendConnection) -> None:
    """Copy until the client leaves, and wait until the backend has received everything."""
    with suppress(ConnectionError):
        while data := await reader.read(LIMIT):
            backend.writer.write(data)
            await backend.drain()
        await backend.finish()
        return
    while await reader.read(LIMIT):  # the backend reads no more, but what it has sent is still forwarded
        pass


async def _copy_to_client(backend: BackendConnection, writer: asyncio.StreamWriter) -> None:
    """Copy until the backend ends; discard what the client does not read: it may have sent something before it left."""
    with suppress(ConnectionError):
        while data := await backend.read():
            with suppress(ConnectionError):
                writer.write(data)
                await writer.drain()
        await flush(writer)


def framing(request: Request) -> list[tuple[str, str]]:
    """Return the header that frames the body of a request when it is forwarded; none without a body."""
    if not request.client.has_body:
        return []
    length = request.header("Content-Length")
    return [("Content-Length", length)] if length else [("Transfer-Encoding", "chunked")]


async def send_content(backend: BackendConnection, request: Request) -> None:
    """Send the body of a request as `framing` says."""
    if request.client.has_body:
        body = cast("SocketClient", request.client).content()
        await send_body(backend, body, is_chunked=not request.header("Content-Length"))


async def send_body(
    backend: BackendConnection, body: bytes | AsyncIterator[bytes] | None, *, is_chunked: bool
) -> None:
    """Send the body of a request to the backend, at once or as it is received."""
    if isinstance(body, bytes):
        backend.writer.write(body)
    elif body is not None:
        async for data in body:
            backend.writer.write(encode_chunk(data) if is_chunked else data)
            await backend.drain()
        if is_chunked:
            backend.writer.write(LAST_CHUNK)
    await backend.drain()


async def copy_body(request: Request, response: Response, body: AsyncIterator[bytes]) -> Response:
    """Write a body to the client as it is received; abort the connection if the body is incomplete."""
    return await copy_to(request, response, request.stream(response), body)


async def copy_to(
    request: Request, response: Response, sink: BodySink, body: AsyncIterator[bytes]
) -> Response:
    """Write a body to a sink as it is received."""
    try:
        await sink.begin()
        async for data in body:
            await sink.write([data])
        await sink.end()
    except ConnectionError:
        request.is_aborted = True
    finally:
        sink.release()
    return response


def response_headers(head: ResponseHead) -> CIMultiDict[str]:
    """Return a backend's headers, each as often as it was sent; the length once, or not at all beside chunks, as in Go."""
    headers = CIMultiDict(heads.pairs(head))
    lengths = headers.popall(hdrs.CONTENT_LENGTH, ())
    if lengths and (head.is_1_0 or hdrs.TRANSFER_ENCODING not in headers):
        headers[hdrs.CONTENT_LENGTH] = lengths[0].partition(",")[0].strip()
    return headers


def switch_error(protocol: str, connection: str) -> str:
    """Return the error of Go's ReverseProxy for a switch of protocols that was not requested, by the headers of the response."""
    if not protocol or "upgrade" not in {word.strip() for word in connection.lower().split(",")}:
        return "internal error: 101 switching protocols response with non-writable body"
    if not (protocol.isascii() and protocol.isprintable()):
        return f"backend tried to switch to invalid protocol {quote(protocol)}"
    return f'backend tried to switch protocol {quote(protocol)} when "" was requested'


def named_in_connection(request: Request) -> frozenset[str]:
    """Return the words of Connection: names of headers that belong to the connection alone, and its options."""
    connection = ",".join(request.headers.getall("Connection", ())).lower()
    return frozenset(word.strip() for word in connection.split(","))


def is_upgrade(request: Request) -> bool:
    return "upgrade" in named_in_connection(request) and "Upgrade" in request.headers
