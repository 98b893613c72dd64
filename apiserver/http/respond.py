"""Answers and errors as HTTP responses: the one place that knows status codes and headers."""

import logging
import zlib
from collections.abc import Sequence

import orjson
from aiohttp import web
from multidict import CIMultiDict

from apimachinery import status
from apimachinery.status import ApiError
from etcd.errors import KVError

LOG = logging.getLogger(__name__)

COMPRESS_FROM = 128 * 1024
"""Bytes; a smaller answer is sent as it is."""
JSON = "application/json"


def response(
    request: web.BaseRequest,
    body: bytes,
    *,
    code: int = 200,
    content_type: str = JSON,
    warnings: Sequence[str] = (),
) -> web.Response:
    headers = _headers(content_type, warnings)
    if len(body) >= COMPRESS_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
        body = _gzip(body)
    return web.Response(body=body, status=code, headers=headers)


def _headers(content_type: str, warnings: Sequence[str]) -> CIMultiDict[str]:
    headers = CIMultiDict({"Content-Type": content_type, "Cache-Control": "no-cache, private"})
    for warning in warnings:
        headers.add("Warning", f"299 - {orjson.dumps(warning).decode()}")
    return headers


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return compressor.compress(body) + compressor.flush()


def error_response(error: Exception, warnings: Sequence[str] = ()) -> web.Response:
    """An error as its Status object; one that nobody expected is logged, and told of in general words only."""
    known = _known(error)
    headers = _headers(JSON, warnings)
    seconds = known.details.retry_after_seconds if known.details else 0
    if seconds:
        headers["Retry-After"] = str(seconds)
    return web.Response(body=orjson.dumps(known.status()), status=known.code, headers=headers)


def _known(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, KVError):
        LOG.warning("the store failed: %s", error)
        if error.outcome_unknown:
            return status.timeout(f"the store did not answer in time: {error}", 1)
        return ApiError(str(error))
    LOG.error("unexpected error", exc_info=error)
    return status.internal_error("this is a fault of the server, see its log")


def too_many_requests() -> web.Response:
    """To somebody who may come again in a second; in plain text, so that it costs nothing."""
    answer = text_response("Too many requests, please try again later.\n", 429)
    answer.headers["Retry-After"] = "1"
    return answer


def text_response(text: str, code: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(text=text, status=code, content_type="text/plain", headers=headers)
