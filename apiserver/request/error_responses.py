"""Errors as responses: the only module with status codes of errors."""

import html
import logging
from collections.abc import Sequence
from typing import Final

import orjson

from mockube.apimachinery import status
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.status import ApiError
from mockube.apiserver.wire.frames import encode_object
from mockube.apiserver.wire.negotiation import EndpointType, MediaType, OutputFormat, negotiate
from mockube.etcd.errors import KVError, TooLarge

from .request import Request
from .response import NOT_SNIFFED, Response, json_body, text_response

LOG = logging.getLogger(__name__)

_NOT_ACCEPTABLE: Final = OutputFormat(format=MediaType.JSON, pretty=True)
"""The format of an error for a client that accepts no known format."""


def error_response(error: Exception, request: Request, warnings: Sequence[str] = ()) -> Response:
    """Return an error as a Status object, in the format that the client accepts.

    An unexpected error is logged, and its response has no details.
    """
    api_error = _to_api_error(error)
    seconds = api_error.details.retry_after_seconds if api_error.details else 0
    tree = api_error.status()
    text = orjson.dumps(tree)
    accepted = negotiate(request.header("Accept"), EndpointType.PLAIN)
    output = accepted or _NOT_ACCEPTABLE
    is_json = output.format is MediaType.JSON
    pretty = output.pretty or request.wants_pretty
    body = json_body([text], pretty=pretty) if is_json else [encode_object(tree, output.format)]
    response = Response(api_error.code, body, output.format.value, warnings=warnings, retry_after=seconds)
    response.status_object = text if accepted else b""  # upstream does not log what no client reads
    return response


def refusal(error: ApiError, request: Request) -> Response:
    """Return the error of a filter, with a header that forbids browsers to guess the content type."""
    response = error_response(error, request)
    response.headers = NOT_SNIFFED
    return response


def internal_error(request: Request, problem: str) -> Response:
    """Return a failure of a filter, as text that is safe to display."""
    message = f"Internal Server Error: {quote(request.client.uri)}: {problem}"
    return text_response(html.escape(message, quote=False) + "\n", 500)


def _to_api_error(error: Exception) -> ApiError:
    if isinstance(error, ApiError):
        return error
    if isinstance(error, TooLarge):
        return status.request_entity_too_large(str(error))
    if isinstance(error, KVError):
        LOG.warning("the store failed: %s", error)
        if error.outcome_unknown:
            return status.timeout(f"the store did not answer in time: {error.reason}", 1)
        problem = f"the store cannot be written: {error.reason}" if error.path else error.reason
        return ApiError(problem)
    LOG.error("unexpected error", exc_info=error)
    return status.internal_error("this is a fault of the server, see its log")
