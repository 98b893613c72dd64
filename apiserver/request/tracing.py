"""The spans of requests: of the request itself, of its filters, and of what the endpoint does.

The span of a request begins when its user is authenticated, because only the traces of privileged users are continued; its
start is that of the authentication. As upstream, the traces of others are new ones that are linked to theirs. A span ends
when the response is complete, which may be before it is written.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.metrics.requests import labels
from mockube.apiserver.registry.request_context import ListOptions, ListResult, ObjectResult, RequestContext
from mockube.apiserver.registry.watch_stream import ClientWatch, WatchEvent
from mockube.apiserver.tracing import spans
from mockube.apiserver.tracing.spans import FILTER_LATENCY, MAX_TEXT, OTEL_HTTP, Attributes, Span, SpanKind
from mockube.apiserver.tracing.tracer import Tracer, remote_baggage, remote_context
from mockube.apiserver.user import MASTERS
from mockube.apiserver.wire.negotiation import OutputFormat

from .endpoints import Endpoints
from .error_responses import error_response
from .filter import Filter, FilterConfig, Handle
from .request import ACCEPT, Request
from .response import Parts, Response
from .watch import WatchHandler

_MONITORING: Final = "system:monitoring"
_METHODS: Final = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
_SPANS: Final[Mapping[str, str]] = {
    "create": "Create",
    "delete": "Delete",
    "deletecollection": "Delete",
    "get": "Get",
    "list": "List",
    "patch": "Patch",
    "update": "Update",
}
"""The span of a request's handler, by verb."""
_WRITES: Final = frozenset({"Create", "Update"})
_DONE: Final[Mapping[str, str]] = {
    "delete": "Object deleted from database",
    "patch": "Object stored in database",
}
"""The event when the work of a request is done, by verb."""
_ENCODING: Final = "SerializeObject"


def traced_filters(
    filters: Sequence[Filter], names: Mapping[Filter, str], authentication: Filter
) -> Sequence[Filter]:
    """Return the filters with spans for those that have names, and the one that begins the span of a request."""
    traced: list[Filter] = []
    for filter_ in filters:
        traced.append(_with_span(filter_, names[filter_]) if filter_ in names else filter_)
        if filter_ is authentication:
            traced.append(with_request_span)
    return traced


def _with_span(filter_: Filter, name: str) -> Filter:
    """Return a filter whose time, with that of the later filters, is a span."""

    def with_filter_span(handle: Handle, config: FilterConfig) -> Handle:
        inner, tracer = filter_(handle, config), config.tracer
        assert tracer is not None

        async def handle_in_span(request: Request) -> Response:
            parent = spans.current()
            if parent is not None and not parent.trace.is_sampled:
                return await inner(request)
            with (
                tracer.root(name, scope=FILTER_LATENCY)
                if parent is None
                else parent.child(name, scope=FILTER_LATENCY)
            ):
                return await inner(request)

        return handle_in_span

    return with_filter_span


def with_request_span(handle: Handle, config: FilterConfig) -> Handle:
    """Begin the span of an authenticated request."""
    tracer = config.tracer
    assert tracer is not None

    async def filter_(request: Request) -> Response:
        with _request_span(tracer, request) as span:
            response = await handle(request)
            if span.trace.is_sampled:
                _describe_response(span, request, response)
        return response

    return filter_


def _request_span(tracer: Tracer, request: Request) -> Span:
    remote, baggage = remote_context(request.headers), remote_baggage(request.headers)
    authentication = spans.current()
    assert authentication is not None
    groups = request.user.groups
    is_privileged = MASTERS in groups or _MONITORING in groups
    name = _span_name(request)
    if is_privileged and remote is None:
        span = Span(
            authentication.trace, name, parent=authentication.context, kind=SpanKind.SERVER, scope=OTEL_HTTP
        )
        span.trace.baggage = baggage
    elif is_privileged:
        span = tracer.root(name, remote=remote, baggage=baggage, kind=SpanKind.SERVER, scope=OTEL_HTTP)
    else:
        span = tracer.root(name, link=remote, baggage=baggage, kind=SpanKind.SERVER, scope=OTEL_HTTP)
    if span.trace.is_sampled:
        span.started = authentication.started or span.started
        span.attributes = _request_attributes(request)
    return span


