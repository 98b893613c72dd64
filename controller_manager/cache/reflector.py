"""Follow one resource at the server, forever: what is there, then each change, whatever happens to the connection.

Notifies a `Sink` and keeps nothing but the revision to resume from. Where the server supports it, the present objects
are the initial events of the watch; else they are a list in pages. A watch that ends is resumed at its last revision.
All objects are listed again if that revision is compacted, and if the server was away: its history may be another one.
"""

import logging
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from typing import Final, Never, Protocol

import orjson

from mockube.apimachinery import meta, status
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random, fraction
from mockube.apimachinery.status import ApiError
from mockube.controller_manager.client.client import AnyResource, Client, Parsed
from mockube.controller_manager.client.flowcontrol import Backoff
from mockube.controller_manager.client.wire import NoAnswer, Unreachable
from mockube.controller_manager.metrics.client import InformerCounts

PAGE: Final = 500
MIN_WATCH_SECONDS: Final = 300
"""Seconds that a watch lasts at least; by chance up to twice that, so that not all of them end at once."""
GRACE: Final = 15.0
"""Seconds after which a watch is cut that its server has not ended in time."""
SHORT: Final = 1.0
"""Seconds: a watch that ends sooner and has brought nothing is a failure."""

_END_OF_INITIAL: Final = "k8s.io/initial-events-end"
_OFFERS_NONE: Final = (status.Invalid, status.BadRequest)
"""Responses of a server that does not support watches with initial events."""
_COMES_AGAIN: Final = (status.Expired, status.Gone, status.TooManyRequests)
"""Errors that are not about such a watch. After any other error a list is tried: over an etcd without progress a
server offers such watches, and fails each of them.
"""
_log = logging.getLogger(__name__)


class Sink(Protocol):
    """The receiver of a reflector's objects and events. The reflector does not touch an object after passing it on."""

    def replace(self, trees: Sequence[Parsed], revision: int) -> None:
        """Nothing but these was there at the revision."""

    def put(self, tree: Parsed) -> None: ...

    def remove(self, tree: Parsed) -> None: ...

    def reach(self, revision: int) -> None:
        """Nothing else has happened up to the revision."""


class Reflector:
    def __init__(
        self,
        client: Client,
        resource: AnyResource,
        sink: Sink,
        counts: InformerCounts,
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
        self._pauses = Backoff(clock, random)
        self._revision = 0
        """Seen last; 0 if everything must be listed."""
        self._initial: list[Parsed] | None = None
        """The initial objects of a watch, until all of them were received."""
        self._streams_lists = True
        self._is_missing = False

    async def run(self) -> Never:
        while True:
            try:
                await self._follow()
            except (ApiError, NoAnswer) as error:
                self._take_failure(error)
                await self._clock.sleep(self._pauses.next())

    def _take_failure(self, error: Exception) -> None:
        if isinstance(error, status.NotFound) and not self._revision:
            # A server of an older minor does not have every kind: that is no failure, and may change.
            _log.log(
                logging.DEBUG if self._is_missing else logging.INFO,
                "the server does not serve %s; retrying",
                self._resource,
            )
            self._is_missing = True
            return
        _log.warning("watching %s: %s: %s", self._resource, type(error).__name__, error)
        if isinstance(error, Unreachable | status.Expired | status.Gone):
            self._revision = 0

    async def _follow(self) -> None:
        """See what is there if that is not known, and watch until the watch ends."""
        if not self._revision and not self._streams_lists:
            await self._list()
        try:
            await self._watch()
        except ApiError as error:
            if self._initial is None or isinstance(error, _COMES_AGAIN):
                raise
            self._streams_lists = not isinstance(error, _OFFERS_NONE)
            await self._list()

    # --- a list

    async def _list(self) -> None:
        trees, revision = await self._pages()
        self._counts.lists += 1
        self._sink.replace(trees, revision)
        self._revision = revision

    async def _pages(self) -> tuple[Sequence[Parsed], int]:
        """Not from a cache of the server's, that might show less than what was seen already."""
        page = await self._client.list(self._resource, limit=PAGE)
        trees = page.items
        while page.continue_token:
            try:
                page = await self._client.list(self._resource, limit=PAGE, continue_token=page.continue_token)
            except status.Expired:  # it took too long: all at once then
                page = await self._client.list(self._resource)
                trees = []
            trees += page.items
        try:
            return trees, int(page.resource_version)
        except ValueError as error:
            raise Unreachable(f"a list has an invalid revision: {page.resource_version[:100]!r}") from error

    # --- a watch

    async def _watch(self) -> None:
        began, before = self._clock.monotonic(), self._counts.events
        self._counts.watches += 1
        self._initial = None if self._revision else []
        seconds = int(MIN_WATCH_SECONDS * (1.0 + fraction(self._random)))
        async with self._client.watch(self._resource, self._query(seconds), within=seconds + GRACE) as stream:
            async for batch in split_lines(stream.chunks()):
                for line in batch:
                    self._take(*parse_watch_event(line))
        if self._initial is not None:
            raise Unreachable("the watch ended before all initial events were received")
        if self._clock.monotonic() - began < SHORT and self._counts.events == before:
            self._counts.short_watches += 1
            raise NoAnswer("the watch ended at once")

    def _query(self, seconds: int) -> dict[str, object]:
        query: dict[str, object] = {"allowWatchBookmarks": "true", "timeoutSeconds": seconds}
        if self._revision:
            return {**query, "resourceVersion": self._revision}
        return {**query, "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}

    def _take(self, event_type: str, tree: Parsed, revision: int) -> None:
        self._counts.take(event_type)
        if self._initial is not None:
            self._take_initial(event_type, tree, revision)
            return
        self._revision = revision
        if event_type == "BOOKMARK":
            self._sink.reach(revision)
        elif event_type == "DELETED":
            self._sink.remove(tree)
        else:
            self._sink.put(tree)

    def _take_initial(self, event_type: str, tree: Parsed, revision: int) -> None:
        assert self._initial is not None
        if event_type != "BOOKMARK":
            self._initial.append(tree)
        elif meta.annotations(tree).get(_END_OF_INITIAL) == "true":
            self._counts.lists += 1
            self._sink.replace(self._initial, revision)
            self._revision = revision
            self._initial = None


def parse_watch_event(line: bytes) -> tuple[str, Parsed, int]:
    """Its type, its object, and the revision at which it happened."""
    try:
        event = orjson.loads(line)
        event_type, tree = event["type"], event["object"]
        if event_type == "ERROR":
            raise status.from_tree(tree, tree["code"])
        return event_type, tree, int(meta.resource_version(tree))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unreachable(f"received an invalid event: {line[:200]!r}") from error


async def split_lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[Sequence[bytes]]:
    """Yield the lines that each chunk completes. What follows the last newline was cut off, and is no line.

    A line of many chunks is joined once, at its end, so that its cost grows with its length and no faster.
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
