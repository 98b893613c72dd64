"""Serve `/mockube/snapshot`: GET returns the content of the store at one revision, PUT replaces it with a snapshot.

The revision of a GET is the newest, or that of the parameter `resourceVersion`; the parameter `snapshot` names a Snapshot instead.

Watches receive the restored objects as changes at one revision.
"""

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Final, TypeAlias

import orjson

from mockube.apimachinery.status import BadRequest, Conflict, MethodNotSupported
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.registry.read import list_version
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.revisions import at_revision
from mockube.apiserver.snapshot_files import check_snapshot, restore_target
from mockube.apiserver.storage.journal import Author
from mockube.component_base.supervision import run_to_end
from mockube.etcd.archive.read import Archive, BadArchive
from mockube.etcd.archive.restore import NotEmpty, restore
from mockube.etcd.archive.write import archive
from mockube.etcd.embedded.store import EmbeddedStore
from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV, Revision

from .limits import Deadlines
from .page import Page
from .request import BodySink, Request
from .response import Response

LOG = logging.getLogger(__name__)

PATH: Final = "/mockube/snapshot"
MAX_SNAPSHOT_BYTES: Final = 1 << 30
"""The maximum of bytes of a compressed snapshot in a PUT, enough for about ten million objects."""
BODY_SECONDS: Final = 300.0
"""How long a client may take to send a snapshot, which counts as a write in flight."""
FIELD_MANAGER: Final = "mockube-restore"
"""The field manager of the writes of a restore, which tells them from those of its user."""
_TYPE: Final = "application/gzip"
_HEADERS: Final = {"Cache-Control": "no-store"}
_NEEDS_EMBEDDED_STORE: Final = (
    "the store is an etcd, which others may be using: stop the API servers and the managers, and restore into it "
    "with `mockube snapshot restore FILE --etcd-servers URL`"
)


OnRestored: TypeAlias = Sequence[Callable[[], Awaitable[None]]]
"""Awaited after the objects of the store were replaced."""


FindSnapshot: TypeAlias = Callable[[str], bytes]
"""Returns the content of a Snapshot; raises NotFound if there is none of this name."""


def page(
    backend: Backend, kv: KV, on_restored: OnRestored, find_snapshot: FindSnapshot | None = None
) -> Page:
    """Return the page of a store. `on_restored` are called after a PUT, to restore the system objects of this server."""
    deadlines = Deadlines(backend.clock.real)

    async def serve(request: Request) -> Response:
        match request.method:
            case "GET":
                if find_snapshot is not None and (name := _first_value(request, "snapshot")):
                    return Response(200, [find_snapshot(name)], _TYPE, headers=_HEADERS)
                return await _send_snapshot(request, backend, kv)
            case "PUT":
                return await _restore_snapshot(request, backend, kv, deadlines, on_restored)
            case method:
                raise MethodNotSupported(f"{PATH} supports GET and PUT, not {method}")

    return serve


async def _send_snapshot(request: Request, backend: Backend, kv: KV) -> Response:
    revision = list_version(_first_value(request, "resourceVersion"))
    taken_at = format_time(backend.clock.now())
    pieces = archive(kv, backend.layout.root, taken_at=taken_at, revision=revision)
    response = Response(200, (), _TYPE, headers=_HEADERS)
    async with aclosing(pieces):
        first = await at_revision(anext(pieces))  # raises errors before the response begins
        sink = request.stream(response)
        await sink.begin()
        await sink.write([first])
        await _write_rest(request, sink, pieces)
    return response


async def _write_rest(request: Request, sink: BodySink, pieces: AsyncIterator[bytes]) -> None:
    try:
        async for piece in pieces:
            await sink.write([piece])
    except KVError as error:
        LOG.warning("a snapshot could not be sent completely: %s", error)
        request.client.abort()  # so that it does not look complete
        return
    await sink.end()


async def _restore_snapshot(
    request: Request, backend: Backend, kv: KV, deadlines: Deadlines, on_restored: OnRestored
) -> Response:
    if not isinstance(kv, EmbeddedStore):
        raise BadRequest(_NEEDS_EMBEDDED_STORE)
    body = io.BytesIO(await deadlines.within(BODY_SECONDS, request.client.read(MAX_SNAPSHOT_BYTES)))
    replace = _first_value(request, "replace") == "true"
    try:
        name = _first_value(request, "name", "what was sent")
        snapshot = await asyncio.to_thread(check_snapshot, body, name)
    except BadArchive as error:
        raise BadRequest(str(error)) from error
    # It is not undone: it goes on if the client leaves.
    work = _restore(backend, kv, snapshot, _author(request), on_restored, replace=replace)
    revision = await run_to_end("snapshot-restore", work)
    if isinstance(revision, NotEmpty):
        raise Conflict(str(revision)) from revision
    return Response(200, [orjson.dumps({"objects": snapshot.count, "revision": revision})])


async def _restore(
    backend: Backend,
    kv: KV,
    snapshot: Archive,
    author: Author,
    on_restored: OnRestored,
    *,
    replace: bool,
) -> Revision | NotEmpty:
    """Return the revision with the objects of a snapshot, or why nothing was restored."""
    try:
        target, note = restore_target(backend.layout.root), backend.journal.record(author)
        revision = await restore(kv, snapshot, target, replace=replace, note=note)
    except NotEmpty as error:
        return error
    if revision is None:  # the newest revision has another author, or none
        revision = (await kv.status()).revision
    else:
        backend.journal.note(revision, author)
    await backend.watch_cache.wait_reached(revision)
    LOG.warning("A snapshot with %d objects replaced all objects", snapshot.count)
    for callback in on_restored:
        await callback()
    return revision


def _author(request: Request) -> Author:
    return Author.of(
        user=request.user.name,
        agent=request.user_agent,
        verb="restore",
        manager=FIELD_MANAGER,
        audit_id=request.audit_id,
    )


def _first_value(request: Request, name: str, default: str = "") -> str:
    return request.query.get(name, (default,))[0]
