"""The endpoint behind the filters: runs the verb of a resource, or returns a page."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, Details, MethodNotSupported, NotAcceptable
from mockube.apiserver.kinds.api_resource import Resource, Subresource
from mockube.apiserver.memory_limit import MemoryLimit, Reservation
from mockube.apiserver.metrics.requests import RESOURCE_ROUTE
from mockube.apiserver.outgoing import PREFERRED_ADDRESSES
from mockube.apiserver.registry.convert import to_client_version
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.delete import delete, delete_collection
from mockube.apiserver.registry.patch import patch
from mockube.apiserver.registry.read import get, list_objects
from mockube.apiserver.registry.registry import OwnVerbs, Registry, Verb
from mockube.apiserver.registry.request_context import (
    NO_BODY,
    Body,
    ListResult,
    ObjectResult,
    RequestContext,
    RequestReport,
)
from mockube.apiserver.registry.subresources import binding, eviction, scale
from mockube.apiserver.registry.update import update
from mockube.apiserver.registry.watch_stream import OpenWatch
from mockube.apiserver.request_info import CONNECT_SUBRESOURCES
from mockube.apiserver.wire.negotiation import EndpointType, MediaType, OutputFormat, View, negotiate
from mockube.component_base.loop import yield_to_loop

from .connect import ConnectHandler, Proxy
from .error_responses import error_response
from .filter import FilterConfig
from .limits import is_long_running
from .openapi import OPENAPI_DOCUMENT
from .page import Page, Pages
from .past import Present, no_past
from .rendering import Renderer
from .request import ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, Request
from .response import MIN_COMPRESSED_SIZE, Parts, Response, json_body, text_response
from .routes import (
    NOT_ACCEPTABLE,
    NoSuchPath,
    check_is_served,
    check_route,
    no_such_resource,
    warnings_of_refused,
)
from .watch import WatchHandler

MAX_BODY: Final = 3 * 1024 * 1024
BODIES_BYTES: Final = 128 << 20
"""The limit of the bytes of all large bodies that are received or handled at the same time."""
SMALL_BODY: Final = 64 * 1024
"""Bytes of a body below which it does not count: a connection reads as many ahead."""


RESOURCE_VERBS: Mapping[str, Verb] = {
    "create": create,
    "delete": delete,
    "deletecollection": delete_collection,
    "get": get,
    "list": list_objects,
    "patch": patch,
    "update": update,
}
OBJECT_SUBRESOURCE_VERBS: Mapping[str, Verb] = {"get": get, "patch": patch, "update": update}
"""The verbs of a subresource that reads and writes a part of the object itself."""
SUBRESOURCE_VERBS: Mapping[str, Mapping[str, Verb]] = {
    "status": OBJECT_SUBRESOURCE_VERBS,
    "ephemeralcontainers": OBJECT_SUBRESOURCE_VERBS,
    "resize": OBJECT_SUBRESOURCE_VERBS,
    "approval": OBJECT_SUBRESOURCE_VERBS,
    "finalize": OBJECT_SUBRESOURCE_VERBS,
    "binding": {"create": binding.create},
    "eviction": {"create": eviction.create},
    "scale": {"get": scale.get, "patch": scale.patch, "update": scale.update},
}
BINDINGS: OwnVerbs = {(GroupResource("", "bindings"), ""): {"create": binding.create}}


class Routes(Struct, frozen=True, kw_only=True):
    """The pages and verbs that can be requested."""

    own_verbs: OwnVerbs
    pages: Pages
    registries: Mapping[str, Registry] = field(default_factory=dict)
    """By API group, the registry of resources that are not in the store of the cluster."""
    own_watches: Mapping[GroupResource, OpenWatch] = field(default_factory=dict)
    """What opens the watches of resources that no store has."""
    proxy: Proxy
    """Forwards requests to kubelets and pods."""
    remote: Callable[[str], Page | None] = lambda _path: None
    """Returns the page that forwards requests of a path to another API server; None if this server serves it."""
    built_in: Collection[str] = ()
    """The names of the groups that are not of custom resources."""
    groups: Pages = field(default_factory=dict)
    """By API group, the page of resources without rows."""
    past: Callable[[Request, Present], Awaitable[Response]] = no_past
    """Serves the requests for moments of the past."""
    websockets_need_create: bool = True
    """Whether a WebSocket of exec, attach or portforward needs the verb create; minors before 1.35 do not require it."""
    kubelet_addresses: Sequence[str] = PREFERRED_ADDRESSES
    """The types of node addresses, the preferred one first."""
    service_family: str = "IPv4"
    """The IP family of Services that do not choose one."""


class Endpoints:
    """Handles requests that have passed the filters."""

    def __init__(
        self,
        registry: Registry,
        routes: Routes,
        renderer: Renderer,
        watch_handler: WatchHandler,
        config: FilterConfig,
    ) -> None:
        self._registry = registry
        self._registries = routes.registries
        self._routes = routes
        self._renderer = renderer
        self._watch_handler = watch_handler
        self.bodies = MemoryLimit(BODIES_BYTES, minimum=SMALL_BODY)
        self._connect_handler = ConnectHandler(
            registry,
            routes.proxy,
            routes.kubelet_addresses,
            family=routes.service_family,
            websockets_need_create=routes.websockets_need_create,
        )
        self._deadlines = config.deadlines
        self._seconds = config.seconds

    async def serve(self, request: Request) -> Response:
        # Requests that arrived together pass each stage together: docs/decisions/0022-stages-of-requests.md
        await yield_to_loop()
        resource = request.resource
        if resource is None:
            if request.moment:
                return await self._routes.past(request, self)
            page = self._routes.remote(request.path)
            return await (self._page(request) if page is None else page(request))
        try:
            check_is_served(resource, request)
        except ApiError as error:
            return error_response(error, request, warnings_of_refused(resource, error))
        except NoSuchPath:
            return _page_not_found()
        check_route(resource, request)
        request.route = RESOURCE_ROUTE
        if request.info.subresource in CONNECT_SUBRESOURCES:
            return await self._connect_handler.serve(request, _context(request, resource, NO_BODY))
        if not request.client.has_body:
            return await self._handle(request, resource, _no_body(request))
        size = _announced_size(request)
        if size < SMALL_BODY:
            return await self._handle(request, resource, await self._body(request))
        # An impersonator has one share, whatever the names.
        reservation = Reservation(self.bodies, request.authenticated.name)
        try:
            body = await self._body(request, partial(reservation.grow, size))
            return await self._handle(request, resource, body, reservation)
        finally:
            reservation.release()

    async def _handle(
        self, request: Request, resource: Resource, body: Body, reservation: Reservation | None = None
    ) -> Response:
        """Handle a request for a resource after its body was read; one that a Fault repeats has the second response."""
        if request.is_repeated:
            request.is_repeated = False
            await self._handle(request, resource, body, reservation)
        context = request.context = _context(request, resource, body)
        context.work.body_reservation = reservation
        output = negotiate(request.header(ACCEPT), _endpoint(resource, context.subresource))
        if output is None:
            return error_response(NotAcceptable(NOT_ACCEPTABLE), request, context.report.warnings)
        try:
            if context.verb == "watch":
                return await self._watch_handler.serve(request, context, output)
            if context.verb in _WRITE_VERBS:
                context.work.memory = self._registry.memory
            return await self._run_verb(request, context, output)
        except ApiError as error:
            return error_response(error, request, context.report.warnings)
        finally:
            context.work.release()

    async def _body(self, request: Request, reserve: Callable[[], Awaitable[object]] | None = None) -> Body:
        reading = request.client.read(MAX_BODY) if reserve is None else self._read(request, reserve)
        if is_long_running(request.info):  # others have a deadline as a whole
            reading = self._deadlines.within(self._seconds, reading)
        return Body(data=await reading, media_type=request.header(CONTENT_TYPE))

    async def _read(self, request: Request, reserve: Callable[[], Awaitable[object]]) -> bytes:
        """Read a body once there is memory for it."""
        await reserve()
        return await request.client.read(MAX_BODY)

    async def _run_verb(self, request: Request, context: RequestContext, output: OutputFormat) -> Response:
        subresource = context.subresource.name if context.subresource else ""
        run_verb = _find_verb(
            self._routes.own_verbs, context.resource.group_resource, subresource, context.verb
        )
        if run_verb is None:
            target = "/".join(filter(None, (context.resource.name, subresource)))
            raise MethodNotSupported(f"{context.verb} of {target} is not implemented by mockube", Details())
        registry = self._registries.get(context.resource.group, self._registry)
        answer = await run_verb(registry, context)
        if context.verb in _WRITE_VERBS:
            await registry.watch_cache.deliver()
        if self._registry.scheme.conversion(context.resource) is not None:
            is_read = context.verb == "get"
            answer = await to_client_version(self._registry, context.resource, answer, is_read=is_read)
        parts = await self._render(request, context, answer, output)
        code = 200 if isinstance(answer, ListResult) else answer.code
        response = _response(request, code, parts, output, context)
        if request.audited is not None:
            if isinstance(answer, ObjectResult) and answer.is_status:
                response.status_object = orjson.dumps(answer.tree)
            elif request.audited.logs_response:
                as_json = replace(output, format=MediaType.JSON)
                logged = (
                    parts
                    if output.format is MediaType.JSON
                    else await self._render(request, context, answer, as_json)
                )
                response.logged_object = b"".join(logged)
        return response

    async def _render(
        self,
        _request: Request,
        context: RequestContext,
        answer: ObjectResult | ListResult,
        output: OutputFormat,
    ) -> Parts:
        """Return the parts of a response's body; JSON is on one line."""
        if isinstance(answer, ListResult):
            return await self._renderer.collection(context, answer, output)
        if answer.stored is not None and output.format is MediaType.JSON and output.view is View.OBJECT:
            return [answer.stored.text]
        return [await self._renderer.object(context, answer, output)]

    async def _page(self, request: Request) -> Response:
        path = request.info.path
        pages = self._routes.pages
        page = pages.get(path)
        if page is None and not _is_folder(path):
            page = pages.get(path.rstrip("/") or "/")
        if page is None:
            page = self._routes.groups.get(request.info.group)
        if page is not None:
            return await page(request)
        if self._is_of_a_group(path):
            raise no_such_resource()
        if path.startswith("/openapi/v3/"):
            request.route = OPENAPI_DOCUMENT
            return Response(404, content_type="")
        return _page_not_found()

    def _is_of_a_group(self, path: str) -> bool:
        """Return whether a path is below a built-in group, whose missing paths are missing resources."""
        if path.startswith("/apis/"):
            group = path.split("/", 3)[2]
            return group != "" and group in self._routes.built_in
        return path.startswith(_RESOURCE_PATH_PREFIXES)


