"""The `Status` of an injected error: kube-apiserver's for its code, to the letter where there is one text."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery import status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, error_response
from mockube.apiserver.request_info import RequestInfo

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
TOO_OLD: Final = "The resourceVersion for the provided watch is too old."

Refuse: TypeAlias = Callable[[RequestInfo, int], ApiError]
"""The status of a request, with the seconds after which to retry."""


def refusal(
    request: Request, code: int, *, reason: str = "", message: str = "", retry_after: int = 1
) -> Response:
    """Return the response. A watch that is too old gets the error as its first event, as from every server."""
    info = request.info
    error = _REFUSALS.get(code, _generic(code))(info, retry_after)
    answer = error_response(error, request)
    body = error.status()
    if reason or message:
        body |= {"reason": reason or error.reason, "message": message or error.message}
        answer = Response(code, [orjson.dumps(body), b"\n"], retry_after=answer.retry_after)
    if info.verb == "watch" and code == status.Expired.default_code:
        return Response(200, [b'{"type":"ERROR","object":', orjson.dumps(body), b"}\n"])
    return answer


def _of(info: RequestInfo) -> GroupResource:
    return GroupResource(info.group, info.resource)


def _conflict(info: RequestInfo, _: int) -> ApiError:
    if info.verb == "create":
        return status.already_exists(_of(info), info.name)
    return status.conflict(_of(info), info.name, MODIFIED)


_REFUSALS: Final[Mapping[int, Refuse]] = {
    403: lambda info, _: status.forbidden(_of(info), info.name, "a fault was injected"),
    404: lambda info, _: status.not_found(_of(info), info.name),
    409: _conflict,
    410: lambda *_: status.Expired(TOO_OLD),
    429: lambda _, seconds: status.too_many_requests("Too many requests, please try again later.", seconds),
    500: lambda *_: status.internal_error("a fault was injected"),
    504: lambda *_: status.timeout("request did not complete within the allotted timeout", 0),
}


def _generic(code: int) -> Refuse:
    def refuse(info: RequestInfo, _: int) -> Any:
        return status.generic(
            code, verb=info.verb, resource=_of(info), name=info.name, server_message="a fault was injected"
        )

    return refuse
