"""A watch over HTTP: a stream of frames, each encoded once for everybody who wants it so."""

import logging
from functools import lru_cache

from aiohttp import web

from apimachinery import chance as chances
from apimachinery.status import Expired
from apiserver.http import streams
from apiserver.http.connections import Server
from apiserver.http.render import Renderer
from apiserver.http.streams import Sink
from apiserver.http.turns import in_turns
from apiserver.resources.spec import Resource
from apiserver.rest.backend import Backend
from apiserver.rest.body import decode_as
from apiserver.rest.call import Call
from apiserver.rest.options import ListOptions
from apiserver.rest.watch import Event, Stream, watch
from apiserver.storage.change import Encode
from apiserver.storage.stored import Stored, Tree
from apiserver.wire.frames import FRAMES, json_text
from apiserver.wire.negotiate import Format, View, Wanted

LOG = logging.getLogger(__name__)

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0
"""Before the end of a watch, so that the client can go on from there."""
LEAST_SECONDS = 1800
"""How long a watch lasts, if the client does not say: so long, or by chance up to twice that."""


class Watching:
    """Serves watches."""

    def __init__(self, backend: Backend, renderer: Renderer) -> None:
        self._backend = backend
        self._renderer = renderer
        self._encoder = lru_cache(maxsize=256)(self._make_encoder)
        self._streams: set[Stream] = set()

    def end_all(self) -> None:
        """Let every client have what is due to it, and then the end of its watch."""
        for stream in self._streams:
            stream.end(None)

    def expire_all(self) -> None:
        """Have every client list anew: it may have missed what happened."""
        for stream in self._streams:
            stream.end(Expired("The resourceVersion for the provided watch is too old."))

    async def serve(
        self, server: Server, request: web.BaseRequest, call: Call, wanted: Wanted
    ) -> web.StreamResponse:
        stream, options = await watch(self._backend, call)
        self._streams.add(stream)
        seconds = self._seconds(options)
        reminder = _Reminder(self._backend, stream, seconds) if options.bookmarks else None
        deadline = self._backend.clock.call_later(seconds, lambda: stream.end(None))
        server.on_lost(request, lambda: stream.end(None))
        sink = streams.sink(request, wanted, on_closed=lambda: stream.end(None))
        try:
            await sink.begin()
            await self._send(sink, call, wanted, stream)
            await sink.end()
        except ConnectionError:
            LOG.debug("the client of a watch is gone")
        finally:
            sink.release()
            server.forget(request)
            self._streams.discard(stream)
            stream.close()
            deadline.cancel()
            if reminder is not None:
                reminder.cancel()
        return sink.response

    async def _send(self, sink: Sink, call: Call, wanted: Wanted, stream: Stream) -> None:
        first = True

        def frame(event: Event) -> bytes:
            nonlocal first
            made = self._frame(call, wanted, event, first=first)
            first = False
            return made

        while events := await stream.take():
            await sink.write(await in_turns(frame, events))
        if stream.error is not None:
            await sink.write([FRAMES[wanted.format]("ERROR", stream.error.status())])

    def _frame(self, call: Call, wanted: Wanted, event: Event, *, first: bool) -> bytes:
        if event.stored is None:
            return FRAMES[wanted.format](event.kind, self._bookmark(call, event, wanted))
        header = first and wanted.view is View.TABLE
        encode = self._encoder(call.resource, call.parameter("includeObject"), wanted, header=header)
        if event.change is None:
            return encode(event.kind, event.stored)
        return event.change.frame(encode, event.kind, event.stored)

    def _make_encoder(self, resource: Resource, include: str, wanted: Wanted, *, header: bool) -> Encode:
        if wanted.view is View.OBJECT and wanted.format is Format.JSON:
            return _encode_json
        frame, render = FRAMES[wanted.format], self._renderer.event_object

        def encode(kind: str, stored: Stored) -> bytes:
            return frame(kind, render(resource, include, stored, wanted, header=header))

        return encode

    def _bookmark(self, call: Call, event: Event, wanted: Wanted) -> Tree:
        """An object of the kind that has nothing but a version."""
        metadata: Tree = {"resourceVersion": str(event.version)}
        if event.ends_initial:
            metadata["annotations"] = INITIAL_EVENTS_END
        if wanted.view is View.PARTIAL:
            return {
                "kind": "PartialObjectMetadata",
                "apiVersion": f"meta.k8s.io/{wanted.version}",
                "metadata": metadata,
            }
        if wanted.view is View.TABLE:
            kind = {"kind": "Table", "apiVersion": f"meta.k8s.io/{wanted.version}"}
            return kind | {"metadata": {}, "columnDefinitions": [], "rows": []}
        bare = {"kind": call.resource.kind, "apiVersion": call.resource.api_version, "metadata": metadata}
        decoded: Tree = decode_as(self._backend, bare).tree
        return {"kind": bare["kind"], "apiVersion": bare["apiVersion"]} | decoded

    def _seconds(self, options: ListOptions) -> float:
        if options.timeout_seconds:
            return float(options.timeout_seconds)
        return LEAST_SECONDS * (1 + chances.fraction(self._backend.chance))


class _Reminder:
    """Bookmarks now and then, and one shortly before the end."""

    def __init__(self, backend: Backend, stream: Stream, seconds: float) -> None:
        self._backend = backend
        self._stream = stream
        clock = backend.clock
        self._every = clock.call_later(BOOKMARK_SECONDS, self._again)
        self._last = clock.call_later(max(seconds - LAST_BOOKMARK_SECONDS, 0.0), self._remind)

    def cancel(self) -> None:
        self._every.cancel()
        self._last.cancel()

    def _again(self) -> None:
        self._remind()
        self._every = self._backend.clock.call_later(BOOKMARK_SECONDS, self._again)

    def _remind(self) -> None:
        self._stream.bookmark(self._backend.mirror.revision)


def _encode_json(kind: str, stored: Stored) -> bytes:
    return json_text(kind, stored.text)
