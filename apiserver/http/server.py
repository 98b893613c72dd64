"""Requests in, responses out: the way of every request through the server, at one glance.

    parse the URL → who asks → is there room and time → may he → find the resource → carry the verb out → render

Errors anywhere on the way are raised as what they are and become responses here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from apimachinery import status
from apimachinery.status import ApiError, Details, MethodNotSupported, NotFound
from apiserver.http import respond
from apiserver.http.budget import Budget, InFlight, allotted, is_long_running, within
from apiserver.http.connections import Server
from apiserver.http.headers import header
from apiserver.http.pages import Pages
from apiserver.http.render import Renderer
from apiserver.http.requestinfo import RequestInfo, parse
from apiserver.http.senders import Senders
from apiserver.http.watching import Watching
from apiserver.observe.observer import Arrival, Observer
from apiserver.resources.spec import Resource
from apiserver.rest.backend import Backend
from apiserver.rest.call import Body, Call, ListAnswer, User
from apiserver.rest.convert import shown
from apiserver.rest.verbs import Verbs
from apiserver.wire import negotiate
from apiserver.wire.negotiate import FORMATS, Wanted

MAX_BODY = 3 * 1024 * 1024
_LIMITS: Mapping[str, Any] = {"max_line_size": 1 << 20, "max_field_size": 1 << 20, "auto_decompress": False}
"""As upstream: a body that was compressed is not read, so that none can be a bomb."""
_BAD_PATH = re.compile(r"%2[fF]|//|/\.{1,2}(?:/|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """What can be asked for."""

    resources: Callable[[str, str, str], Resource | None]
    """By group, version and name."""
    verbs: Verbs
    pages: Pages


class Handler:
    """Answers every request."""

    def __init__(
        self,
        backend: Backend,
        routes: Routes,
        *,
        senders: Senders,
        renderer: Renderer,
        budget: Budget,
        observer: Observer,
    ) -> None:
        self._backend = backend
        self._routes = routes
        self._senders = senders
        self._seconds = budget.seconds
        self._in_flight = InFlight(budget)
        self._observer = observer
        self._renderer = renderer
        self.watching = Watching(backend, renderer)
        self.server = Server(self._handle, access_log=None, **_LIMITS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Exception as error:  # noqa: BLE001 - the outermost place: it becomes a Status, and a line in the log
            return respond.error_response(error)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        query_string = request.query_string
        query: Mapping[str, Sequence[str]] = (
            parse_qs(query_string, keep_blank_values=True) if query_string else {}
        )
        watch = query.get("watch", ("",))[0] not in ("", "0", "false")
        info = parse(request.method, request.path, watch=watch)
        user = await self._senders.sender(request)
        noted = self._observer.begin(_arrival(request, info, query, user))
        code = 0
        try:
            response = await self._bounded(request, info, query, user)
            code = response.status
        except Exception as error:  # noqa: BLE001 - as in _handle; here the request is known, and noted with its end
            response = respond.error_response(error)
            code = response.status
        finally:
            self._observer.end(noted, code)
        return response

    async def _bounded(
        self, request: web.BaseRequest, info: RequestInfo, query: Mapping[str, Sequence[str]], user: User
    ) -> web.StreamResponse:
        if is_long_running(info):
            return await self._serve(request, info, query, user)
        seconds = allotted(query.get("timeout", ()), self._seconds)
        if not self._in_flight.enter(info.verb, user):
            return respond.too_many_requests()
        try:
            return await within(self._backend.clock, seconds, self._serve(request, info, query, user))
        finally:
            self._in_flight.leave(info.verb)

    async def _serve(
        self, request: web.BaseRequest, info: RequestInfo, query: Mapping[str, Sequence[str]], user: User
    ) -> web.StreamResponse:
        await self._senders.require(user, info)
        if not info.is_resource:
            return await self._page(request, info.path)
        call = await self._call(request, info, query, user)
        wanted = negotiate.wanted(header(request, "Accept"))
        if wanted is None:
            raise status.NotAcceptable(_NOT_ACCEPTABLE, Details())
        if call.verb == "watch":
            return await self.watching.serve(self.server, request, call, wanted)
        try:
            return await self._carry_out(request, call, wanted)
        except ApiError as error:
            return respond.error_response(error, call.warnings)

    async def _call(
        self, request: web.BaseRequest, info: RequestInfo, query: Mapping[str, Sequence[str]], user: User
    ) -> Call:
        resource = self._find(info)
        body = Body(data=b"")
        if request.can_read_body:
            data = await _read(request)
            body = Body(data=data, media_type=header(request, "Content-Type"))
        return Call(
            verb=info.verb,
            resource=resource,
            subresource=resource.subresource(info.subresource) if info.subresource else None,
            namespace=info.namespace if resource.namespaced else "",
            name=info.name,
            query=query,
            body=body,
            user=user,
            user_agent=header(request, "User-Agent"),
            warnings=[resource.deprecated] if resource.deprecated else [],
        )

    def _find(self, info: RequestInfo) -> Resource:
        resource = self._routes.resources(info.group, info.version, info.resource)
        if resource is None or _BAD_PATH.search(info.path):
            raise _no_such_resource()
        if info.namespace and not resource.namespaced and info.resource != "namespaces":
            raise _no_such_resource()
        verbs = resource.verbs
        if info.subresource:
            subresource = resource.subresource(info.subresource)
            if subresource is None:
                raise _no_such_resource()
            verbs = subresource.verbs
        elif resource.namespaced and not info.namespace and (info.name or info.verb == "create"):
            raise _no_such_resource()
        wrong_place = (
            info.verb in _OF_ONE if not info.name else info.verb == "create" and not info.subresource
        )
        if info.verb not in verbs or wrong_place:
            raise MethodNotSupported(_NOT_ALLOWED, Details())
        return resource

    async def _carry_out(self, request: web.BaseRequest, call: Call, wanted: Wanted) -> web.StreamResponse:
        subresource = call.subresource.name if call.subresource else ""
        carry_out = self._routes.verbs(call.resource.group_resource, subresource, call.verb)
        if carry_out is None:
            wanted_of = "/".join(filter(None, (call.resource.name, subresource)))
            raise MethodNotSupported(f"{call.verb} of {wanted_of} is not built into mockube yet", Details())
        answer = await carry_out(self._backend, call)
        answer = shown(self._backend, call.resource, answer)
        now = self._backend.clock.now()
        if isinstance(answer, ListAnswer):
            body, code = self._renderer.collection(call, answer, wanted, now), 200
        else:
            body, code = [self._renderer.object(call, answer, wanted, now)], answer.code
        return respond.response(
            request, body, code=code, content_type=wanted.format.value, warnings=call.warnings
        )

    async def _page(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        page = self._routes.pages.get(path.rstrip("/") or "/")
        if page is None:
            if path.startswith(("/api/", "/apis/")):
                raise _no_such_resource()
            return respond.text_response("404 page not found\n", 404)
        return await page(request)


_OF_ONE = frozenset({"get", "update", "patch", "delete"})
"""Verbs that need a name."""
_NOT_ALLOWED = "the server does not allow this method on the requested resource"
_NOT_ACCEPTABLE = f"406: Not Acceptable\n\nAvailable representations: {', '.join(f.value for f in FORMATS)}"


def _no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", Details())


def _arrival(
    request: web.BaseRequest, info: RequestInfo, query: Mapping[str, Sequence[str]], user: User
) -> Arrival:
    return Arrival(
        info=info,
        user=user,
        uri=request.path_qs,
        source=request.remote or "",
        user_agent=header(request, "User-Agent"),
        dry_run="dryRun" in query,
        applies=header(request, "Content-Type").startswith("application/apply-patch"),
    )


async def _read(request: web.BaseRequest) -> bytes:
    """The body, as long as it is not too long."""
    if (request.content_length or 0) > MAX_BODY:
        raise status.request_entity_too_large(f"limit is {MAX_BODY}")
    data = bytearray()
    try:
        async for chunk in request.content.iter_any():
            data += chunk
            if len(data) > MAX_BODY:
                raise status.request_entity_too_large(f"limit is {MAX_BODY}")
    except (web.RequestPayloadError, ConnectionError) as error:
        raise status.BadRequest(f"the body ends too early: {error}") from error
    return bytes(data)
