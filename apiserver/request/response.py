"""A response, free of transport, and errors as responses: the only module with status codes."""

import html
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import orjson

from mockube.apimachinery import status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.status import ApiError
from mockube.apiserver.wire.frames import write
from mockube.apiserver.wire.negotiation import Endpoint, Format, OutputFormat, negotiate
from mockube.etcd.errors import KVError, TooLarge

if TYPE_CHECKING:
    from mockube.apiserver.request.request import Request

LOG = logging.getLogger(__name__)

JSON: Final = "application/json"
PIECE: Final = 256 * 1024
"""Bytes, or a little more, that are written at a time."""
NOT_CACHED: Final[Mapping[str, str]] = {"Cache-Control": "no-cache, private"}


class Response:
    """A status, headers, and a body in as many parts as it likes; a body that is streamed has none.

    `retry_after` is the Retry-After header in seconds, if it is not 0.
    """

    __slots__ = (
        "compressed",
        "content_type",
        "headers",
        "parts",
        "refusal",
        "retry_after",
        "size",
        "status",
        "warnings",
    )

    def __init__(
        self,
        status: int,
        parts: Sequence[bytes | memoryview] = (),
        content_type: str = JSON,
        *,
        headers: Mapping[str, str] = NOT_CACHED,
        warnings: Sequence[str] = (),
        retry_after: int = 0,
    ) -> None:
        self.status = status
        self.parts = parts
        self.content_type = content_type
        self.headers = headers
        self.warnings = warnings
        self.retry_after = retry_after
        self.compressed = False
        """While it is written, piece by piece, so that no compressed copy of all is in memory."""
        self.refusal = b""
        """The Status that the request was refused with, if it was, as JSON."""
        self.size = sum(map(len, parts))

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def is_large(self) -> bool:
        """Whether writing it may have to wait for the client."""
        return self.size > PIECE


def error_response(error: Exception, request: "Request", warnings: Sequence[str] = ()) -> Response:
    """Return an error as its Status object, in the format that the client takes.

    An unexpected one is logged, and described in general words only.
    """
    api_error = _to_api_error(error)
    seconds = api_error.details.retry_after_seconds if api_error.details else 0
    tree = api_error.status()
    text = orjson.dumps(tree)
    output = negotiate(request.header("Accept"), Endpoint.PLAIN) or _UNKNOWN
    is_json = output.format is Format.JSON
    pretty = output.pretty or request.wants_pretty
    body = json_body([text], pretty=pretty) if is_json else [write(tree, output.format)]
    response = Response(api_error.code, body, output.format.value, warnings=warnings, retry_after=seconds)
    response.refusal = text
    return response


def refusal(error: ApiError, request: "Request") -> Response:
    """Return the error of a filter, with a header that forbids browsers to guess its type."""
    response = error_response(error, request)
    response.headers = _NOT_SNIFFED
    return response


def internal_error(request: "Request", problem: str) -> Response:
    """Return a failure of a filter, as text that a browser shows as it is."""
    message = f"Internal Server Error: {quote(request.client.uri)}: {problem}"
    return text_response(html.escape(message, quote=False) + "\n", 500)


def json_body(parts: Sequence[bytes | memoryview], *, pretty: bool) -> Sequence[bytes | memoryview]:
    """Return JSON as Go's encoders write it: with a newline at its end, or indented and without one."""
    if pretty:
        return [orjson.dumps(orjson.loads(b"".join(parts)), option=orjson.OPT_INDENT_2)]
    return [*parts, b"\n"]


def _to_api_error(error: Exception) -> ApiError:
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


def too_many_requests() -> Response:
    """Return a refusal that may be retried after a second; in plain text, so that it costs nothing."""
    return text_response("Too many requests, please try again later.\n", 429, retry_after=1)


def text_response(text: str, code: int = 200, *, retry_after: int = 0) -> Response:
    return Response(code, [text.encode()], _TEXT, headers=_NOT_SNIFFED, retry_after=retry_after)


_UNKNOWN: Final = OutputFormat(format=Format.JSON, pretty=True)
"""Of an error, for a client that takes no format that there is."""
_TEXT: Final = "text/plain; charset=utf-8"
_NOT_SNIFFED: Final = {**NOT_CACHED, "X-Content-Type-Options": "nosniff"}
