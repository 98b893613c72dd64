"""Requests in, responses out: the way of every request through the server, at one glance.

    parse the URL → who asks → find the resource → carry the verb out → render the answer

Errors anywhere on the way are raised as what they are and become responses here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import parse_qs

from aiohttp import web

from apimachinery import status
from apimachinery.status import Details, MethodNotSupported, NotFound
from apiserver.authn.chain import Authentication
from apiserver.http import respond
from apiserver.http.connections import Server
from apiserver.http.pages import Pages
from apiserver.http.render import Renderer
from apiserver.http.requestinfo import RequestInfo, parse
from apiserver.http.watching import Watching
from apiserver.resources.spec import Resource
from apiserver.rest.backend import Backend
from apiserver.rest.call import Body, Call, ListAnswer, User
from apiserver.rest.verbs import verb
from apiserver.wire import negotiate
from apiserver.wire.negotiate import FORMATS, Wanted

MAX_BODY = 3 * 1024 * 1024
_BAD_PATH = re.compile(r"%2[fF]|//|/\.{1,2}(?:/|$)")


class Handler:
    """Answers every request."""

    def __init__(
        self,
        backend: Backend,
        *,
        resources: Callable[[str, str, str], Resource | None],
        pages: Pages,
        authentication: Authentication,
        renderer: Renderer,
    ) -> None:
        self._backend = backend
        self._resources = resources
        self._pages = pages
        self._authentication = authentication
        self._renderer = renderer
        self.watching = Watching(backend, renderer)
        self.server = Server(self._handle, access_log=None, max_line_size=1 << 20, max_field_size=1 << 20)

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
        headers, path = request.headers, request.path
        info = parse(request.method, path, watch=watch)
        user = self._authentication.authenticate(headers.get("Authorization", ""), path)
        if not info.is_resource:
            return await self._page(request, path)
        call = await self._call(request, info, query, user)
        wanted = negotiate.wanted(headers.get("Accept", ""))
        if wanted is None:
            raise status.NotAcceptable(_NOT_ACCEPTABLE, Details())
        if call.verb == "watch":
            return await self.watching.serve(self.server, request, call, wanted)
        return await self._carry_out(request, call, wanted)

    async def _call(
        self, request: web.BaseRequest, info: RequestInfo, query: Mapping[str, Sequence[str]], user: User
    ) -> Call:
        resource = self._find(info)
        body = Body(data=b"")
        if request.can_read_body:
            data = await _read(request)
            body = Body(data=data, media_type=request.headers.get("Content-Type", ""))
        return Call(
            verb=info.verb,
            resource=resource,
            subresource=resource.subresource(info.subresource) if info.subresource else None,
            namespace=info.namespace if resource.namespaced else "",
            name=info.name,
            query=query,
            body=body,
            user=user,
            user_agent=request.headers.get("User-Agent", ""),
        )

    def _find(self, info: RequestInfo) -> Resource:
        resource = self._resources(info.group, info.version, info.resource)
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
        if info.verb not in verbs or (info.name and info.verb == "create" and not info.subresource):
            raise MethodNotSupported(_NOT_ALLOWED, Details())
        return resource

    async def _carry_out(self, request: web.BaseRequest, call: Call, wanted: Wanted) -> web.Response:
        carry_out = verb(
            call.resource.group_resource, call.subresource.name if call.subresource else "", call.verb
        )
        if carry_out is None:
            raise MethodNotSupported(_NOT_ALLOWED, Details())
        answer = await carry_out(self._backend, call)
        now = self._backend.clock.now()
        if isinstance(answer, ListAnswer):
            body, code = self._renderer.collection(call, answer, wanted, now), 200
        else:
            body, code = self._renderer.object(call, answer, wanted, now), answer.code
        return respond.response(
            request, body, code=code, content_type=wanted.format.value, warnings=call.warnings
        )

    async def _page(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        page = self._pages.get(path.rstrip("/") or "/")
        if page is None:
            if path.startswith(("/api/", "/apis/")):
                raise _no_such_resource()
            return respond.text_response("404 page not found\n", 404)
        return await page(request)


_NOT_ALLOWED = "the server does not allow this method on the requested resource"
_NOT_ACCEPTABLE = f"406: Not Acceptable\n\nAvailable representations: {', '.join(f.value for f in FORMATS)}"


def _no_such_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", Details())


async def _read(request: web.BaseRequest) -> bytes:
    """The body, as long as it is not too long."""
    if (request.content_length or 0) > MAX_BODY:
        raise status.request_entity_too_large(f"limit is {MAX_BODY}")
    data = bytearray()
    async for chunk in request.content.iter_any():
        data += chunk
        if len(data) > MAX_BODY:
            raise status.request_entity_too_large(f"limit is {MAX_BODY}")
    return bytes(data)
