"""The endpoint behind the filters: runs the verb of a resource, or returns a page."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import (
    ApiError,
    Details,
    MethodNotSupported,
    NotAcceptable,
)
from mockube.apiserver.kinds.api_resource import Resource, Subresource
from mockube.apiserver.long_work import yield_to_loop
from mockube.apiserver.memory_limit import MemoryLimit, Reservation
from mockube.apiserver.registry.call import NO_BODY, Body, Call, ListResult, ObjectResult
from mockube.apiserver.registry.convert import to_client_version
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.delete import delete, delete_collection
from mockube.apiserver.registry.patch import patch
from mockube.apiserver.registry.read import get, list_objects
from mockube.apiserver.registry.registry import OwnVerbs, Registry, Verb
from mockube.apiserver.registry.subresources import binding, eviction, scale
from mockube.apiserver.registry.subresources.locations import PREFERRED_ADDRESSES
from mockube.apiserver.registry.update import update
from mockube.apiserver.request.connect import Connecting, Proxy
from mockube.apiserver.request.filter import Config
from mockube.apiserver.request.health import Page, Pages
from mockube.apiserver.request.limits import LONG_SUBRESOURCES, is_long_running
from mockube.apiserver.request.rendering import Renderer
from mockube.apiserver.request.request import ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING, Request
from mockube.apiserver.request.response import (
    MIN_COMPRESSED_SIZE,
    Response,
    error_response,
    json_body,
    text_response,
)
from mockube.apiserver.request.routes import (
    NOT_ACCEPTABLE,
    NoSuchPath,
    check_is_served,
    check_route,
    no_such_resource,
    warnings_of_refused,
)
from mockube.apiserver.request.watch import Watching
from mockube.apiserver.wire.negotiation import Endpoint, Format, OutputFormat, View, negotiate

MAX_BODY: Final = 3 * 1024 * 1024
BODIES_BYTES: Final = 128 << 20
"""The limit of the bytes of all large bodies that are received or handled at the same time."""
SMALL_BODY: Final = 64 * 1024
"""Bytes of a body below which it does not count: a connection reads as many ahead."""


MAIN: Mapping[str, Verb] = {
    "create": create,
    "delete": delete,
    "deletecollection": delete_collection,
    "get": get,
    "list": list_objects,
    "patch": patch,
    "update": update,
}
WHOLE: Mapping[str, Verb] = {"get": get, "patch": patch, "update": update}
"""The verbs of subresources that read and write a part of the same object."""
SUBRESOURCES: Mapping[str, Mapping[str, Verb]] = {
    "status": WHOLE,
    "ephemeralcontainers": WHOLE,
    "resize": WHOLE,
    "approval": WHOLE,
    "finalize": WHOLE,
    "binding": {"create": binding.create},
    "eviction": {"create": eviction.create},
    "scale": {"get": scale.get, "patch": scale.patch, "update": scale.update},
}
BINDINGS: OwnVerbs = {(GroupResource("", "bindings"), ""): {"create": binding.create}}


class Routes(Struct, frozen=True, kw_only=True):
    """The pages and verbs that can be requested."""

    own_verbs: OwnVerbs
    pages: Pages
    proxy: Proxy
    """Forwards requests to kubelets and pods."""
    remote: Callable[[str], Page | None] = lambda _path: None
    """Returns the page that forwards requests of a path to another API server; None if this server serves it."""
    built_in: Collection[str] = ()
    """The names of the groups that are not of custom resources."""
    groups: Pages = field(default_factory=dict)
    """By API group, the page of resources without rows."""
    kubelet_addresses: Sequence[str] = PREFERRED_ADDRESSES
    """The types of node addresses, the preferred one first."""


class Endpoints:
    """Handles requests that have passed the filters."""

    def __init__(
        self,
        registry: Registry,
        routes: Routes,
        renderer: Renderer,
        watching: Watching,
        config: Config,
    ) -> None:
        self._registry = registry
        self._routes = routes
        self._renderer = renderer
        self._watching = watching
        self._bodies = MemoryLimit(BODIES_BYTES, minimum=SMALL_BODY)
        self._connecting = Connecting(registry, routes.proxy, routes.kubelet_addresses)
        self._deadlines = config.deadlines
        self._seconds = config.seconds

    async def serve(self, request: Request) -> Response:
        # Requests that arrived together pass each stage together: docs/decisions/0022-stages-of-requests.md
        await yield_to_loop()
        resource = request.resource
        if resource is None:
            page = self._routes.remote(request.path)
            return await (self._page(request) if page is None else page(request))
        try:
            check_is_served(resource, request)
        except ApiError as error:
            return error_response(error, request, warnings_of_refused(resource, error))
        except NoSuchPath:
            return _page_not_found()
        check_route(resource, request)
        if request.info.subresource in LONG_SUBRESOURCES:
            return await self._connecting.serve(request, _call(request, resource, NO_BODY))
        if not request.client.has_body:
            return await self._handle(request, resource, _no_body(request))
        size = _announced_size(request)
        if size < SMALL_BODY:
            return await self._handle(request, resource, await self._body(request))
        reservation = Reservation(self._bodies)
        try:
            body = await self._body(request, partial(reservation.grow, size))
            return await self._handle(request, resource, body, reservation)
        finally:
            reservation.release()

    async def _handle(
        self, request: Request, resource: Resource, body: Body, reservation: Reservation | None = None
    ) -> Response:
        """Handle a request for a resource after its body was read."""
        call = _call(request, resource, body)
        call.body_reservation = reservation
        output = negotiate(request.header(ACCEPT), _endpoint(resource, call.subresource))
        if output is None:
            return error_response(NotAcceptable(NOT_ACCEPTABLE), request, call.warnings)
        try:
            if call.verb == "watch":
                return await self._watching.serve(request, call, output)
            if call.verb in _WRITES:
                call.memory = self._registry.memory
            return await self._run_verb(request, call, output)
        except ApiError as error:
            return error_response(error, request, call.warnings)
        finally:
            if call.reservation is not None:
                call.reservation.release()

    async def _body(self, request: Request, reserve: Callable[[], Awaitable[object]] | None = None) -> Body:
        reading = request.client.read(MAX_BODY) if reserve is None else self._read(request, reserve)
        if is_long_running(request.info):  # others have a deadline as a whole
            reading = self._deadlines.within(self._seconds, reading)
        return Body(data=await reading, media_type=request.header(CONTENT_TYPE))

    async def _read(self, request: Request, reserve: Callable[[], Awaitable[object]]) -> bytes:
        """Read a body once there is memory for it."""
        await reserve()
        return await request.client.read(MAX_BODY)

    async def _run_verb(self, request: Request, call: Call, output: OutputFormat) -> Response:
        subresource = call.subresource.name if call.subresource else ""
        run_verb = _find_verb(self._routes.own_verbs, call.resource.group_resource, subresource, call.verb)
        if run_verb is None:
            target = "/".join(filter(None, (call.resource.name, subresource)))
            raise MethodNotSupported(f"{call.verb} of {target} is not implemented by mockube", Details())
        answer = await run_verb(self._registry, call)
        if call.verb in _WRITES:
            await self._registry.watch_cache.deliver()
        if self._registry.scheme.conversion(call.resource) is not None:
            answer = await to_client_version(self._registry, call.resource, answer)
        parts = await self._render(call, answer, output)
        code = 200 if isinstance(answer, ListResult) else answer.code
        response = _response(request, code, parts, output, call)
        if request.audited is not None:
            if isinstance(answer, ObjectResult) and answer.is_status:
                response.status_object = orjson.dumps(answer.tree)
            elif request.audited.logs_response:
                as_json = replace(output, format=Format.JSON)
                logged = parts if output.format is Format.JSON else await self._render(call, answer, as_json)
                response.logged_object = b"".join(logged)
        return response

    async def _render(
        self, call: Call, answer: ObjectResult | ListResult, output: OutputFormat
    ) -> Sequence[bytes | memoryview]:
        """Return the parts of a response's body; JSON is on one line."""
        if isinstance(answer, ListResult):
            return await self._renderer.collection(call, answer, output)
        if answer.stored is not None and output.format is Format.JSON and output.view is View.OBJECT:
            return [answer.stored.text]
        return [await self._renderer.object(call, answer, output)]

    async def _page(self, request: Request) -> Response:
        path = request.info.path
        page = None if _is_folder(path) else self._routes.pages.get(path.rstrip("/") or "/")
        if page is None:
            page = self._routes.groups.get(request.info.group)
        if page is not None:
            return await page(request)
        if self._is_of_a_group(path):
            raise no_such_resource()
        if path.startswith("/openapi/v3/"):
            return Response(404, content_type="")
        return _page_not_found()

    def _is_of_a_group(self, path: str) -> bool:
        """Return whether a path is below a built-in group, whose missing paths are missing resources."""
        if path.startswith("/apis/"):
            return path.split("/", 3)[2] in self._routes.built_in
        return path.startswith(_BELOW)


