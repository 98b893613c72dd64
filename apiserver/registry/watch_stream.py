"""Watch: the changes of the objects of a collection after a version, each once and in order.

The stream is a queue between the resource cache, which never waits, and one reader. It is bounded: the watch of a
client that does not read is ended, and the client resumes from the last version that it received. What existed before the
watch is not queued: its events are made when they are read, so that a client that does not read costs a list of references.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, BadRequest, Expired
from mockube.apiserver.event_loop import QUICK_SLICE, filter_in_slices
from mockube.apiserver.kinds.kind import RemoteConversion
from mockube.apiserver.storage.recent_changes import Change, ChangeKind, TooOldResourceVersion
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop

from .convert import remote_conversion, tolerant_client_version_converter
from .read import get_version, objects_at
from .registry import Registry
from .request_context import ListOptions, RequestContext
from .revisions import wait_for
from .selection import Selection, select_by

LOG = logging.getLogger(__name__)

BACKLOG = 16_384
"""The number of events that may wait for a reader."""
BACKLOG_BYTES = 64 << 20
"""The limit of the size of queued events' objects, which only this reader may still need; the last few events are not
counted.
"""
UNCOUNTED_EVENTS = 64
UNREACHABLE_VERSION = 1 << 63
"""A version that is later than any revision."""
BOOKMARK = "BOOKMARK"
ADDED, MODIFIED, DELETED = (kind.value for kind in ChangeKind)


Converter = Callable[[StoredObject], StoredObject | None]
"""Converts an object to the version of the request; None if the object cannot be read."""


class WatchEvent(NamedTuple):
    """An event of a watch. A bookmark has no object, only a version; `ends_initial` marks the end of the initial events."""

    kind: str
    stored: StoredObject | None = None
    change: Change | None = None
    version: int = 0
    ends_initial: bool = False


def once(function: Callable[[], None]) -> Callable[[], None]:
    """Return a function that does what the given one does, at its first call only."""
    is_called = False

    def call() -> None:
        nonlocal is_called
        if not is_called:
            is_called = True
            function()

    return call


StopsBefore: TypeAlias = Callable[[WatchEvent], bool]
"""Returns whether it has begun to hold back, or to drop, the events from this one on."""


class ClientWatch:
    """The watch of one client. `take` returns the events since its last call."""

    def __init__(
        self,
        prefix: bytes,
        resource_cache: ResourceCache,
        chosen: Selection,
        converter: Converter | None = None,
        remote: RemoteConversion | None = None,
    ) -> None:
        self.prefix = prefix
        self.version = 0
        """Events up to this version are not sent again."""
        self._resource_cache = resource_cache
        self._matches, self._cost = chosen.matches, chosen.cost
        self._converter = converter
        """Converts objects to the client's version, if that is not the stored one."""
        self._remote = remote
        """Converts objects by a webhook. The selector is then applied to the converted objects when they are read."""
        self._selected = None if remote is not None else chosen.matches
        """The selector of stored objects."""
        self._earlier: Iterator[WatchEvent | None] | None = None
        """The events before those in the queue: of the initial objects, or of the changes since the version to resume from."""
        self._queue: list[WatchEvent] = []
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self._taken_to = 0
        """The version of the last change that the reader has."""
        self._next_check = UNCOUNTED_EVENTS
        """The number of queued events at which the backlog is checked next."""
        self.agent = ""
        """The user agent of the client."""
        self.overflowed = False
        """Whether the reader was cut off because it did not read."""
        self.error: ApiError | None = None
        self._expiry: Expired | None = None
        """The error with which it ends after its events, as soon as it is not held back: the changes that follow are lost."""
        self.on_close: list[Callable[[], None]] = []
        """Called when the reader has closed."""
        self._holds = self._drops = self._lags = 0
        """How many faults hold back, or drop, its events, or hold back those after the initial ones."""
        self._stops: list[StopsBefore] = []
        self._is_initial = False
        """Whether the earlier events are those of the initial objects."""

    async def begin(self, objects: Sequence[StoredObject], version: int, *, bookmark: bool) -> None:
        """Begin with the objects that exist at a version as ADDED events, and a bookmark after them.

        Changes that arrive while the selector is applied are queued.
        """
        self.version = version
        matches = self._selected
        matching = objects if matches is None else await filter_in_slices(matches, objects, cost=self._cost)
        end = [WatchEvent(BOOKMARK, version=version, ends_initial=True)] if bookmark else []
        self._earlier, self._is_initial = chain((WatchEvent(ADDED, item) for item in matching), end), True

    def follow_from(self, version: int) -> None:
        """Queue the changes after the version of the initial objects, which is an earlier one; expire if they are not in the cache."""
        try:
            changes = self._resource_cache.history.since(version, self.prefix)
        except TooOldResourceVersion as error:
            self._expire(error)
            return
        events = (self._selected_event(change, self._selected) for change in changes)
        self._queue = [event for event in events if event is not None]
        self.version = max(version, self._resource_cache.history.newest)

    def resume(self, version: int) -> None:
        """Begin with the changes since a version; expire if they are no longer in the cache."""
        self.version = version
        try:
            changes = self._resource_cache.history.since(version, self.prefix)
        except TooOldResourceVersion as error:
            self._expire(error)
        else:
            self._earlier = (self._selected_event(change, self._selected) for change in changes)

    def _expire(self, error: TooOldResourceVersion) -> None:
        """Send no change any more, and end when the reader takes the next events and no fault holds them back.

        A fault holds them back after the watch was opened, when this is known already.
        """
        self._queue, self.version, self._expiry = [], UNREACHABLE_VERSION, Expired(str(error))

    def handle_change(self, change: Change) -> None:
        if self._ended or change.revision <= self.version or self._drops:
            return
        event = self._selected_event(change, self._selected)
        if event is None:
            return
        self._queue.append(event)
        if len(self._queue) > self._next_check:
            self._check_backlog()
        self._wake()

    def handle_missed_change(self) -> None:
        """End the watch: the client has to list again, because it may have missed a change."""
        self.end(Expired("The resourceVersion for the provided watch is too old."))

    async def take(self) -> Sequence[WatchEvent]:
        """Return the next events, at least one, or none if the watch has ended."""
        while events := await self._take_next():
            if passed := self._before_stop(events) if self._stops else events:
                if (last := passed[-1].change) is not None:
                    self._taken_to = last.revision
                return passed
        return ()

    async def _take_next(self) -> Sequence[WatchEvent]:
        if self._is_held:
            await self._wait_released()
        events = await self._take_earlier() if self._earlier is not None else []
        if not events:
            while not self._ended and (self._is_held or not (self._queue or self._expiry)):
                await self._wait()
            if self._is_held:  # it has ended
                self._drop_events()
            elif self._expiry is not None:
                self.end(self._expiry)
            events, self._queue, self._next_check = self._queue, [], UNCOUNTED_EVENTS
        return events

    def _before_stop(self, events: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
        """Return the events before the first one at which a fault holds back or drops those that follow, which are put back."""
        for index, event in enumerate(events):
            if any(stops(event) for stops in self._stops):
                self._put_back(events[index:])
                return events[:index]
        return events

    def _put_back(self, events: Sequence[WatchEvent]) -> None:
        if self._earlier is not None:
            self._earlier = chain(events, self._earlier)
        else:
            self._queue = [*events, *self._queue]
        if self._drops:
            if self._earlier is not None:
                self._earlier = filter(_is_no_change, self._earlier)
            self._queue = [*filter(_is_no_change, self._queue)]

    async def _wait(self) -> None:
        """Wait for an event, for the end, or for the release of events that are held back."""
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _wait_released(self) -> None:
        """Wait while faults hold the events back; a watch that ends meanwhile sends none of them."""
        while self._is_held and not self._ended:
            await self._wait()
        if self._is_held:
            self._drop_events()

    @property
    def _is_held(self) -> bool:
        return bool(self._holds or (self._lags and not self._is_initial))

    def lag(self) -> Callable[[], None]:
        """Hold back all events after the initial ones until the returned function is called."""
        self._lags += 1

        @once
        def release() -> None:
            self._lags -= 1
            self._wake()

        return release

    def stop_before(self, stops: StopsBefore) -> Callable[[], None]:
        """Let a function see each event before the reader gets it, until the returned function is called."""
        self._stops.append(stops)
        return once(lambda: self._stops.remove(stops))

    def hold(self) -> Callable[[], None]:
        """Hold back all events until the returned function is called."""
        self._holds += 1

        @once
        def release() -> None:
            self._holds -= 1
            self._wake()

        return release

    def drop(self) -> Callable[[], None]:
        """Drop all changes until the returned function is called."""
        self._drops += 1

        @once
        def end() -> None:
            self._drops -= 1

        return end

    async def _take_earlier(self) -> list[WatchEvent]:
        """Return the next of the earlier events, or none if there are no more."""
        size = max(1, QUICK_SLICE // self._cost)
        while self._earlier is not None and (events := [*islice(self._earlier, size)]):
            if selected_events := [event for event in events if event is not None]:
                return selected_events
            await yield_to_loop()
        self._earlier, self._is_initial = None, False
        return []

    @property
    def resource_prefix(self) -> bytes:
        """The prefix of the keys of all objects of the resource, of which the watch may have some."""
        return self._resource_cache.prefix

    @property
    def is_converted_remotely(self) -> bool:
        """Whether `convert` has to be called."""
        return self._remote is not None

    async def convert(self, events: Sequence[WatchEvent]) -> Sequence[WatchEvent]:
        """Return the events in the client's version, as a webhook converts them; the watch ends if it fails."""
        if self._remote is None:
            return events
        try:
            return await self._convert_events(self._remote, events)
        except ApiError as error:
            LOG.warning("watch of %s ended: %s", self.prefix.decode(errors="replace"), error)
            self._drop_events()
            self.end(None)
            return ()

    async def _convert_events(
        self, remote: RemoteConversion, events: Sequence[WatchEvent]
    ) -> Sequence[WatchEvent]:
        matches = self._matches
        items = [event.stored for event in events if event.stored is not None]
        if matches is not None:
            changes = [event.change for event in events if event.change is not None]
            items += [change.before for change in changes if change.before is not None]
        converted_objects = (
            {(item.key, item.revision): item for item in await remote.to_client_version(items)}
            if items
            else {}
        )
        converted_events: list[WatchEvent] = []
        for event in events:
            if event.stored is None:
                converted_events.append(event)
                continue
            client_object = converted_objects[event.stored.key, event.stored.revision]
            if event.change is None or matches is None:
                if matches is None or matches(client_object):
                    converted_events.append(event._replace(stored=client_object, change=None))
                continue
            before = event.change.before
            before = None if before is None else converted_objects[before.key, before.revision]
            selected_event = self._selected_event(
                Change(event.change.kind, client_object, before, event.change.observed_at), matches
            )
            if selected_event is not None:
                converted_events.append(selected_event._replace(change=None))
        return converted_events

    def to_client_version(self, event: WatchEvent) -> WatchEvent | None:
        """Return an event with its object in the client's version, or None if it cannot be converted.

        One at a time, so that not all of them are converted at once. The change is left out, since its encoded form is
        that of the stored version.
        """
        if self._converter is None or event.stored is None:
            return event
        client_object = self._converter(event.stored)
        if client_object is event.stored:
            return event
        return None if client_object is None else event._replace(stored=client_object, change=None)

    def end(self, error: ApiError | None) -> None:
        """End the stream: the reader gets the queued events, then the error if there is one."""
        self._ended = True
        self.error = self.error or error
        self._wake()

    def _check_backlog(self) -> None:
        """Cut the reader off if it is too far behind; the events before those in the queue are not counted.

        A reader that has some changes of a version and not all of them cannot go on from that version: it lists again.
        """
        sizes = [len(event.change.after.value) for event in self._queue if event.change is not None]
        if len(sizes) > BACKLOG or sum(sizes) > BACKLOG_BYTES:
            changes = (event.change for event in chain(self._earlier or (), self._queue) if event is not None)
            following = next(filter(None, changes), None)
            self._drop_events()
            self.overflowed = True
            if following is not None and following.revision == self._taken_to:
                self.handle_missed_change()
            else:
                self.end(None)
        self._next_check = len(self._queue) + max(UNCOUNTED_EVENTS, len(sizes) // 4)

    def _drop_events(self) -> None:
        """Drop the events that the reader does not have yet, and all that follow."""
        self._earlier, self._queue, self.version = None, [], UNREACHABLE_VERSION

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def bookmark(self, version: int) -> None:
        """Queue a bookmark of a version, unless changes after it were queued already."""
        if version < self._resource_cache.history.newest or self._expiry is not None:
            return
        self._queue.append(WatchEvent(BOOKMARK, version=version))
        self._wake()

    def close(self) -> None:
        """Unsubscribe; called when the reader has closed."""
        self._ended = True
        self._drop_events()
        self._resource_cache.watchers.remove(self)
        for closed in self.on_close:
            closed()

    def _selected_event(
        self, change: Change, matches: Callable[[StoredObject], bool] | None
    ) -> WatchEvent | None:
        """Return a change as an event for the selector: an object that starts or ceases to match is added or deleted."""
        if matches is None:
            return WatchEvent(change.kind.value, change.after, change)
        was = change.before is not None and matches(change.before)
        is_now = change.kind is not ChangeKind.DELETED and matches(change.after)
        if is_now:
            return WatchEvent(MODIFIED if was else ADDED, change.after, change)
        if was and change.before is not None:
            return WatchEvent(DELETED, change.before.at(change.revision), change)
        return None


def _is_no_change(event: WatchEvent | None) -> bool:
    return event is None or event.change is None


OpenWatch: TypeAlias = Callable[[Registry, RequestContext], Awaitable[tuple[ClientWatch, ListOptions]]]
"""Opens the watch of a request."""


async def watch(registry: Registry, context: RequestContext) -> tuple[ClientWatch, ListOptions]:
    options, chosen = await select_by(registry, context, watch_list=registry.watch_list)
    if context.name and options.field_selector and chosen.name != context.name:
        raise BadRequest("fieldSelector metadata.name doesn't match requested name")
    version = get_version(options.resource_version)
    await _reach(registry, options, version)
    await registry.watch_cache.progress.wait_consistent()
    resource_cache = registry.watch_cache.resource_cache(registry.layout.prefix(context.resource))
    converter = tolerant_client_version_converter(registry, context.resource)
    remote = remote_conversion(registry, context.resource)
    stream = ClientWatch(_prefix(registry, context, chosen), resource_cache, chosen, converter, remote)
    stream.agent = context.user_agent
    resource_cache.watchers.add(stream)
    if options.initial_events is False:
        stream.resume(version or registry.watch_cache.revision)
    elif options.initial_events or not version:
        bookmark = bool(options.initial_events and options.bookmarks)
        try:
            if context.revision:
                objects = await objects_at(registry, context.resource, stream.prefix, context.revision)
                await stream.begin(objects, context.revision, bookmark=bookmark)
                stream.follow_from(context.revision)
            else:
                await stream.begin(
                    resource_cache.select(stream.prefix), registry.watch_cache.revision, bookmark=bookmark
                )
        except BaseException:
            stream.close()
            raise
    else:
        stream.resume(version)
    return stream, options


def end_watches(registry: Registry, resource: GroupResource) -> None:
    """End the watches of a custom resource whose definition was changed or deleted; as upstream, clients list again."""
    prefix = registry.layout.root + f"{resource.group}/{resource.resource}/".encode()
    for watcher in registry.watch_cache.resource_cache(prefix).watchers:
        if isinstance(watcher, ClientWatch):
            watcher.end(None)


async def _reach(registry: Registry, options: ListOptions, version: int) -> None:
    if options.initial_events and version:
        await wait_for(registry.watch_cache, version)
    elif not options.resource_version:
        await registry.watch_cache.fresh()


def _prefix(registry: Registry, context: RequestContext, chosen: Selection) -> bytes:
    """Return the watched prefix: of a resource, of a namespace, or one key."""
    prefix = registry.layout.scope(context.resource, context.namespace)
    name = context.name or chosen.name
    if name and (context.namespace or not context.resource.namespaced):
        return prefix + name.encode()
    return prefix
