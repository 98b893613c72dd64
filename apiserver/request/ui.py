"""The page of `mockube ui`: its files, and the exchange of a one-time token for the token of a session.

The files are the same on every server, and contain nothing of a cluster, so that they need no credentials. All but the index lie in a
folder whose name is a hash of their content, and can be cached for ever. docs/decisions/0050-page.md has the reasons.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

import msgspec
import orjson

from mockube.apimachinery.status import BadRequest, Details, MethodNotSupported, UnsupportedMediaType
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.authn.authenticators import PresentedCredentials
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.component_base.clock import Clock

from .filter import FilterConfig, Handle
from .limits import Deadlines
from .request import AUTHORIZATION, CONTENT_TYPE, Request
from .response import JSON, Response

ROOT: Final = "/mockube/ui"
_BELOW: Final = f"{ROOT}/"
SESSION: Final = f"{ROOT}/session"
INDEX: Final = "index.html"
_FOLDER: Final = b"{folder}"
"""What stands in the index for the folder of the other files."""
_MAX_BODY: Final = 4096
_BODY_SECONDS: Final = 5.0
"""How long a client may take to send the body: nobody is authenticated yet."""
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_POLICY: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
_HEADERS: Final = {
    "Content-Security-Policy": "; ".join(_POLICY),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_KEPT: Final = {**_HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
_NOT_STORED: Final = {**_HEADERS, "Cache-Control": "no-store"}


class _Exchange(msgspec.Struct, forbid_unknown_fields=True):
    token: str


class UserInterface:
    """Serves what lies below `ROOT`."""

    def __init__(
        self, read_files: Callable[[], Mapping[str, bytes]], sessions: PageSessions, clock: Clock
    ) -> None:
        """`read_files` returns the files by their names; it is called at the first request. `clock` is the machine's."""
        self._read_files, self._sessions, self._deadlines = read_files, sessions, Deadlines(clock)

    @cached_property
    def _files(self) -> Mapping[str, Response]:
        """The responses, by path."""
        files = dict(self._read_files())
        digest = hashlib.sha256()
        for name, content in sorted(files.items()):
            digest.update(b"%s\0%d\0%s" % (name.encode(), len(content), content))
        folder = digest.hexdigest()[:16]
        index = files.pop(INDEX).replace(_FOLDER, f"{ROOT}/{folder}".encode())
        responses = {
            f"{ROOT}/{folder}/{name}": Response(200, [content], _type_of(name), headers=_KEPT)
            for name, content in files.items()
        }
        headers = {**_HEADERS, "Cache-Control": "no-cache", "Etag": f'"{folder}"'}
        responses[f"{ROOT}/"] = Response(200, [index], _type_of(INDEX), headers=headers)
        return responses

    async def serve(self, request: Request) -> Response:
        request.client.set_unauthenticated()
        if request.path == SESSION:
            return await self._session(request)
        if request.method not in ("GET", "HEAD"):
            raise MethodNotSupported(f"{request.path} supports GET, not {request.method}", Details())
        if request.path == ROOT:
            return Response(308, headers={**_NOT_STORED, "Location": f"{ROOT}/"})
        response = self._files.get(request.path)
        if response is None:
            return Response(404, [b"404 page not found\n"], _TYPES["txt"], headers=_NOT_STORED)
        if response.headers.get("Etag", "") == request.header("If-None-Match") != "":
            return Response(304, headers=response.headers)
        return response

    async def _session(self, request: Request) -> Response:
        if request.method == "DELETE":
            self._sessions.end(PresentedCredentials(request.header(AUTHORIZATION)))
            return Response(204, content_type="", headers=_NOT_STORED)
        if request.method != "POST":
            raise MethodNotSupported(f"{SESSION} supports POST and DELETE, not {request.method}", Details())
        if (
            request.header(CONTENT_TYPE).partition(";")[0].strip() != JSON
        ):  # a form of another site has no such type
            raise UnsupportedMediaType(f"{SESSION} supports {JSON}", Details())
        body = await self._deadlines.within(_BODY_SECONDS, request.client.read(_MAX_BODY))
        try:
            exchange = msgspec.json.decode(body, type=_Exchange)
        except msgspec.MsgspecError as error:
            raise BadRequest(f'the body is not {{"token": "..."}}: {error}', Details()) from error
        issued, _user = self._sessions.exchange(exchange.token)
        expires = format_time(datetime.fromtimestamp(issued.expires, UTC))
        answer = orjson.dumps({"token": issued.token, "expirationTimestamp": expires})
        return Response(201, [answer], headers=_NOT_STORED)


def _type_of(name: str) -> str:
    return _TYPES[name.rpartition(".")[2]]


def with_ui(handle: Handle, config: FilterConfig) -> Handle:
    """Serve the page, which needs no user; a server without control has none."""
    serve = config.serve_ui
    if serve is None:
        return handle

    def filter_(request: Request) -> Awaitable[Response]:
        path = request.path
        is_of_page = path.startswith(ROOT) and (path == ROOT or path.startswith(_BELOW))
        return serve(request) if is_of_page else handle(request)

    return filter_
