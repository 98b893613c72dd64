"""What a request comes to behind the filters: a verb of a resource, or a page."""

from collections.abc import Callable, Collection, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import gotext, status
from mockube.apimachinery.status import (
    ApiError,
    Details,
    MethodNotSupported,
    NotAcceptable,
    NotFound,
    UnsupportedMediaType,
)
from mockube.apiserver.kinds.api_resource import Resource, Subresource
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import NO_BODY, Body, Call, ListAnswer
from mockube.apiserver.registry.convert import to_client_version
from mockube.apiserver.registry.patch import PATCH_TYPES
from mockube.apiserver.registry.subresources.locations import PREFERRED_ADDRESSES
from mockube.apiserver.registry.verbs import Verbs
from mockube.apiserver.request.compression import MIN_SIZE, takes_gzip
from mockube.apiserver.request.connect import CONNECT_METHODS, Connecting, Proxy
from mockube.apiserver.request.filter import Config
from mockube.apiserver.request.health import Page, Pages
from mockube.apiserver.request.limits import LONG_SUBRESOURCES, is_long_running
from mockube.apiserver.request.rendering import Renderer, is_encoded
from mockube.apiserver.request.request import ACCEPT, CONTENT_TYPE, Request
from mockube.apiserver.request.response import Response, error_response, json_body, text_response
from mockube.apiserver.request.routes import NOT_ACCEPTABLE, NOT_ALLOWED, STREAMED, check_accept
from mockube.apiserver.request.watch import Watching
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.wire.negotiation import FORMATS, Endpoint, Format, OutputFormat, negotiate, sent

MAX_BODY: Final = 3 * 1024 * 1024


class Routes(Struct, frozen=True, kw_only=True):
    """What can be requested."""

    verbs: Verbs
    pages: Pages
    proxy: Proxy
    """Passes requests on to kubelets and pods."""
    remote: Callable[[str], Page | None] = lambda _path: None
    """What passes the requests of a path on to another API server."""
    built_in: Collection[str] = ()
    """The names of the groups that are no custom resources'."""
    groups: Pages = field(default_factory=dict)
    """By API group, what answers to all paths of resources that have no row."""
    kubelet_addresses: Sequence[str] = PREFERRED_ADDRESSES
    """Which of a node's addresses is tried first."""


class Endpoints:
    """Carries requests out that have passed the filters."""

    def __init__(
        self,
        backend: Backend,
        routes: Routes,
        renderer: Renderer,
        watching: Watching,
        config: Config,
    ) -> None:
        self._backend = backend
        self._routes = routes
        self._renderer = renderer
        self._watching = watching
        self._connecting = Connecting(backend, routes.proxy, routes.kubelet_addresses)
        self._deadlines = config.deadlines
        self._seconds = config.seconds

    async def serve(self, request: Request) -> Response:
        resource = request.resource
        if resource is None:
            page = self._routes.remote(request.path)
            return await (self._page(request) if page is None else page(request))
        try:
            _check_is_served(resource, request)
        except ApiError as error:
            return error_response(error, request, [resource.deprecated] if resource.deprecated else ())
        _check_route(resource, request)
        if request.info.subresource in LONG_SUBRESOURCES:
            return await self._connecting.serve(request, _call(request, resource, NO_BODY))
        body = NO_BODY
        if request.client.has_body:
            body = await self._body(request)
        elif request.info.verb in _WRITTEN:
            body = Body(data=b"", media_type=request.header(CONTENT_TYPE))
        call = _call(request, resource, body)
        wanted = negotiate(request.header(ACCEPT), _endpoint(resource, call.subresource))
        if wanted is None:
            return error_response(NotAcceptable(NOT_ACCEPTABLE), request, call.warnings)
        if call.verb == "watch":
            return await self._watching.serve(request, call, wanted)
        try:
            return await self._carry_out(request, call, wanted)
        except ApiError as error:
            return error_response(error, request, call.warnings)

    async def _body(self, request: Request) -> Body:
        reading = request.client.read(MAX_BODY)
        if is_long_running(request.info):  # others have a deadline as a whole
            reading = self._deadlines.within(self._seconds, reading)
        return Body(data=await reading, media_type=request.header(CONTENT_TYPE))

    async def _carry_out(self, request: Request, call: Call, wanted: OutputFormat) -> Response:
        subresource = call.subresource.name if call.subresource else ""
        carry_out = self._routes.verbs(call.resource.group_resource, subresource, call.verb)
        if carry_out is None:
            target = "/".join(filter(None, (call.resource.name, subresource)))
            raise MethodNotSupported(f"{call.verb} of {target} is not built into mockube yet", Details())
        answer = await carry_out(self._backend, call)
        if self._backend.conversion(call.resource) is not None:
            answer = await to_client_version(self._backend, call.resource, answer)
        if not isinstance(answer, ListAnswer):
            if is_encoded(answer, wanted):
                body = self._renderer.object(call, answer, wanted)
            else:
                body = await self._renderer.object_off_loop(call, answer, wanted)
            return _response(request, answer.code, [body], wanted, call)
        parts = await self._renderer.collection(call, answer, wanted)
        return _response(request, 200, parts, wanted, call)

    async def _page(self, request: Request) -> Response:
        path = request.info.path
        page = None if _is_folder(path) else self._routes.pages.get(path.rstrip("/") or "/")
        if page is None:
            page = self._routes.groups.get(request.info.group)
        if page is not None:
            return await page(request)
        if self._is_of_a_group(path):
            raise _no_such_resource()
        return text_response("404 page not found\n", 404)

    def _is_of_a_group(self, path: str) -> bool:
        """Return whether a path is below a group that is built in: only then is what is missing a resource."""
        if path.startswith("/apis/"):
            return path.split("/", 3)[2] in self._routes.built_in
        return path.startswith("/api/")


