"""The chain of filters that handles every request, independent of the transport."""

from collections.abc import Awaitable, Sequence
from typing import Final

from mockube.apiserver.event_loop import LARGE, Worker
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.request_info import parse, parse_query

from .access import with_authentication, with_authorization, with_impersonation
from .allowed_hosts import with_allowed_hosts
from .audit import with_audit, with_audit_id
from .endpoints import Endpoints, Routes
from .error_responses import error_response, internal_error
from .filter import Filter, FilterConfig, Handle
from .flow_headers import with_flow_headers
from .hooks import HookPoint, proceeding_once
from .in_flight import with_deadline, with_max_in_flight, with_written_response
from .past import MOMENT_PATH, PAST_PREFIX, split_moment
from .rendering import Renderer
from .request import Request
from .response import Response
from .ui import with_ui
from .watch import WatchHandler

_NO: Final = ("0", "false")


def with_panic_recovery(handle: Handle, _config: FilterConfig | None = None) -> Handle:
    """Convert an error to its response; an unexpected error is also logged."""

    async def filter_(request: Request) -> Response:
        try:
            return await handle(request)
        except Exception as error:  # noqa: BLE001 - the outermost filter: it becomes a Status, and a line in the log
            return error_response(error, request)

    return filter_


def with_hooks_before_authentication(handle: Handle, config: FilterConfig) -> Handle:
    return _with_hooks(handle, config.hooks.before_authentication)


def with_hooks_before_endpoint(handle: Handle, config: FilterConfig) -> Handle:
    return _with_hooks(handle, config.hooks.before_endpoint)


def _with_hooks(handle: Handle, point: HookPoint) -> Handle:
    """Call the middleware of a point, if it has some now, around the later filters, whose errors it gets as responses."""
    proceed = with_panic_recovery(handle)

    def filter_(request: Request) -> Awaitable[Response]:
        middleware = point.middleware
        if middleware is None or request.moment:  # a fault of the present does not change the past
            return handle(request)
        return middleware(request, proceeding_once(proceed))

    return filter_


def with_request_info(handle: Handle, config: FilterConfig) -> Handle:
    """Parse the URL for all later filters, a long query in a thread."""
    resources, worker = config.resources, Worker()

    def filter_(request: Request) -> Awaitable[Response]:
        if request.query_string:
            if len(request.query_string) >= LARGE:
                return with_long_query(request)
            request.query = parse_query(request.query_string)
        return with_info(request)

    async def with_long_query(request: Request) -> Response:
        request.query = await worker.run(len(request.query_string), parse_query, request.query_string)
        return await with_info(request)

    def with_info(request: Request) -> Awaitable[Response]:
        watch = request.query.get("watch", _NO)[0].lower() not in _NO
        if request.path.startswith(PAST_PREFIX):
            request.moment, request.path = split_moment(request.path)
        request.info = info = parse(request.method, request.path or MOMENT_PATH, watch=watch)
        if info.is_resource:
            if not request.moment:  # the resources of a moment are those of its definitions
                request.resource = resources(info.group, info.version, info.resource)
            if not info.is_complete:
                return _incomplete(request)
        return handle(request)

    return filter_


async def _incomplete(request: Request) -> Response:
    problem = f"unable to determine kind and namespace from url, {request.uri}"
    return internal_error(request, f"failed to create RequestInfo: {problem}")


FILTERS: Final[Sequence[Filter]] = (
    with_audit_id,
    with_panic_recovery,
    with_allowed_hosts,
    with_ui,
    with_request_info,
    with_hooks_before_authentication,
    with_authentication,
    with_audit,
    with_written_response,
    with_impersonation,
    with_hooks_before_endpoint,
    with_flow_headers,
    with_max_in_flight,
    with_deadline,
    with_authorization,
)
"""The outermost first, in upstream's order; a response passes them in reverse.

The page and the hooks are ours. Only the deadline is elsewhere: upstream sets it before authentication. Here the audit log contains the response of a
request that was too late, and a request that waits for authentication by a webhook has the webhook's timeout.
"""


def build_handler_chain(
    endpoint: Handle, config: FilterConfig, filters: Sequence[Filter] = FILTERS
) -> Handle:
    """Return a handler that calls all filters, then the endpoint. It is built once."""
    handle = endpoint
    for filter_ in reversed(filters):
        handle = filter_(handle, config)
    return handle


class Handler:
    """Handles the requests of all transports."""

    def __init__(self, registry: Registry, routes: Routes, renderer: Renderer, config: FilterConfig) -> None:
        self.pages = routes.pages
        self.config = config
        self.in_flight = config.in_flight
        watch_handler, endpoints, filters = _parts(config)
        self.watch_handler = watch_handler(
            registry,
            renderer,
            config,
            registries=routes.registries,
            own_watches=routes.own_watches,
        )
        self.endpoints = endpoints(registry, routes, renderer, self.watch_handler, config)
        self.handle: Handle = build_handler_chain(self.endpoints.serve, config, filters)


def _parts(config: FilterConfig) -> tuple[type[WatchHandler], type[Endpoints], Sequence[Filter]]:
    """Return the classes of the endpoints, and the filters: without traces, they know nothing of these."""
    if config.tracer is None:
        return WatchHandler, Endpoints, FILTERS
    from .tracing import TracedEndpoints, TracedWatchHandler, traced_filters  # noqa: PLC0415 - only with a flag

    names: dict[Filter, str] = {
        with_authentication: "authentication",
        with_audit: "audit",
        with_impersonation: "constrainedimpersonation"
        if config.constrained_impersonation
        else "impersonation",
        with_authorization: "authorization",
    }
    if config.flows is not None:
        names[with_flow_headers] = "priorityandfairness"
    return TracedWatchHandler, TracedEndpoints, traced_filters(FILTERS, names, with_authentication)