def _span_name(request: Request) -> str:
    info = request.info
    if not info.is_resource:
        return request.method
    parts = [request.path.split("/", 2)[1], info.group, info.version]
    if info.namespace:
        parts.append("namespaces/{:namespace}")
    parts.append(info.resource)
    if info.name:
        parts.append("{:name}")
    parts.append(info.subresource)
    return f"{request.method} /{'/'.join(filter(None, parts))}"[:MAX_TEXT]


def _request_attributes(request: Request) -> Attributes:
    method, client = request.method, request.client
    host, port = _split_host(request.header("Host"))
    attributes: Attributes = {
        "server.address": host,
        "http.request.method": method if method in _METHODS else "_OTHER",
        "url.scheme": "https" if client.is_secure else "http",
    }
    if port and port != (443 if client.is_secure else 80):
        attributes["server.port"] = port
    if method not in _METHODS:
        attributes["http.request.method_original"] = method
    if client.address:
        attributes["network.peer.address"] = client.address
        attributes["network.peer.port"] = client.port
    if user_agent := request.header("User-Agent"):
        attributes["user_agent.original"] = user_agent[:MAX_TEXT]
    if address := request.header("X-Forwarded-For").partition(",")[0] or client.address:
        attributes["client.address"] = address[:MAX_TEXT]
    attributes["url.path"] = request.path[:MAX_TEXT]
    attributes["network.protocol.version"] = f"{request.version[0]}.{request.version[1]}"
    attributes["http.target"] = client.uri[:MAX_TEXT]
    attributes["audit-id"] = request.audit_id[:MAX_TEXT]
    return attributes


def _split_host(text: str) -> tuple[str, int]:
    """Return the host and the port of the header Host; 0 without a port."""
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port:
        return text.strip("[]"), 0
    return host.strip("[]"), int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0


def _describe_response(span: Span, request: Request, response: Response) -> None:
    if request.context is not None and request.context.body.data:
        span.attributes["http.request.body.size"] = len(request.context.body.data)
    if response.size:
        span.attributes["http.response.body.size"] = response.size
    code = request.stream_status or response.status
    span.attributes["http.response.status_code"] = code
    if code >= 500:
        span.fail()


class TracedEndpoints(Endpoints):
    """Handles requests as `Endpoints`, with a span for the handler, and one for the encoding of its result."""

    async def _run_verb(self, request: Request, context: RequestContext, output: OutputFormat) -> Response:
        with spans.child(_SPANS[context.verb], lambda: _handler_attributes(request)) as span:
            if not isinstance(span, Span):
                return await super()._run_verb(request, context, output)
            _begin(span, context)
            try:
                return await self._respond(span, request, context, output)
            finally:
                if span.open_child is not None:
                    span.open_child.end()

    async def _respond(
        self, span: Span, request: Request, context: RequestContext, output: OutputFormat
    ) -> Response:
        """Return the response; the span has an open child for its encoding afterwards."""
        try:
            response = await super()._run_verb(request, context, output)
        except ApiError as error:
            if span.open_child is not None:
                span.open_child.end()
            if span.name in _WRITES:
                size = len(context.body.data)
                failure: dict[str, str | int] = {"len": size, "err": str(error)[:MAX_TEXT]}
                span.add_event("Write to database call failed", failure)
            span.open_child = _encoding(span, request, output)
            response = error_response(error, request, context.report.warnings)
        if span.open_child is not None:
            span.open_child.add_event("About to start writing response", {"size": response.size})
        return response

    async def _render(
        self,
        request: Request,
        context: RequestContext,
        answer: ObjectResult | ListResult,
        output: OutputFormat,
    ) -> Parts:
        span = spans.recording()
        if span is not None and (span.open_child is None or span.open_child.name != _ENCODING):
            _end_work(span, context, answer)
            span.open_child = _encoding(span, request, output)
        return await super()._render(request, context, answer, output)


