"""Read the body of a request, and answer the header Expect as Go does: 100 when the body is read, else 417."""

from typing import Final

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from mockube.apimachinery import status
from mockube.apiserver.http.response import Answer
from mockube.apiserver.request.response import Response


async def read(request: web.BaseRequest, limit: int) -> bytes:
    """The body, as long as it is not too long."""
    if request.content.is_eof():
        return _received(request, limit)
    if (request.content_length or 0) > limit:
        raise _too_large(limit)
    data = bytearray()
    try:
        await send_continue(request)
        async for chunk in request.content.iter_any():
            data += chunk
            if len(data) > limit:
                raise _too_large(limit)
    except (web.RequestPayloadError, ConnectionError) as error:
        raise _ends_too_early(error) from error
    return bytes(data)


def _received(request: web.BaseRequest, limit: int) -> bytes:
    """The body that came whole before it was asked for, as small ones do."""
    try:
        data = request.content.read_nowait()
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


async def send_continue(request: web.BaseRequest) -> None:
    """Let a client send its body that waits to be allowed to."""
    expected = request.headers.get(hdrs.EXPECT)
    if not expected or request.version < HttpVersion11 or not is_continue(expected):
        return
    if request.content.is_eof() or request.content.total_bytes:
        return  # it did not wait
    await request.writer.write(CONTINUE)
    request.writer.output_size = 0  # the answer has not begun


def expectation_failed() -> Answer:
    answer = Answer(Response(417, (), "text/plain; charset=utf-8"))
    answer.force_close()
    return answer
