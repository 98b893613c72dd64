"""Requests in, responses out: the way of every request through the server, at one glance.

    is it for this server → parse the URL → who asks → (what is put around it) → is there room and time → may he → find the resource
    → carry the verb out → render

Errors anywhere on the way are raised as what they are and become responses here.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final
from urllib.parse import parse_qs

from aiohttp import hdrs, web

from mockube.apimachinery import status
from mockube.apimachinery.status import ApiError, Details, MethodNotSupported, NotFound, Unauthorized
from mockube.apiserver.authn.chain import ANONYMOUS
from mockube.apiserver.http import errors as respond
from mockube.apiserver.http.access import RequestAuthenticator, is_impersonation
from mockube.apiserver.http.body import read
from mockube.apiserver.http.connection import Connection
from mockube.apiserver.http.observer import Observer, RequestRecord
from mockube.apiserver.http.pages import NOT_ALLOWED, Pages
from mockube.apiserver.http.request import Asked, Middleware, Proceed, header
from mockube.apiserver.http.response import Answer
from mockube.apiserver.http.server import Server
from mockube.apiserver.http.settings import Settings
from mockube.apiserver.http.watch_handler import Watching
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import NO_BODY, Body, Call, ListAnswer
from mockube.apiserver.registry.convert import shown
from mockube.apiserver.registry.verbs import Verbs
from mockube.apiserver.request.deadlines import Deadlines
from mockube.apiserver.request.in_flight import InFlight, allotted, is_long_running, takes_long
from mockube.apiserver.request.rendering import Renderer
from mockube.apiserver.request.request_info import RequestInfo, parse
from mockube.apiserver.user import NOBODY, User
from mockube.apiserver.wire import negotiation as negotiate
from mockube.apiserver.wire.negotiation import FORMATS, Wanted

MAX_BODY = 3 * 1024 * 1024
_LIMITS: Mapping[str, Any] = {"auto_decompress": False}
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
        senders: RequestAuthenticator,
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
        self._hosts = settings.hosts
        self._observer = observer
        self._renderer = renderer
        around = settings.around
        self._outcome: Proceed = self._end if around is None else partial(_through, around, self._end)
        self.watching = Watching(backend, renderer, observer.terminate_watch)
        self.server = Server(self._handle, clock=settings.connection_clock, access_log=None, **_LIMITS)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self._hosts.check(request)
            query = _parameters(request.query_string)
            watch = query.get("watch", ("0",))[0].lower() not in ("0", "false")
            info = parse(request.method, request.path, watch=watch)
            try:
                user = await self._senders.authenticated(request, info)
            except Unauthorized as error:
                answer = respond.error_response(error)
                self._observer.reject(Asked(request, info, query, NOBODY), answer.status, answer.body)
                return answer
            return await self._answer(request, info, query, user)
        except Exception as error:  # noqa: BLE001 - the outermost place: it becomes a Status, and a line in the log
            return respond.error_response(error)

    async def _answer(
        self, request: web.BaseRequest, info: RequestInfo, query: Mapping[str, Sequence[str]], user: User
    ) -> web.StreamResponse:
        resource = None
        if info.is_resource:
            resource = self._routes.resources(info.group, info.version, info.resource)
        asked = Asked(request, info, query, user, resource)
        connection: web.RequestHandler = request.protocol
        if user is not ANONYMOUS and isinstance(connection, Connection):
            connection.is_authenticated = True
        noted = self._observer.begin(asked, resource)
        code, refusal = 0, b""
        try:
            if is_impersonation(request):
                await self._senders.impersonate(asked)
            response = await self._outcome(asked)
            code, refusal = response.status, respond.refusal(response)
            if isinstance(response, Answer) and response.is_large and isinstance(connection, Connection):
                await self._write(response, connection, noted, request)
        except ApiError as error:
            response = respond.error_response(error)
            code, refusal = response.status, response.body
        finally:
            if asked.in_flight:
                self._in_flight.leave(info.verb)
            self._observer.end(noted, asked, code, answer=refusal)
        return response

    async def _write(
        self, answer: Answer, connection: Connection, noted: RequestRecord, request: web.BaseRequest
    ) -> None:
        """Write a large answer here, while it counts among those in flight: its client may read slowly, or not at all."""
        try:
            await answer.prepare(request)
            await self._deadlines.within(self._seconds, answer.write_eof())
        except status.ApiError:  # too late to say so
            if connection.transport is not None:
                connection.transport.abort()
            self._observer.abort(noted)
        except ConnectionError:
            if connection.is_cut:
                self._observer.abort(noted)

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
        has_deadline = not takes_long(info)
        seconds = allotted(asked.query.get("timeout", ()), self._seconds) if has_deadline else 0.0
        if not self._in_flight.enter(info.verb, user):
            return respond.too_many_requests()
        asked.in_flight = True
        served = self._serve(asked)
        return await (self._deadlines.within(seconds, served) if has_deadline else served)

    async def _serve(self, asked: Asked) -> web.StreamResponse:
        request, info = asked.http, asked.info
        await self._senders.require(asked)
        resource = asked.resource
        if resource is None:
            return await self._page(request, info.path)
        call = await self._call(asked, resource)
        # A Scale is no custom object, whatever it is the Scale of.
        custom = resource.custom and not (call.subresource and call.subresource.kind)
        wanted = negotiate.wanted(header(request, hdrs.ACCEPT), custom=custom)
        if wanted is None:
            of_lists = info.verb in _OF_ALL_NAMESPACES
            raise status.NotAcceptable(_NOT_ACCEPTABLE_OF_LISTS if of_lists else _NOT_ACCEPTABLE, Details())
        if call.verb == "watch":
            return await self.watching.serve(self.server, request, call, wanted)
        try:
            return await self._carry_out(request, call, wanted)
        except ApiError as error:
            return respond.error_response(error, call.warnings)

    async def _call(self, asked: Asked, resource: Resource) -> Call:
        request, info = asked.http, asked.info
        _check_that_it_can_be_asked_for(resource, info)
        if request.method == hdrs.METH_HEAD:  # authorized as a get, and served on pages alone
            raise MethodNotSupported(NOT_ALLOWED, Details())
        body = NO_BODY
        if request.can_read_body:
            reading = read(request, MAX_BODY)
            data = await (
                self._deadlines.within(self._seconds, reading) if is_long_running(info) else reading
            )
            body = Body(data=data, media_type=header(request, hdrs.CONTENT_TYPE))
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
        answer = await shown(self._backend, call.resource, answer)
        if isinstance(answer, ListAnswer):
            body, code = await self._renderer.collection(call, answer, wanted), 200
        else:
            body, code = [await self._renderer.object_off_loop(call, answer, wanted)], answer.code
        return respond.response(
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


async def _through(around: Middleware, proceed: Proceed, asked: Asked) -> web.StreamResponse:
    return await around(asked, proceed)


def _check_that_it_can_be_asked_for(resource: Resource, info: RequestInfo) -> None:
    if not info.is_plain:
        raise _no_such_resource()
    if info.namespace and not resource.namespaced and info.namespace != info.name:
        raise _no_such_resource()
    verbs = resource.verbs
    here: Collection[str] = _OF_ONE if info.name else _OF_ALL
    if info.subresource:
        subresource = resource.subresource(info.subresource)
        if subresource is None:
            raise _no_such_resource()
        verbs = here = subresource.verbs
    elif resource.namespaced and not info.namespace:
        # Of custom objects upstream looks at the verb first.
        is_there = not resource.custom or info.verb in _OF_ALL_NAMESPACES
        here = _OF_ALL_NAMESPACES if is_there and not info.name else ()
    if info.verb in verbs and info.verb in here:
        return
    if not any(verb in verbs for verb in here):
        raise _no_such_resource()
    raise MethodNotSupported(NOT_ALLOWED, Details())


_OF_ONE = frozenset({"get", "update", "patch", "delete", "watch"})
"""Verbs that need a name. A path is there if the resource has any of those that belong to it."""
_OF_ALL = frozenset({"create", "list", "watch", "deletecollection"})
_OF_ALL_NAMESPACES = frozenset({"list", "watch"})
_FORMATS = ", ".join(_format.value for _format in FORMATS)
_NOT_ACCEPTABLE = f"406: Not Acceptable\n\nAvailable representations: {_FORMATS}"
_NOT_ACCEPTABLE_OF_LISTS = (
    f"{_NOT_ACCEPTABLE}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
)


def _no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", Details())


def _parameters(query: str) -> Mapping[str, Sequence[str]]:
    if not query:
        return _NO_PARAMETERS
    return (_parse_usual_query if len(query) <= _USUAL_LENGTH else _parse_query)(query)


def _parse_query(query: str) -> Mapping[str, Sequence[str]]:
    """Return the parameters; as in Go, a pair with a semicolon or a wrong escape is none."""
    if ";" in query or _WRONG_ESCAPE.search(query):
        pairs = query.split("&")
        query = "&".join(pair for pair in pairs if ";" not in pair and not _WRONG_ESCAPE.search(pair))
    return parse_qs(query, keep_blank_values=True)


_NO_PARAMETERS: Mapping[str, Sequence[str]] = {}
_WRONG_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
# Clients ask in the same few ways again and again; a long one is a rarity that shall not fill the memory.
_USUAL_LENGTH: Final = 255
_parse_usual_query = lru_cache(maxsize=1024)(_parse_query)
