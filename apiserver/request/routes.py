"""The checks of upstream's router before it calls a handler: path, method, Content-Type and Accept."""

from collections.abc import Collection, Sequence
from typing import Final

from mockube.apimachinery import gotext, status
from mockube.apimachinery.status import (
    ApiError,
    BadRequest,
    Details,
    MethodNotSupported,
    NotAcceptable,
    NotFound,
    UnsupportedMediaType,
)
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.patch import PATCH_TYPES
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.wire.negotiation import FORMATS, MediaType, consumes, matches_route

from .connect import CONNECT_METHODS
from .page import Page
from .request import ACCEPT, CONTENT_TYPE, Request
from .response import Response

NOT_ALLOWED: Final = "the server does not allow this method on the requested resource"
NOT_ACCEPTABLE: Final = f"only the following media types are accepted: {', '.join(FORMATS)}"
"""The message of handlers, which differs from the router's."""
STREAMED: Final = (f"{MediaType.JSON};stream=watch", f"{MediaType.PROTOBUF};stream=watch")
NOT_STREAMED: Final = f"only the following media types are accepted: {', '.join(STREAMED)}"


def check_accept(request: Request, produced: tuple[str, ...]) -> None:
    """Raise NotAcceptable unless the client accepts a media type of the route."""
    if not matches_route(request.header(ACCEPT), produced):
        available = ", ".join(produced)
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {available}", Details())


def get_only(page: Page, produced: tuple[str, ...] = FORMATS, consumed: Collection[str] = ()) -> Page:
    """Return the page for GET requests alone, with the checks of upstream's router; other pages accept any method."""

    async def serve(request: Request) -> Response:
        if request.method != "GET":
            raise MethodNotSupported(NOT_ALLOWED, Details())
        content_type = request.header(CONTENT_TYPE)
        if content_type and consumed and not consumes(content_type, consumed):
            raise UnsupportedMediaType("415: Unsupported Media Type", Details())
        check_accept(request, produced)
        return await page(request)

    return serve


class NoSuchPath(Exception):
    """No handler has the path."""


def no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", Details())


def check_is_served(resource: Resource, request: Request) -> None:
    """Raise an ApiError unless a resource has the verb or subresource at this path; NoSuchPath if no handler has it."""
    info = request.info
    if info.path.startswith("//"):
        raise NoSuchPath(info.path)
    if resource.custom:
        _check_custom(resource, request)
    elif info.prefix:
        _check_watch_path(resource, request)
    elif info.subresource in CONNECT_METHODS:
        _check_connect(resource, request)
    else:
        _check_built_in(resource, request)


def _check_built_in(resource: Resource, request: Request) -> None:
    info, verb = request.info, request.info.verb
    # As upstream's router, which matches segments: a name or a namespace may be empty.
    is_local = bool(info.namespace) or info.has_empty_namespace
    if info.rest:
        raise no_such_resource()
    if is_local and not resource.namespaced and (info.has_empty_namespace or info.namespace != info.name):
        raise no_such_resource()
    verbs = resource.verbs
    path_verbs: Collection[str] = _OBJECT_VERBS if info.name else _COLLECTION_VERBS
    if info.subresource:
        subresource = resource.subresource(info.subresource)
        if subresource is None or (resource.namespaced and not is_local):
            raise no_such_resource()
        verbs = path_verbs = subresource.verbs
        if not info.name:
            verb = _VERBS_OF_NAMES.get(verb, verb)
    elif resource.namespaced and not is_local:
        path_verbs = () if info.name else _ALL_NAMESPACES_VERBS
    is_head = request.method == "HEAD"  # its verb is get, but only pages serve it
    if verb in verbs and verb in path_verbs and not is_head:
        _check_not_empty(info, verb)
        return
    if not any(verb in verbs for verb in path_verbs):
        raise no_such_resource()
    raise _unsupported_verb_error(resource, info)


def _check_not_empty(info: RequestInfo, verb: str) -> None:
    """Raise BadRequest if a verb needs a name or a namespace which is empty in the path."""
    if info.subresource and not info.name:
        raise BadRequest("name must be provided")
    if info.has_empty_namespace and verb not in _VERBS_WITHOUT_NAMESPACE:
        raise BadRequest("Namespace parameter required.")


