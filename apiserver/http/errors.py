"""Answers and errors as HTTP responses: the one place that knows status codes and headers."""

import logging
from collections.abc import Sequence
from http import HTTPStatus

import orjson
from aiohttp import hdrs, web

from mockube.apimachinery import status
from mockube.apimachinery.status import ApiError
from mockube.apiserver.http.request import header
from mockube.apiserver.http.response import Answer
from mockube.apiserver.request import compression as compress
from mockube.apiserver.request.warnings import warning_headers
from mockube.etcd.errors import KVError, TooLarge

LOG = logging.getLogger(__name__)

JSON = "application/json"


def response(
    request: web.BaseRequest,
    body: Sequence[bytes | memoryview],
    *,
    code: int = 200,
    content_type: str = JSON,
    warnings: Sequence[str] = (),
) -> Answer:
    is_large = sum(map(len, body)) > compress.FROM
    compressed = is_large and compress.is_understood(header(request, hdrs.ACCEPT_ENCODING))
    return Answer(code, content_type, body, warning_headers(warnings), compressed=compressed)


def error_response(error: Exception, warnings: Sequence[str] = ()) -> Answer:
    """An error as its Status object; one that nobody expected is logged, and told of in general words only."""
    known = _known(error)
    seconds = known.details.retry_after_seconds if known.details else 0
    body = [orjson.dumps(known.status())]
    return Answer(known.code, JSON, body, warning_headers(warnings), retry_after=seconds)


def refusal(answer: web.StreamResponse) -> bytes:
    """The Status that a request was refused with, if it was."""
    return answer.body if answer.status >= HTTPStatus.BAD_REQUEST and isinstance(answer, Answer) else b""


def _known(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, TooLarge):
        return status.request_entity_too_large(str(error))
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