def _find_verb(own_verbs: OwnVerbs, resource: GroupResource, subresource: str, name: str) -> Verb | None:
    verbs = own_verbs.get((resource, subresource))
    if verbs is None:
        verbs = SUBRESOURCE_VERBS.get(subresource, {}) if subresource else RESOURCE_VERBS
    return verbs.get(name)


def _no_body(request: Request) -> Body:
    if request.info.verb in _BODY_VERBS:
        return Body(data=b"", media_type=request.header(CONTENT_TYPE))
    return NO_BODY


def _announced_size(request: Request) -> int:
    """Return the size of a body, at most MAX_BODY; a chunked body can have any size."""
    if request.headers.get(TRANSFER_ENCODING):
        return MAX_BODY
    return min(int(request.headers.get(CONTENT_LENGTH, 0)), MAX_BODY)


def _is_folder(path: str) -> bool:
    """Return whether a path ends with a slash that is significant; after groups and versions it is ignored."""
    return path.endswith("/") and path.startswith(_STRICT_SLASH_PREFIXES)


def _endpoint(resource: Resource, subresource: Subresource | None) -> EndpointType:
    if resource.custom:
        return EndpointType.CUSTOM
    return EndpointType.BUILT_IN if (subresource or resource).has_table else EndpointType.WITHOUT_TABLE


