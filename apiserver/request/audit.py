"""The filters that give each request an audit id, and record it in the metrics and in the audit log."""

from collections.abc import Awaitable
from typing import Final

from .error_responses import error_response
from .filter import FilterConfig, Handle
from .request import Request
from .response import Response

AUDIT_ID: Final = "Audit-Id"


def with_audit_id(handle: Handle, config: FilterConfig) -> Handle:
    """Set the request's id in its response: the one that the client sent, or a generated one."""
    ids = config.audit_ids

    def filter_(request: Request) -> Awaitable[Response]:
        request.audit_id = audit_id = request.header(AUDIT_ID) or ids.next()
        request.client.head += f"{AUDIT_ID}: {audit_id}\r\n"
        return handle(request)

    return filter_


def with_audit(handle: Handle, config: FilterConfig) -> Handle:
    """Record the beginning and the end of an authenticated request."""
    observer = config.observer

    async def filter_(request: Request) -> Response:
        record = observer.begin(request)
        response: Response | None = None
        try:
            response = await handle(request)
        except Exception as error:  # noqa: BLE001 - it is recorded as its response
            response = error_response(error, request)
        finally:
            observer.end(record, request, response)
        return response

    return filter_
