"""The error responses of injected faults, with kube-apiserver's status and message for each code."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery import status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apiserver.request.error_responses import error_response
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import RequestInfo

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
TOO_OLD: Final = "The resourceVersion for the provided watch is too old."

ErrorFactory: TypeAlias = Callable[[RequestInfo, int], ApiError]
"""Returns the error of a request; the second argument is the value of Retry-After in seconds."""


def injected_error(
    request: Request, code: int, *, reason: str = "", message: str = "", retry_after: int = 1
) -> Response:
    """Return the error response of a request. A watch that is too old gets the error as its first event, as upstream."""
    info = request.info
    error = _ERRORS.get(code, _generic_error(code))(info, retry_after)
    response = error_response(error, request)
    body = error.status()
    if reason or message:
        body |= {"reason": reason or error.reason, "message": message or error.message}
        response = Response(code, [orjson.dumps(body), b"\n"], retry_after=response.retry_after)
    if info.verb == "watch" and code == status.Expired.default_code:
        return Response(200, [b'{"type":"ERROR","object":', orjson.dumps(body), b"}\n"])
    return response


def _resource_of(info: RequestInfo) -> GroupResource:
    return GroupResource(info.group, info.resource)


def _conflict(info: RequestInfo, _: int) -> ApiError:
    if info.verb == "create":
        return status.already_exists(_resource_of(info), info.name)
    return status.conflict(_resource_of(info), info.name, MODIFIED)


_ERRORS: Final[Mapping[int, ErrorFactory]] = {
    401: lambda *_: status.Unauthorized("Unauthorized"),
    403: lambda info, _: status.forbidden(_resource_of(info), info.name, "a fault was injected"),
    404: lambda info, _: status.not_found(_resource_of(info), info.name),
    409: _conflict,
    410: lambda *_: status.Expired(TOO_OLD),
    429: lambda _, seconds: status.too_many_requests("Too many requests, please try again later.", seconds),
    500: lambda *_: status.internal_error("a fault was injected"),
    504: lambda *_: status.timeout("request did not complete within the allotted timeout", 0),
}


def _generic_error(code: int) -> ErrorFactory:
    def make_error(info: RequestInfo, _: int) -> Any:
        return status.generic(
            code,
            verb=info.verb,
            resource=_resource_of(info),
            name=info.name,
            server_message="a fault was injected",
        )

    return make_error