def _check_custom(resource: Resource, request: Request) -> None:
    """Raise an ApiError unless a custom resource has the verb or subresource; as upstream, only the verb is checked.

    Raise NoSuchPath if the scope of the path is not that of the resource.
    """
    info = request.info
    if resource.namespaced is not bool(info.namespace) and info.verb not in (
        _ALL_NAMESPACES_VERBS if resource.namespaced else ()
    ):
        raise NoSuchPath(info.path)
    verbs = resource.verbs
    if info.subresource:
        subresource = resource.subresource(info.subresource)
        if subresource is None:
            raise status.not_found(resource.group_resource, info.name)
        verbs = subresource.verbs
    if info.verb not in verbs:
        raise _verb_not_supported_error(resource, info)
    if request.method == "HEAD" and info.verb == "watch":
        raise MethodNotSupported(NOT_ALLOWED, Details())
    if not info.name and info.verb in _NAMED:
        raise BadRequest("name must be provided")


def _check_watch_path(resource: Resource, request: Request) -> None:
    """Raise an ApiError unless a path with a verb, such as /watch/, is a valid watch."""
    info = request.info
    verbs = resource.verbs if info.prefix == "watch" and not info.subresource else ()
    namespace = "" if info.resource == "namespaces" else info.namespace
    is_local = bool(namespace) or info.has_empty_namespace
    has_valid_scope = resource.namespaced is is_local or not (info.name or is_local)
    if "watch" not in verbs or not has_valid_scope:
        raise no_such_resource()
    if request.method != "GET":
        raise MethodNotSupported(NOT_ALLOWED, Details())


def warnings_of_refused(resource: Resource, error: ApiError) -> Sequence[str]:
    """Return the warnings of a refused request; upstream warns only if its router finds the resource."""
    is_found = resource.custom or (error.message != NOT_ALLOWED and not isinstance(error, NotFound))
    return [resource.deprecated] if resource.deprecated and is_found else ()


def check_route(resource: Resource, request: Request) -> None:
    """Raise the errors of upstream's router, which requests for custom resources do not pass."""
    info = request.info
    if resource.custom or (info.subresource in CONNECT_METHODS and info.subresource != "log"):
        return
    if info.verb == "patch" and not consumes(request.header(CONTENT_TYPE), PATCH_TYPES):
        raise UnsupportedMediaType("415: Unsupported Media Type", Details())
    check_accept(request, _PRODUCED_LOG if info.subresource == "log" else _PRODUCED.get(info.verb, FORMATS))


def _unsupported_verb_error(resource: Resource, info: RequestInfo) -> MethodNotSupported:
    """Return the error of an unsupported verb; as upstream, that of a watch of a resource with list names the verb."""
    if info.verb == "watch" and "list" in resource.verbs:
        return _verb_not_supported_error(resource, info)
    return MethodNotSupported(NOT_ALLOWED, Details())


def _verb_not_supported_error(resource: Resource, info: RequestInfo) -> MethodNotSupported:
    about = resource.group_resource
    problem = f"{info.verb} is not supported on resources of kind {gotext.quote(str(about))}"
    return MethodNotSupported(problem, Details(group=about.group, kind=about.resource))


def _check_connect(resource: Resource, request: Request) -> None:
    """Raise an ApiError unless a resource has a proxied subresource with this method."""
    info = request.info
    exists = resource.subresource(info.subresource) is not None and (
        info.subresource == "proxy" or not info.rest
    )
    if not exists or (bool(info.namespace) or info.has_empty_namespace) is not resource.namespaced:
        raise no_such_resource()
    if request.method not in CONNECT_METHODS[info.subresource]:
        raise MethodNotSupported(NOT_ALLOWED, Details())
    _check_not_empty(info, "get")


_NAMED: Final = frozenset({"update", "patch"})
_VERBS_OF_NAMES: Final = {"list": "get", "watch": "get", "deletecollection": "delete"}
"""The verbs of objects, by those of a path whose name is empty."""
_PRODUCED_LOG: Final = ("text/plain", *FORMATS)
_PRODUCED: Final = {"list": (*FORMATS, *STREAMED), "watch": (*FORMATS, *STREAMED)}
_OBJECT_VERBS = frozenset({"get", "update", "patch", "delete", "watch"})
"""The verbs of paths with a name. A path exists if the resource has at least one of its verbs."""
_COLLECTION_VERBS = frozenset({"create", "list", "watch", "deletecollection"})
_ALL_NAMESPACES_VERBS = frozenset({"list", "watch"})
_VERBS_WITHOUT_NAMESPACE: Final = _ALL_NAMESPACES_VERBS | {"create"}
"""The verbs of a path with an empty namespace; validation refuses a new object without one."""
