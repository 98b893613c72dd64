"""Read the body of a request, and answer the header Expect as Go does: 100 when the body is read, else 417."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11, RawRequestMessage

from mockube.apimachinery import status
from mockube.apiserver.request.response import Response

if TYPE_CHECKING:
    from aiohttp.streams import StreamReader


async def read(
    message: RawRequestMessage, payload: "StreamReader", send: Callable[[bytes], None], limit: int
) -> bytes:
    """Return the body of a message, unless it is too long; `send` writes to the client."""
    if payload.is_eof():
        return _take_received(payload, limit)
    if int(message.headers.get(hdrs.CONTENT_LENGTH, 0)) > limit:
        raise _too_large(limit)
    data = bytearray()
    try:
        if waits_for_continue(message, payload):
            send(CONTINUE)
        async for chunk in payload.iter_any():
            data += chunk
            if len(data) > limit:
                raise _too_large(limit)
    except (web.RequestPayloadError, ConnectionError) as error:
        raise _ends_too_early(error) from error
    return bytes(data)


def _take_received(payload: "StreamReader", limit: int) -> bytes:
    """A body that was read completely with the head, as small ones are."""
    try:
        data = payload.read_nowait()
    except (web.RequestPayloadError, ConnectionError) as error:
        raise _ends_too_early(error) from error
    if len(data) > limit:
        raise _too_large(limit)
    return data


def _too_large(limit: int) -> status.ApiError:
    return status.request_entity_too_large(f"limit is {limit}")


def _ends_too_early(error: Exception) -> status.BadRequest:
    return status.BadRequest(f"the body ends too early: {error}")


CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


def is_continue(expected: str) -> bool:
    return any(token.strip().lower() == "100-continue" for token in expected.split(","))


def waits_for_continue(message: RawRequestMessage, payload: "StreamReader") -> bool:
    """Whether a client sends its body when it is allowed to."""
    expected = message.headers.get(hdrs.EXPECT)
    if not expected or message.version < HttpVersion11 or not is_continue(expected):
        return False
    return not payload.total_bytes


def expectation_failed() -> Response:
    return Response(417, (), "text/plain; charset=utf-8")
