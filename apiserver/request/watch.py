"""Serve watches as streams of frames; each frame is encoded once for all watches of the same format."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from mockube.apimachinery import randomness
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, BadRequest, Expired, NotAcceptable
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.authenticators import token_of_subprotocols
from mockube.apiserver.event_loop import LARGE, batches, yield_between_batches
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.watches import SentEvents
from mockube.apiserver.registry.body import decode_as
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import ListOptions, RequestContext
from mockube.apiserver.registry.watch_stream import ClientWatch, OpenWatch, WatchEvent, watch
from mockube.apiserver.storage.recent_changes import Encode
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.wire.frames import FRAMES, json_text
from mockube.apiserver.wire.negotiation import STREAMED_FORMATS, MediaType, OutputFormat, View
from mockube.apiserver.wire.table import parse_include_object
from mockube.component_base.loop import yield_to_loop

from .filter import FilterConfig
from .rendering import Renderer
from .request import BodySink, Frame, Request
from .response import Response
from .routes import NOT_STREAMED

LOG = logging.getLogger(__name__)

INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
FEW = 16
"""Fewer events than this are encoded at once, if their objects are small."""
BATCH_BYTES = 64 * 1024
"""The approximate number of bytes of several events that are written at once; a client that does not read costs a few times as
many.
"""
BOOKMARK_SECONDS = 60.0
NO_WATCHES: Final[Mapping[GroupResource, OpenWatch]] = {}
NO_REGISTRIES: Final[Mapping[str, Registry]] = {}
LAST_BOOKMARK_SECONDS = 2.0
"""How long before the end of a watch the last bookmark is sent, from which the client can resume."""
LENGTH_BYTES = 4
"""The length prefix of a protobuf frame in a stream; a WebSocket message has its own length."""


class WatchHandler:
    """Serves watches."""

    def __init__(
        self,
        registry: Registry,
        renderer: Renderer,
        config: FilterConfig,
        *,
        registries: Mapping[str, Registry] = NO_REGISTRIES,
        own_watches: Mapping[GroupResource, OpenWatch] = NO_WATCHES,
    ) -> None:
        """Create a handler. A watch without timeoutSeconds lasts for `watch_seconds` to twice as long, chosen at random.

        `registries` are those of resources that are not in the store of the cluster, by API group, and `own_watches` open the
        watches of resources that no store has.
        """
        self._least_seconds = config.watch_seconds
        self._registry, self._registries, self._own_watches = registry, registries, own_watches
        self._renderer = renderer
        self._metrics = config.watches
        self._encoder = lru_cache(maxsize=256)(self._make_encoder)
        self._streams: set[ClientWatch] = set()
        self._requests = config.hooks.watches

    def end_all(self) -> None:
        """End all watches after their pending events."""
        for stream in self._streams:
            stream.end(None)

    def expire_all(self) -> None:
        """End all watches, so that every client lists again: it may have missed changes."""
        for stream in self._streams:
            stream.end(Expired("The resourceVersion for the provided watch is too old."))

    async def serve(self, request: Request, context: RequestContext, output: OutputFormat) -> Response:
        client = request.client
        stream, options = await self._open(context)
        try:
            _check_output(context, output)
        except ApiError:
            stream.close()
            raise
        self._streams.add(stream)
        self._requests.add(request)
        request.client_watch = stream
        for apply in request.on_watch:
            apply(stream)
        seconds = self._seconds(options)
        registry = self._registry_of(context.resource)
        bookmark_timer = _BookmarkTimer(registry, stream, seconds) if options.bookmarks else None
        deadline = self._registry.clock.routine.call_later(seconds, lambda: stream.end(None))
        client.on_lost(lambda: stream.end(None))
        response, sink, sent = Response(200), None, self._metrics.of(context.resource)
        try:
            is_compressed = self._is_compressed(request, options)
            response, sink = _begin_response(
                request,
                output,
                context.report.warnings,
                lambda: stream.end(None),
                is_compressed=is_compressed,
            )
            await sink.begin()
            # Each event resumes the coroutines of a task's stack one by one: the stack of a request is deep, this one is not.
            sending = self._send(sink, context, output, stream, sent)
            await asyncio.create_task(sending, name="send the events of a watch")
            await sink.end()
        except ConnectionError:
            LOG.debug("the client of a watch disconnected")
        finally:
            if sink is not None:
                sink.release()
            client.on_lost(None)
            if stream.overflowed or client.is_cut:
                self._metrics.terminate(context.resource)
            request.streamed_bytes = sent.bytes
            self._streams.discard(stream)
            self._requests.discard(request)
            stream.close()
            deadline.cancel()
            if bookmark_timer is not None:
                bookmark_timer.cancel()
        return response

    async def _open(self, context: RequestContext) -> tuple[ClientWatch, ListOptions]:
        open_watch = self._own_watches.get(context.resource.group_resource, watch)
        return await open_watch(self._registry_of(context.resource), context)

    def _registry_of(self, resource: Resource) -> Registry:
        return self._registries.get(resource.group, self._registry)

    def _is_compressed(self, request: Request, options: ListOptions) -> bool:
        is_watch_list = bool(options.initial_events and options.bookmarks)
        return is_watch_list and request.accepts_gzip and self._registry.gates.is_on("WatchListCompression")

    async def _send(
        self,
        sink: BodySink,
        context: RequestContext,
        output: OutputFormat,
        stream: ClientWatch,
        sent: SentEvents,
    ) -> None:
        frame = self._framer(context, output, stream)
        is_plain = output.view is View.OBJECT and output.format is MediaType.JSON

        def size(event: WatchEvent) -> int:
            return 0 if is_plain else _stored_bytes(event)

        while events := await stream.take():
            if stream.is_converted_remotely:
                events = await stream.convert(events)
            elif len(events) < FEW and sum(map(_stored_bytes, events)) < LARGE:  # most are
                if frames := [*filter(None, map(frame, events))]:
                    sent.add(frames)
                    await sink.write(frames)
                continue
            # At most one batch is buffered for a client that does not read.
            for batch in batches(events, _stored_bytes, count=len(events), max_bytes=BATCH_BYTES):
                # A stored object with fields of wrong types has no frame.
                frames = await yield_between_batches(frame, batch, size=size, worker=self._registry.worker)
                if frames := [*filter(None, frames)]:
                    sent.add(frames)
                    await sink.write(frames)
                if batch is not events:
                    await yield_to_loop()
        if stream.error is not None:
            await sink.write([FRAMES[output.format]("ERROR", stream.error.status())])

    def _framer(
        self, context: RequestContext, output: OutputFormat, stream: ClientWatch
    ) -> Callable[[WatchEvent], bytes]:
        """Return the function that encodes an event; b"" for an object that cannot be read."""
        include = context.parameter("includeObject")
        encode = self._encoder(context.resource, include, output, header=output.view is View.TABLE)
        encode_next = self._encoder(context.resource, include, output, header=False)

        def frame(event: WatchEvent) -> bytes:
            nonlocal encode
            try:
                client_event = stream.to_client_version(event)
                if client_event is None:
                    return b""
                kind, stored, change = client_event.kind, client_event.stored, client_event.change
                if stored is None:
                    bookmark = self._bookmark(context, client_event, output, header=encode is not encode_next)
                    encoded = FRAMES[output.format](kind, bookmark)
                elif change is None:
                    encoded = encode(kind, stored)
                else:
                    encoded = change.frame(encode, kind, stored)
            except Exception as error:
                if event.stored is None:
                    raise
                self._registry.watch_cache.report_malformed(event.stored, error)
                return b""
            encode = encode_next
            return encoded

        return frame

    def _make_encoder(
        self, resource: Resource, include: str, output: OutputFormat, *, header: bool
    ) -> Encode:
        if output.view is View.OBJECT and output.format is MediaType.JSON:
            return _encode_json
        frame, render = FRAMES[output.format], self._renderer.event_object

        def encode(kind: str, stored: StoredObject) -> bytes:
            return frame(kind, render(resource, include, stored.tree(), output, header=header))

        return encode

    def _bookmark(
        self, context: RequestContext, event: WatchEvent, output: OutputFormat, *, header: bool
    ) -> Tree:
        """Return an object of the kind with a resourceVersion only, or its table or metadata."""
        metadata: Tree = {"resourceVersion": str(event.version)}
        if event.ends_initial:
            metadata["annotations"] = INITIAL_EVENTS_END
        bare = {
            "kind": context.resource.kind,
            "apiVersion": context.resource.api_version,
            "metadata": metadata,
        }
        decoded: Tree = decode_as(self._registry, bare).tree
        tree = {"kind": bare["kind"], "apiVersion": bare["apiVersion"]} | decoded
        # The end of the initial events is in the metadata, which are in the table even if no objects were requested.
        include = context.parameter("includeObject")
        if event.ends_initial and include == "None":
            include = "Metadata"
        return self._renderer.event_object(context.resource, include, tree, output, header=header)

    def _seconds(self, options: ListOptions) -> float:
        if options.timeout_seconds:
            return float(options.timeout_seconds)
        return self._least_seconds * (1 + randomness.fraction(self._registry.random))


def _check_output(context: RequestContext, output: OutputFormat) -> None:
    if output.view is View.TABLE:
        parse_include_object(context.parameter("includeObject"))
    if output.format not in STREAMED_FORMATS:
        raise NotAcceptable(NOT_STREAMED)


def _begin_response(
    request: Request,
    output: OutputFormat,
    warnings: Sequence[str],
    on_closed: Callable[[], None],
    *,
    is_compressed: bool,
) -> tuple[Response, BodySink]:
    """Return the response, and the sink of the events: a streamed body, or the messages of a WebSocket."""
    if request.is_websocket:
        return Response(101), request.messages(_subprotocols(request), _framing(output.format), on_closed)
    is_json = output.format is MediaType.JSON
    content_type = output.format.value if is_json else f"{output.format.value};stream=watch"
    response = Response(200, (), content_type, warnings=warnings)
    response.compressed = is_compressed
    return response, request.stream(response)


def _framing(written: MediaType) -> Frame:
    """Return the function that converts a frame to a WebSocket message: protobuf without its length prefix, or text."""
    return _without_length if written is MediaType.PROTOBUF else bytes.decode


def _without_length(part: bytes) -> bytes:
    return part[LENGTH_BYTES:]


def _subprotocols(request: Request) -> Sequence[str]:
    """Return the subprotocol of a watch: as upstream, the only one besides a bearer token's, whatever it is."""
    _, others = token_of_subprotocols(request.subprotocols)
    if len(others) > 1:
        raise BadRequest("a watch takes one subprotocol beside that of a bearer token")
    return others


def _stored_bytes(event: WatchEvent) -> int:
    return 0 if event.stored is None else len(event.stored.value)


class _BookmarkTimer:
    """Sends bookmarks at an interval, and one shortly before the end of the watch."""

    def __init__(self, registry: Registry, stream: ClientWatch, seconds: float) -> None:
        self._registry = registry
        self._stream = stream
        clock = registry.clock.routine
        self._next_bookmark = clock.call_later(BOOKMARK_SECONDS, self._schedule)
        before_end = seconds - LAST_BOOKMARK_SECONDS
        self._last_bookmark = clock.call_later(before_end, self._send_bookmark) if before_end > 0 else None

    def cancel(self) -> None:
        self._next_bookmark.cancel()
        if self._last_bookmark is not None:
            self._last_bookmark.cancel()

    def _schedule(self) -> None:
        self._next_bookmark = self._registry.clock.routine.call_later(BOOKMARK_SECONDS, self._schedule)
        self._send_bookmark()

    def _send_bookmark(self) -> None:
        self._stream.bookmark(self._registry.watch_cache.revision)


def _encode_json(kind: str, stored: StoredObject) -> bytes:
    return json_text(kind, stored.text)