class TracedWatchHandler(WatchHandler):
    """Serves watches; those that first send the existing objects have spans until these are sent."""

    async def serve(self, request: Request, context: RequestContext, output: OutputFormat) -> Response:
        if not (context.flag("sendInitialEvents") and context.flag("allowWatchBookmarks")):
            return await super().serve(request, context, output)
        with spans.child("WatchList", lambda: _handler_attributes(request)) as span:
            if isinstance(span, Span):
                span.open_child = span.child(
                    "WatchServer.HandleHTTP", _encoding_attributes(span, request, output)
                )
            return await super().serve(request, context, output)

    async def _open(self, context: RequestContext) -> tuple[ClientWatch, ListOptions]:
        span = spans.recording()
        if span is None:
            return await super()._open(context)
        attributes: Attributes = {
            "audit-id": span.attributes.get("audit-id", ""),
            "type": str(context.resource.group_resource),
        }
        with span.child("cacher.Watch", attributes):
            return await super()._open(context)

    def _bookmark(
        self, context: RequestContext, event: WatchEvent, output: OutputFormat, *, header: bool
    ) -> Tree:
        span = spans.recording()
        if event.ends_initial and span is not None and span.open_child is not None:
            span.open_child.add_event("Writing initial events done")
            span.open_child.end()
            span.end()
        return super()._bookmark(context, event, output, header=header)


def _begin(span: Span, context: RequestContext) -> None:
    """Add the events before a request is handled."""
    if context.verb == "get":
        span.add_event("About to Get from storage")
    elif context.verb == "list":
        attributes: Attributes = {
            "audit-id": span.attributes["audit-id"],
            "type": str(context.resource.group_resource),
        }
        span.open_child = span.child("cacher.GetList", attributes)
    else:
        span.add_event("limitedReadBody succeeded", {"len": len(context.body.data)})


def _end_work(span: Span, context: RequestContext, answer: ObjectResult | ListResult) -> None:
    """Add the events between the work of a request and the encoding of its result."""
    if span.open_child is not None:
        if isinstance(answer, ListResult):
            span.open_child.add_event("Filtered items", {"count": len(answer.items)})
        span.open_child.end()
    if span.name in _WRITES:
        span.add_event("Write to database call succeeded", {"len": len(context.body.data)})
    elif context.verb in _DONE:
        span.add_event(_DONE[context.verb])
    if span.name != "List":
        span.add_event("About to write a response")


def _encoding(span: Span, request: Request, output: OutputFormat) -> Span:
    return span.child(_ENCODING, _encoding_attributes(span, request, output))


def _encoding_attributes(span: Span, request: Request, output: OutputFormat) -> Attributes:
    return {
        "audit-id": span.attributes["audit-id"],
        "method": request.method,
        "url": span.attributes["url"],
        "protocol": span.attributes["protocol"],
        "mediaType": output.format.value,
    }


def _handler_attributes(request: Request) -> Attributes:
    info = request.info
    label = labels(info, request.resource, dry_run=False, applies=request.applies)
    return {
        "accept": request.header(ACCEPT)[:MAX_TEXT],
        "audit-id": request.audit_id[:MAX_TEXT],
        "client": request.client.address,
        "api-group": info.group[:MAX_TEXT],
        "api-version": info.version[:MAX_TEXT],
        "name": info.name[:MAX_TEXT],
        "subresource": info.subresource[:MAX_TEXT],
        "namespace": info.namespace[:MAX_TEXT],
        "protocol": f"HTTP/{request.version[0]}.{request.version[1]}",
        "resource": info.resource[:MAX_TEXT],
        "scope": label.scope,
        "url": request.path[:MAX_TEXT],
        "user-agent": request.header("User-Agent")[:MAX_TEXT],
        "verb": label.verb,
    }
