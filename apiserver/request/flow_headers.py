"""The filter that adds the flow schema and the priority level of a request, as their uids, to the headers of its response."""

from collections.abc import Awaitable

from .filter import FilterConfig, Handle
from .limits import is_long_running
from .request import Request
from .response import Response


def with_flow_headers(handle: Handle, config: FilterConfig) -> Handle:
    """Add the uids of the flow schema and the priority level of a request to its response."""
    flows = config.flows
    if flows is None:
        return handle

    def filter_(request: Request) -> Awaitable[Response]:
        info = request.info
        if info.verb == "watch" or not is_long_running(info):
            flow = flows.of(request.user, info)
            request.client.head += flow.head
            flow.dispatched.value += 1
        return handle(request)

    return filter_
