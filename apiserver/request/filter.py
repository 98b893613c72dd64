"""The types of filters, and their configuration."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from mockube.apiserver.authn.authenticators import Authentication
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.kinds.api_resource import Resource

from .hooks import HookPoints
from .request import Request
from .response import Response

if TYPE_CHECKING:
    from mockube.apiserver.authn.request_headers import RequestHeaders
    from mockube.apiserver.metrics.access import AccessMetrics
    from mockube.apiserver.metrics.watches import WatchMetrics
    from mockube.apiserver.tracing.tracer import Tracer

    from .flows import Flows
    from .hosts import Hosts
    from .limits import Deadlines, InFlight
    from .request_observer import AuditIds, RequestObserver

Handle: TypeAlias = Callable[[Request], Awaitable[Response]]
"""Handles a request: a filter with all later ones, or the endpoint."""


class FilterConfig(Struct, frozen=True, kw_only=True):
    """The configuration that the filters of one server share."""

    authentication: Authentication
    authorization: Authorization
    resources: Callable[[str, str, str], Resource | None]
    """Returns the resource of a group, version and name."""
    access: "AccessMetrics"
    watches: "WatchMetrics"
    hosts: "Hosts"
    observer: "RequestObserver"
    audit_ids: "AuditIds"
    flows: "Flows | None"
    in_flight: "InFlight"
    deadlines: "Deadlines"
    seconds: float
    """How long a request may take."""
    watch_seconds: int
    """The minimum duration of a watch without timeoutSeconds."""
    hooks: HookPoints = field(default_factory=HookPoints)
    constrained_impersonation: bool = True
    request_headers: "RequestHeaders | None" = None
    """The headers in which front proxies send users."""
    serve_ui: Handle | None = None
    """Serves the page of `mockube ui`; None if the server has none."""
    tracer: "Tracer | None" = None
    """None if requests are not traced."""


Filter: TypeAlias = Callable[[Handle, FilterConfig], Handle]
"""Returns a handler that does its part and calls the given one. It is called once, when the server is created."""