def _response(
    request: Request,
    code: int,
    parts: Parts,
    output: OutputFormat,
    context: RequestContext,
) -> Response:
    if output.format is MediaType.JSON:
        parts = json_body(parts, pretty=output.pretty or request.wants_pretty)
    response = Response(code, parts, output.format.value, warnings=context.report.warnings)
    response.compressed = response.size > MIN_COMPRESSED_SIZE and request.accepts_gzip
    return response


def _context(request: Request, resource: Resource, body: Body) -> RequestContext:
    info = request.info
    return RequestContext(
        verb=info.verb,
        resource=resource,
        subresource=resource.subresource(info.subresource) if info.subresource else None,
        namespace=info.namespace if resource.namespaced else "",
        name="" if info.verb == "create" and not info.subresource else info.name,
        query=request.query,
        revision=request.read_revision,
        body=body,
        user=request.user,
        authenticated=request.authenticated,
        constraint="" if request.impersonated is None else request.impersonated.constraint,
        credentials_end=request.credentials_end,
        user_agent=request.user_agent,
        audit_id=request.audit_id,
        report=RequestReport(
            warnings=[resource.deprecated] if resource.deprecated else [],
            annotations=request.annotations,
            audited=request.audited,
        ),
    )


_RESOURCE_PATH_PREFIXES: Final = (
    "/api/",
    "/version/",
    "/openid/v1/jwks/",
    "/.well-known/openid-configuration/",
)
"""Prefixes of paths, besides those of groups, below which upstream reports a missing path as a missing resource."""


def _page_not_found() -> Response:
    return text_response("404 page not found\n", 404)


_STRICT_SLASH_PREFIXES: Final = (
    "/healthz",
    "/livez",
    "/readyz",
    "/openapi",
    "/metrics",
    "/flagz",
    "/statusz",
)
"""Prefixes of paths where a trailing slash is significant."""
_BODY_VERBS: Final = frozenset({"create", "update", "patch"})
"""Verbs that have a body, even if it is empty."""
_WRITE_VERBS: Final = _BODY_VERBS | {"delete", "deletecollection"}
