"""The filters that limit requests: their number in flight, and their time."""

import asyncio
from collections.abc import Awaitable

from mockube.apimachinery import status
from mockube.apimachinery.status import ApiError

from .filter import FilterConfig, Handle
from .limits import ends_with_client, has_no_deadline, is_long_running, request_timeout
from .request import Request
from .response import Response, too_many_requests


def with_max_in_flight(handle: Handle, config: FilterConfig) -> Handle:
    """Refuse a request when the maximum of requests is in flight."""
    in_flight = config.in_flight

    def filter_(request: Request) -> Awaitable[Response]:
        info = request.info
        if not is_long_running(info):
            if not in_flight.enter(info.verb, request.user, info.group):
                request.is_terminated = True
                return _refuse()
            request.is_in_flight = True
        return handle(request)

    return filter_


def with_written_response(handle: Handle, config: FilterConfig) -> Handle:
    """Write a large response while its request is in flight, because the client may read slowly or not at all."""
    in_flight = config.in_flight

    async def filter_(request: Request) -> Response:
        try:
            response = await handle(request)
            if response.is_large:
                await _write(response, request, config)
            return response
        finally:
            if request.is_in_flight:
                in_flight.leave(request.info.verb)

    return filter_


def with_deadline(handle: Handle, config: FilterConfig) -> Handle:
    """Cancel a request at its deadline, if it has one, or when its client disconnects, if its work is then in vain."""
    deadlines, maximum = config.deadlines, config.seconds

    def filter_(request: Request) -> Awaitable[Response]:
        if not request.is_in_flight or has_no_deadline(request.info):
            return _with_client(handle, request) if ends_with_client(request.info) else handle(request)
        seconds = request_timeout(request.query.get("timeout", ()), maximum)
        return deadlines.within(seconds, handle(request), request)

    return filter_


async def _with_client(handle: Handle, request: Request) -> Response:
    """Handle a request, and cancel it when its client disconnects."""
    task = asyncio.current_task()
    assert task is not None
    before, is_lost = task.cancelling(), False

    def cancel() -> None:
        nonlocal is_lost
        is_lost = True
        task.cancel()

    request.client.on_lost(cancel)
    try:
        return await handle(request)
    except asyncio.CancelledError:
        if not is_lost or task.uncancel() > before:
            raise
        raise status.timeout("the client has disconnected", 0) from None
    finally:
        request.client.on_lost(None)


async def _refuse() -> Response:
    return too_many_requests()


async def _write(response: Response, request: Request, config: FilterConfig) -> None:
    client = request.client
    try:
        await config.deadlines.within(config.seconds, client.write(response))
    except ApiError:  # too late for an error response
        client.abort()
        request.is_aborted = True
    except ConnectionError:
        request.is_aborted = client.is_cut
