"""The filter of requests that are for another server, or from a page of another site."""

from collections.abc import Awaitable

from .filter import FilterConfig, Handle
from .request import Request
from .response import Response


def with_allowed_hosts(handle: Handle, config: FilterConfig) -> Handle:
    """Refuse a request for another server, or from a page of another site."""
    check = config.hosts.check

    def filter_(request: Request) -> Awaitable[Response]:
        check(request)
        return handle(request)

    return filter_