def _find_verb(own_verbs: OwnVerbs, resource: GroupResource, subresource: str, name: str) -> Verb | None:
    verbs = own_verbs.get((resource, subresource))
    if verbs is None:
        verbs = SUBRESOURCES.get(subresource, {}) if subresource else MAIN
    return verbs.get(name)


def _no_body(request: Request) -> Body:
    if request.info.verb in _WRITTEN:
        return Body(data=b"", media_type=request.header(CONTENT_TYPE))
    return NO_BODY


def _announced_size(request: Request) -> int:
    """Return the size of a body, at most MAX_BODY; a chunked body can have any size."""
    if request.headers.get(TRANSFER_ENCODING):
        return MAX_BODY
    return min(int(request.headers.get(CONTENT_LENGTH, 0)), MAX_BODY)


def _is_folder(path: str) -> bool:
    """Return whether a path ends with a slash that is significant; after groups and versions it is ignored."""
    return path.endswith("/") and path.startswith(_EXACT)


def _endpoint(resource: Resource, subresource: Subresource | None) -> Endpoint:
    if resource.custom:
        return Endpoint.CUSTOM
    return Endpoint.BUILT_IN if (subresource or resource).has_table else Endpoint.WITHOUT_TABLE


def _response(
    request: Request, code: int, parts: Sequence[bytes | memoryview], output: OutputFormat, call: Call
) -> Response:
    if output.format is Format.JSON:
        parts = json_body(parts, pretty=output.pretty or request.wants_pretty)
    response = Response(code, parts, output.format.value, warnings=call.warnings)
    response.compressed = response.size > MIN_COMPRESSED_SIZE and request.takes_gzip
    return response


def _call(request: Request, resource: Resource, body: Body) -> Call:
    info = request.info
    return Call(
        verb=info.verb,
        resource=resource,
        subresource=resource.subresource(info.subresource) if info.subresource else None,
        namespace=info.namespace if resource.namespaced else "",
        name="" if info.verb == "create" and not info.subresource else info.name,
        query=request.query,
        body=body,
        user=request.user,
        user_agent=request.user_agent,
        warnings=[resource.deprecated] if resource.deprecated else [],
        annotations=request.annotations,
        audited=request.audited,
    )


_BELOW: Final = ("/api/", "/version/", "/openid/v1/jwks/", "/.well-known/openid-configuration/")
"""Paths below which missing paths are missing resources, too."""


def _page_not_found() -> Response:
    return text_response("404 page not found\n", 404)


_EXACT: Final = ("/healthz", "/livez", "/readyz", "/openapi", "/metrics", "/flagz", "/statusz")
"""Prefixes of paths whose slash at the end is significant."""
_WRITTEN: Final = frozenset({"create", "update", "patch"})
"""Verbs that have a body, even if it is empty."""
_WRITES: Final = _WRITTEN | {"delete", "deletecollection"}
