"""List and watch one resource, and pass its objects and events to a `Sink`.

The reflector stores only the revision to resume from. If the server supports it, the initial objects are the initial
events of the watch; else they are listed in pages. A watch that ends is resumed at its last revision. All objects are
listed again if that revision is compacted, or if the server was unreachable, since it may have another history now. A
server that is too busy for a new connection is not taken for one: lists would keep it busy.
"""

import logging
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Final, NamedTuple, Never, Protocol

import orjson

from mockube.apimachinery import meta, status
from mockube.apimachinery.randomness import Random, fraction
from mockube.apimachinery.status import ApiError
from mockube.client.flowcontrol import Backoff
from mockube.client.metrics.informers import InformerStats
from mockube.client.verbs import AnyResource, Client, Parsed
from mockube.client.wire import ConnectTimeout, NoResponse, Unreachable
from mockube.component_base.clock import Clock

PAGE: Final = 500
MIN_WATCH_SECONDS: Final = 300
"""The minimum timeout of a watch in seconds; a random value up to twice as long is used, so that not all end at once."""
TIMEOUT_GRACE: Final = 15.0
"""Seconds after its timeout at which the client closes a watch that the server has not ended."""
SHORT_WATCH_SECONDS: Final = 1.0
"""A watch that ends sooner and without an event is a failure."""

_REVISION_TOO_LARGE: Final = "ResourceVersionTooLarge"
"""The reason of the error for a revision that the server does not have yet."""
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_UNSUPPORTED: Final = (status.Invalid, status.BadRequest)
"""Errors of a server that does not support watches with initial events."""
_RETRIED: Final = (status.Expired, status.Gone, status.TooManyRequests)
"""Errors after which a watch with initial events is retried. After any other error the objects are listed: a server with
an etcd without progress notifications accepts such watches, and each of them fails.
"""
_log = logging.getLogger(__name__)


class WatchEvent(NamedTuple):
    type: str
    tree: Parsed
    revision: int


class Sink(Protocol):
    """The receiver of a reflector's objects and events. It owns the objects that it receives."""

    def transform(self, tree: Parsed) -> Parsed:
        """Return a decoded object as it is kept."""

    async def replace(self, trees: Sequence[Parsed], revision: int) -> None:
        """Replace the contents by these objects, which are all that existed at the revision."""

    def put(self, tree: Parsed) -> None: ...

    def remove(self, tree: Parsed) -> None: ...

    def note_watch(self) -> None:
        """Note that a watch has begun."""

    def reach(self, revision: int) -> None:
        """Note that there are no further changes up to the revision."""