def _is_folder(path: str) -> bool:
    """Return whether a path ends with a slash that is not passed over, as it is behind groups and versions."""
    return path.endswith("/") and path.startswith(("/healthz", "/livez", "/readyz", "/openapi"))


def _endpoint(resource: Resource, subresource: Subresource | None) -> Endpoint:
    if resource.custom:
        return Endpoint.CUSTOM
    return Endpoint.BUILT_IN if (subresource or resource).has_table else Endpoint.WITHOUT_TABLE


def _response(
    request: Request, code: int, parts: Sequence[bytes | memoryview], wanted: OutputFormat, call: Call
) -> Response:
    if wanted.format is Format.JSON:
        parts = json_body(parts, pretty=wanted.pretty or request.wants_pretty)
    response = Response(code, parts, wanted.format.value, warnings=call.warnings)
    response.compressed = response.size > MIN_SIZE and takes_gzip(request)
    return response


def _call(request: Request, resource: Resource, body: Body) -> Call:
    info = request.info
    return Call(
        verb=info.verb,
        resource=resource,
        subresource=resource.subresource(info.subresource) if info.subresource else None,
        namespace=info.namespace if resource.namespaced else "",
        name=info.name,
        query=request.query,
        body=body,
        user=request.user,
        user_agent=request.user_agent,
        warnings=[resource.deprecated] if resource.deprecated else [],
        annotations=request.annotations,
    )


def _check_is_served(resource: Resource, request: Request) -> None:
    """Raise, unless a resource has the verb or subresource, at this place."""
    info = request.info
    if info.subresource in CONNECT_METHODS and not resource.custom:
        _check_is_connected(resource, request)
        return
    if not info.is_plain:
        raise _no_such_resource()
    if info.namespace and not resource.namespaced and info.namespace != info.name:
        raise _no_such_resource()
    verbs = resource.verbs
    here: Collection[str] = _OF_ONE if info.name else _OF_ALL
    if info.subresource:
        subresource = resource.subresource(info.subresource)
        if subresource is None:
            if resource.custom:
                raise status.not_found(resource.group_resource, info.name)
            raise _no_such_resource()
        verbs = here = subresource.verbs
    elif resource.namespaced and not info.namespace:
        # Of custom objects upstream looks at the verb first.
        is_there = not resource.custom or info.verb in _OF_ALL_NAMESPACES
        here = _OF_ALL_NAMESPACES if is_there and not info.name else ()
    is_head = request.method == "HEAD"  # authorized as a get, and served on pages alone
    if info.verb in verbs and info.verb in here and not is_head:
        return
    if not any(verb in verbs for verb in here):
        raise _no_such_resource()
    raise _method_not_supported(resource, info)


def _check_route(resource: Resource, request: Request) -> None:
    """Raise what upstream's router refuses; requests of custom resources do not pass it."""
    info = request.info
    if resource.custom or (info.subresource in CONNECT_METHODS and info.subresource != "log"):
        return
    if info.verb == "patch" and sent(request.header(CONTENT_TYPE))[0] not in PATCH_TYPES:
        raise UnsupportedMediaType("415: Unsupported Media Type", Details())
    check_accept(request, _PRODUCED_LOG if info.subresource == "log" else _PRODUCED.get(info.verb, FORMATS))


def _method_not_supported(resource: Resource, info: RequestInfo) -> MethodNotSupported:
    """Upstream serves subresources of custom objects, and watches of what is only listed, by code that names the verb."""
    if not (resource.custom and info.subresource) and not (info.verb == "watch" and "list" in resource.verbs):
        return MethodNotSupported(NOT_ALLOWED, Details())
    about = resource.group_resource
    problem = f"{info.verb} is not supported on resources of kind {gotext.quote(str(about))}"
    return MethodNotSupported(problem, Details(group=about.group, kind=about.resource))


def _check_is_connected(resource: Resource, request: Request) -> None:
    """Raise, unless a resource has a subresource that is proxied, and it takes the method."""
    info = request.info
    is_there = resource.subresource(info.subresource) is not None and (
        info.subresource == "proxy" or not info.rest
    )
    if not is_there or bool(info.namespace) is not resource.namespaced:
        raise _no_such_resource()
    if request.method not in CONNECT_METHODS[info.subresource]:
        raise MethodNotSupported(NOT_ALLOWED, Details())


_WRITTEN: Final = frozenset({"create", "update", "patch"})
"""Verbs of which a body is read, whether there is one or not."""
_PRODUCED_LOG: Final = ("text/plain", *FORMATS)
_PRODUCED: Final = {"list": (*FORMATS, *STREAMED), "watch": (*FORMATS, *STREAMED)}
_OF_ONE = frozenset({"get", "update", "patch", "delete", "watch"})
"""Verbs that need a name. A path is there if the resource has any of those that belong to it."""
_OF_ALL = frozenset({"create", "list", "watch", "deletecollection"})
_OF_ALL_NAMESPACES = frozenset({"list", "watch"})


def _no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", Details())
