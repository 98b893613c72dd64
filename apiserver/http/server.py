"""Requests in, responses out: the way of every request through the server, at one glance.

    parse the URL → who asks → (what is put around it) → is there room and time → may he → find the resource
    → carry the verb out → render

Errors anywhere on the way are raised as what they are and become responses here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import parse_qs

from aiohttp import hdrs, web

from apimachinery import status
from apimachinery.status import ApiError, Details, MethodNotSupported, NotFound
from apiserver.http import respond
from apiserver.http.around import Around, Proceed
from apiserver.http.asked import Asked
from apiserver.http.budget import InFlight, allotted, is_long_running
from apiserver.http.connections import Server
from apiserver.http.deadlines import Deadlines
from apiserver.http.headers import header
from apiserver.http.pages import Pages
from apiserver.http.render import Renderer
from apiserver.http.requestinfo import RequestInfo, parse
from apiserver.http.senders import Senders
from apiserver.http.watching import Watching
from apiserver.observe.observer import Observer
from apiserver.resources.spec import Resource
from apiserver.rest.backend import Backend
from apiserver.rest.call import NO_BODY, Body, Call, ListAnswer
from apiserver.rest.convert import shown
from apiserver.rest.verbs import Verbs
from apiserver.settings import Settings
from apiserver.wire import negotiate
from apiserver.wire.negotiate import FORMATS, Wanted

MAX_BODY = 3 * 1024 * 1024
_LIMITS: Mapping[str, Any] = {"max_line_size": 1 << 20, "max_field_size": 1 << 20, "auto_decompress": False}
"""As upstream: a body that was compressed is not read, so that none can be a bomb."""


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
        settings: Settings,
        observer: Observer,
    ) -> None:
        self._backend = backend
        self._routes = routes
        self._senders = senders
        self._seconds = settings.budget.seconds
        self._in_flight = InFlight(settings.budget)
        self._deadlines = Deadlines(backend.clock)
        self._observer = observer
        self._renderer = renderer
        around = settings.around
        self._outcome: Proceed = self._end if around is None else partial(_through, around, self._end)
        self.watching = Watching(backend, renderer)
        self.server = Server(self._handle, access_log=None, **_LIMITS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except Exception as error:  # noqa: BLE001 - the outermost place: it becomes a Status, and a line in the log
            return respond.error_response(error)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        query = _parameters(request.query_string)
        watch = query.get("watch", ("",))[0] not in ("", "0", "false")
        info = parse(request.method, request.path, watch=watch)
        asked = Asked(request, info, query, await self._senders.sender(request))
        noted = self._observer.begin(asked)
        code, refusal = 0, b""
        try:
            response = await self._outcome(asked)
            code, refusal = response.status, respond.refusal(response)
        finally:
            self._observer.end(noted, code, answer=refusal)
        return response

    async def _end(self, asked: Asked) -> web.StreamResponse:
        """What a request comes to."""
        try:
            return await self._bounded(asked)
        except Exception as error:  # noqa: BLE001 - as in _handle; here the request is known, and noted with its end
            return respond.error_response(error)

    async def _bounded(self, asked: Asked) -> web.StreamResponse:
        info, user = asked.info, asked.user
        if is_long_running(info):
            return await self._serve(asked)
        seconds = allotted(asked.query.get("timeout", ()), self._seconds)
        if not self._in_flight.enter(info.verb, user):
            return respond.too_many_requests()
        try:
            return await self._deadlines.within(seconds, self._serve(asked))
        finally:
            self._in_flight.leave(info.verb)

    async def _serve(self, asked: Asked) -> web.StreamResponse:
        request, info = asked.http, asked.info
        await self._senders.require(asked.user, info)
        resource = (
            self._routes.resources(info.group, info.version, info.resource) if info.is_resource else None
        )
        if resource is None:
            return await self._page(request, info.path)
        call = await self._call(asked, resource)
        # A Scale is no custom object, whatever it is the Scale of.
        custom = call.resource.custom and not (call.subresource and call.subresource.kind)
        wanted = negotiate.wanted(header(request, hdrs.ACCEPT), custom=custom)
        if wanted is None:
            raise status.NotAcceptable(_NOT_ACCEPTABLE, Details())
        if call.verb == "watch":
            return await self.watching.serve(self.server, request, call, wanted)
        try:
            return await self._carry_out(request, call, wanted)
        except ApiError as error:
            return respond.error_response(error, call.warnings)

    async def _call(self, asked: Asked, resource: Resource) -> Call:
        request, info = asked.http, asked.info
        _check_that_it_can_be_asked_for(resource, info)
        body = NO_BODY
        if request.can_read_body:
            body = Body(data=await _read(request), media_type=header(request, hdrs.CONTENT_TYPE))
        return Call(
            verb=info.verb,
            resource=resource,
            subresource=resource.subresource(info.subresource) if info.subresource else None,
            namespace=info.namespace if resource.namespaced else "",
            name=info.name,
            query=asked.query,
            body=body,
            user=asked.user,
            user_agent=asked.user_agent,
            warnings=[resource.deprecated] if resource.deprecated else [],
        )

    async def _carry_out(self, request: web.BaseRequest, call: Call, wanted: Wanted) -> web.StreamResponse:
        subresource = call.subresource.name if call.subresource else ""
        carry_out = self._routes.verbs(call.resource.group_resource, subresource, call.verb)
        if carry_out is None:
            wanted_of = "/".join(filter(None, (call.resource.name, subresource)))
            raise MethodNotSupported(f"{call.verb} of {wanted_of} is not built into mockube yet", Details())
        answer = await carry_out(self._backend, call)
        answer = shown(self._backend, call.resource, answer)
        if isinstance(answer, ListAnswer):
            body, code = await self._renderer.collection(call, answer, wanted), 200
        else:
            body, code = [self._renderer.object(call, answer, wanted)], answer.code
        return await respond.response(
            request, body, code=code, content_type=wanted.format.value, warnings=call.warnings
        )

    async def _page(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        page = self._routes.pages.get(path.rstrip("/") or "/")
        if page is None:
            if self._is_of_a_group(path):
                raise _no_such_resource()
            return respond.text_response("404 page not found\n", 404)
        return await page(request)

    def _is_of_a_group(self, path: str) -> bool:
        """That is there: what is asked of another group is asked of nobody."""
        if path.startswith("/apis/"):
            return "/".join(path.split("/", 3)[:3]) in self._routes.pages
        return path.startswith("/api/")


async def _through(around: Around, proceed: Proceed, asked: Asked) -> web.StreamResponse:
    return await around(asked, proceed)


def _check_that_it_can_be_asked_for(resource: Resource, info: RequestInfo) -> None:
    if not info.is_plain:
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
    wrong_place = info.verb in _OF_ONE if not info.name else info.verb == "create" and not info.subresource
    if info.verb not in verbs or wrong_place:
        raise MethodNotSupported(_NOT_ALLOWED, Details())


_OF_ONE = frozenset({"get", "update", "patch", "delete"})
"""Verbs that need a name."""
_NOT_ALLOWED = "the server does not allow this method on the requested resource"
_NOT_ACCEPTABLE = f"406: Not Acceptable\n\nAvailable representations: {', '.join(f.value for f in FORMATS)}"


def _no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", Details())


def _parameters(query: str) -> Mapping[str, Sequence[str]]:
    if not query:
        return _NO_PARAMETERS
    return (_parse_usual_query if len(query) <= _USUAL_LENGTH else _parse_query)(query)


def _parse_query(query: str) -> Mapping[str, Sequence[str]]:
    return parse_qs(query, keep_blank_values=True)


_NO_PARAMETERS: Mapping[str, Sequence[str]] = {}
# Clients ask in the same few ways again and again; a long one is a rarity that shall not fill the memory.
_USUAL_LENGTH: Final = 255
_parse_usual_query = lru_cache(maxsize=1024)(_parse_query)


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
