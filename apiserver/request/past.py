"""Serve `/mockube/at/MOMENT/…`: the API of a moment of the past, which can only be read.

MOMENT is a revision, the name of a Mark or a time. The path after it is that of a request to the present: the filters
authenticate, authorize and audit it as such, with the rights of now, and here another server answers it, which is made from the
store as it was: its objects, definitions, discovery and columns. Reviews and `/version` are answered by the present.
Without a path, the revision of the moment is returned; only there it may be relative, such as -5m, because it would
be another one at each request.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import orjson

from mockube.apimachinery import status
from mockube.apimachinery.groups import NO_RESOURCE
from mockube.apimachinery.status import BadRequest, Details, MethodNotSupported
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.moments import Moment, Moments
from mockube.apiserver.registry.revisions import at_revision
from mockube.apiserver.request_info import CONNECT_SUBRESOURCES
from mockube.apiserver.user import ANONYMOUS
from mockube.etcd.kv import Revision

from .request import Request
from .response import Response

PAST_PREFIX: Final = "/mockube/at/"
MOMENT_PATH: Final = "/version"
"""Who may request this path may learn the revision of a moment, unless nobody knows who it is."""
NO_MOMENT: Final = '""'
MAX_MOMENTS: Final = 4
MAX_OBJECTS: Final = 50_000
"""The moments that are kept, the least recently used go first: at most so many, and of so many objects, but always one.
One takes 2.5 MB, and 1 to 2 kB for each object.
"""
MAX_BUILT_AT_ONCE: Final = 2
REVIEW_GROUPS: Final = ("authentication.k8s.io", "authorization.k8s.io")
"""Rights are those of now."""
READS: Final = ("GET", "HEAD")


def split_moment(path: str) -> tuple[str, str]:
    """Return the moment and the path after it, which is "" if there is none."""
    moment, slash, rest = path.removeprefix(PAST_PREFIX).partition("/")
    return moment or NO_MOMENT, slash + rest if rest else ""


async def no_past(_request: Request, _present: "Present") -> Response:
    raise BadRequest("this server has no past", Details())


class PastServer(Protocol):
    """The server of one moment."""

    @property
    def object_count(self) -> int: ...

    async def serve(self, request: Request) -> Response: ...

    def end_streams(self) -> None: ...


class Present(Protocol):
    """The endpoints of the present."""

    async def serve(self, request: Request) -> Response: ...


class Past:
    """Finds the moments of requests, and keeps the servers of a few."""

    def __init__(
        self,
        moments: Moments,
        make_server: Callable[[Moment], Awaitable[PastServer]],
        *,
        find: Callable[[str, str, str], Resource | None],
    ) -> None:
        """`find` returns the resources of the present."""
        self.moments = moments
        self._make_server = make_server
        self._find = find
        self._servers: dict[Revision, asyncio.Task[PastServer]] = {}
        """The least recently used one is the first."""
        self._waiting = Counter[Revision]()
        """The number of requests that wait for each of them."""
        self._building = asyncio.Semaphore(MAX_BUILT_AT_ONCE)

    async def serve(self, request: Request, present: Present) -> Response:
        """Serve a request for a moment. `present` has passed it on."""
        info, text = request.info, request.moment
        if info.is_resource and info.group in REVIEW_GROUPS:
            return await self._ask_present(request, present)
        if not info.is_resource and ANONYMOUS.groups[0] in request.user.groups:
            # Its paths, such as the version, are public, but neither is the name of a Mark nor when something was written.
            raise status.forbidden(
                NO_RESOURCE, "", f'User "{request.user.name}" cannot {info.verb} path "{PAST_PREFIX}{text}"'
            )
        moment = await self.moments.find(text)
        if request.method not in READS or info.subresource in CONNECT_SUBRESOURCES:
            raise MethodNotSupported(_refusal(request, moment), Details())
        if not request.path:
            return _describe(moment, text)
        if request.path == MOMENT_PATH:
            return await self._ask_present(request, present)
        if text.startswith("-"):
            raise BadRequest(
                f"{text} is another moment at each request: use {PAST_PREFIX}{moment.revision}, which it is now",
                Details(),
            )
        server = await at_revision(self._server_of(moment))
        request.moment = ""  # the paths of that server lead into no other moment
        return await server.serve(request)

    def end_streams(self) -> None:
        """End the watches of all moments: the server stops."""
        for task in self._servers.values():
            _end_streams(task)

    async def close(self) -> None:
        for task in self._servers.values():
            task.cancel()
        await asyncio.gather(*self._servers.values(), return_exceptions=True)

    async def _ask_present(self, request: Request, present: Present) -> Response:
        info, request.moment = request.info, ""
        if info.is_resource:
            request.resource = self._find(info.group, info.version, info.resource)
        return await present.serve(request)

    async def _server_of(self, moment: Moment) -> PastServer:
        revision = moment.revision
        task = self._servers.pop(revision, None)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = asyncio.get_running_loop().create_task(
                self._make(moment), name=f"server of revision {revision}"
            )
        self._servers[revision] = task
        self._waiting[revision] += 1
        try:
            return await asyncio.shield(task)  # other requests may wait for it
        finally:
            self._waiting[revision] -= 1
            self._drop_unused()

    async def _make(self, moment: Moment) -> PastServer:
        async with self._building:
            return await self._make_server(moment)

    def _drop_unused(self) -> None:
        self._waiting = +self._waiting
        counts = {
            revision: task.result().object_count
            for revision, task in self._servers.items()
            if task.done() and not task.cancelled() and task.exception() is None
        }
        for revision in [*self._servers][:-1]:
            if len(self._servers) <= MAX_MOMENTS and sum(counts.values()) <= MAX_OBJECTS:
                break
            if self._waiting[revision]:
                continue
            counts.pop(revision, None)
            task = self._servers.pop(revision)
            if not task.done():
                task.cancel()
            _end_streams(task)


def _end_streams(task: asyncio.Task[PastServer]) -> None:
    if task.done() and not task.cancelled() and task.exception() is None:
        task.result().end_streams()


def _describe(moment: Moment, text: str) -> Response:
    tree = {"moment": text, "revision": moment.revision}
    if moment.time is not None:
        tree["time"] = format_micro_time(moment.time)
    return Response(200, [orjson.dumps(tree)])


def _refusal(request: Request, moment: Moment) -> str:
    time = "" if moment.time is None else f", {format_time(moment.time)}"
    subresource = request.info.subresource
    if subresource in CONNECT_SUBRESOURCES:
        return f"this is the past, at revision {moment.revision}{time}: its containers do not run any more, so there is no {subresource}"
    return f"this is the past, at revision {moment.revision}{time}: it can be read, and not changed"