class Reflector:
    """Lists and watches one resource, retries with backoff, and passes objects and events to a sink."""

    def __init__(
        self,
        client: Client,
        resource: AnyResource,
        sink: Sink,
        counts: InformerStats,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._client = client
        self._resource = resource
        self._sink = sink
        self._counts = counts
        self._clock = clock
        self._random = random
        self._backoff = Backoff(clock, random)
        self._revision = 0
        """The revision of the last event; 0 if all objects must be listed."""
        self._initial_objects: list[Parsed] | None = None
        """The initial objects of a watch that were received so far; None after the last of them."""
        self._supports_watch_list = True
        self._is_not_served = False

    async def run(self) -> Never:
        while True:
            try:
                await self._list_and_watch()
            except (ApiError, NoResponse) as error:
                self._handle_error(error)
                await self._clock.sleep(self._backoff.next())

    def _handle_error(self, error: Exception) -> None:
        if isinstance(error, status.NotFound) and not self._revision:
            # A server of an older minor does not serve every kind; that is no failure, and may change.
            _log.log(
                logging.DEBUG if self._is_not_served else logging.INFO,
                "the server does not serve %s; retrying",
                self._resource,
            )
            self._is_not_served = True
            return
        _log.warning("watching %s: %s: %s", self._resource, type(error).__name__, error)
        if _may_have_other_history(error):
            self._revision = 0

    async def _list_and_watch(self) -> None:
        """List the objects if there is no revision to resume from, and watch until the watch ends."""
        if not self._revision and not self._supports_watch_list:
            await self._list()
        try:
            await self._watch()
        except ApiError as error:
            if self._initial_objects is None or isinstance(error, _RETRIED):
                raise
            self._supports_watch_list = not isinstance(error, _UNSUPPORTED)
            await self._list()

    # --- a list

    async def _list(self) -> None:
        trees, revision = await self._list_pages()
        self._counts.lists.value += 1
        await self._sink.replace(trees, revision)
        self._revision = revision

    async def _list_pages(self) -> tuple[Sequence[Parsed], int]:
        """Return all objects and the revision. The list is consistent: the server's cache could be older than ours."""
        page = await self._client.list(self._resource, limit=PAGE)
        trees = self._transform(page.items)
        while page.continue_token:
            try:
                page = await self._client.list(self._resource, limit=PAGE, continue_token=page.continue_token)
            except status.Expired:  # the continue token has expired: list without pages
                page = await self._client.list(self._resource)
                trees = []
            trees += self._transform(page.items)
        try:
            return trees, int(page.resource_version)
        except ValueError as error:
            raise Unreachable(f"a list has an invalid revision: {page.resource_version[:100]!r}") from error

    def _transform(self, items: Sequence[Parsed]) -> list[Parsed]:
        return [self._sink.transform(tree) for tree in items]

    # --- a watch

    async def _watch(self) -> None:
        started_at, events_before = self._clock.monotonic(), self._counts.events
        self._counts.watches.value += 1
        self._initial_objects = None if self._revision else []
        # Spread as by client-go's reflector, so that the watches of all kinds do not end together.
        seconds = int(MIN_WATCH_SECONDS * (1.0 + fraction(self._random)))
        async with self._client.watch(
            self._resource, self._query(seconds), timeout_seconds=seconds + TIMEOUT_GRACE
        ) as stream:
            self._sink.note_watch()
            async for batch in split_lines(stream.chunks()):
                for line in batch:
                    event = parse_watch_event(line)
                    self._counts.record_event(event.type)
                    if self._initial_objects is None:
                        self._handle_event(*event)
                    else:
                        await self._handle_initial_event(*event)
        if self._initial_objects is not None:
            raise Unreachable("the watch ended before all initial events were received")
        if (
            self._clock.monotonic() - started_at < SHORT_WATCH_SECONDS
            and self._counts.events == events_before
        ):
            self._counts.short_watches.value += 1
            raise NoResponse("the watch ended at once")

    def _query(self, seconds: int) -> dict[str, object]:
        query: dict[str, object] = {"allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        if self._revision:
            return {**query, "resourceVersion": self._revision}
        return {**query, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}

    def _handle_event(self, event_type: str, tree: Parsed, revision: int) -> None:
        self._revision = revision
        if event_type == "BOOKMARK":
            self._sink.reach(revision)
        elif event_type == "DELETED":
            self._sink.remove(tree)
        else:
            self._sink.put(self._sink.transform(tree))

    async def _handle_initial_event(self, event_type: str, tree: Parsed, revision: int) -> None:
        assert self._initial_objects is not None
        if event_type != "BOOKMARK":
            self._initial_objects.append(self._sink.transform(tree))
        elif meta.annotations(tree).get(_INITIAL_EVENTS_END) == "true":
            self._counts.lists.value += 1
            await self._sink.replace(self._initial_objects, revision)
            self._revision = revision
            self._initial_objects = None


def _may_have_other_history(error: Exception) -> bool:
    """Return whether another server may answer next, or one that was restarted with an empty store: its revisions are others."""
    if isinstance(error, ConnectTimeout):
        return False
    details = error.details if isinstance(error, ApiError) else None
    is_too_large = details is not None and any(
        cause.reason == _REVISION_TOO_LARGE for cause in details.causes
    )
    return is_too_large or isinstance(error, Unreachable | status.Expired | status.Gone)


def parse_watch_event(line: bytes) -> WatchEvent:
    """Return a watch event. Raises `ApiError` for an ERROR event."""
    try:
        event = orjson.loads(line)
        event_type, tree = event["type"], event["object"]
        if event_type == "ERROR":
            raise status.from_tree(tree, tree["code"])
        return WatchEvent(event_type, tree, int(meta.resource_version(tree)))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreachable(f"received an invalid event: {line[:200]!r}") from error


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[Sequence[bytes]]:
    """Yield the lines that each chunk completes. A rest without a newline at the end of the stream is dropped.

    The chunks of a line are joined once, so that the cost is linear in its length.
    """
    partial_line: list[bytes] = []
    async for chunk in chunks:
        *complete_lines, rest = chunk.split(b"\n")
        if complete_lines:
            complete_lines[0] = b"".join([*partial_line, complete_lines[0]])
            partial_line.clear()
            yield complete_lines
        if rest:
            partial_line.append(rest)
