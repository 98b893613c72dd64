"""Watch: what happens to the objects of a collection, from a version on, each change once and in order.

The stream is a queue between the shelf, which never waits, and one reader. It is bounded: who does not read is cut
off, and starts again from the last version seen.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from apimachinery.status import ApiError, Expired
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call
from apiserver.rest.convert import shower
from apiserver.rest.options import ListOptions, list_options
from apiserver.rest.selection import Selection, selection
from apiserver.rest.versions import list_version, wait_for
from apiserver.storage.change import Change, ChangeKind
from apiserver.storage.shelf import Shelf, TooOld
from apiserver.storage.stored import Stored

BACKLOG = 16_384
"""Events that may wait for a reader."""
BOOKMARK = "BOOKMARK"
ADDED, MODIFIED, DELETED = (kind.value for kind in ChangeKind)


class Event(NamedTuple):
    """What a watch is told. A bookmark has no object, only a version; the one that ends the initial events says so."""

    kind: str
    stored: Stored | None = None
    change: Change | None = None
    version: int = 0
    ends_initial: bool = False


class Stream:
    """One client's watch. `take` answers with the events since it was asked last."""

    def __init__(
        self,
        prefix: bytes,
        shelf: Shelf,
        chosen: Selection,
        show: Callable[[Stored], Stored] | None = None,
    ) -> None:
        self.prefix = prefix
        self.version = 0
        """Nothing at or before it is sent any more."""
        self._shelf = shelf
        self._matches = chosen.matches
        self._show = show
        """What shows objects as this client wants them, if not as they are stored."""
        self._queue: list[Event] = []
        self._waiter: asyncio.Future[None] | None = None
        self._ended = False
        self.error: ApiError | None = None

    def begin(self, stored: Sequence[Stored], version: int) -> None:
        """Show what is there as if it had just been added."""
        matches = self._matches
        shown = stored if matches is None else filter(matches, stored)
        self._queue += [Event(ADDED, one) for one in shown]
        self.version = version

    def resume(self, version: int) -> None:
        """Show what happened since a version; ends with an error if that is not known any more."""
        self.version = version
        try:
            for change in self._shelf.since(version, self.prefix):
                self.offer(change)
        except TooOld as error:
            self.end(Expired(str(error)))

    def offer(self, change: Change) -> None:
        if change.revision <= self.version:
            return
        event = self._seen(change)
        if event is None:
            return
        self._queue.append(event)
        if len(self._queue) > BACKLOG:
            self.end(None)
        self._wake()

    async def take(self) -> Sequence[Event]:
        """The next events, at least one of them, or none if the watch is over."""
        while not self._queue and not self._ended:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        taken, self._queue = self._queue, []
        return taken if self._show is None else [_converted(event, self._show) for event in taken]

    def end(self, error: ApiError | None) -> None:
        """Let the reader have what is queued, then the error if there is one, then the end."""
        self._ended = True
        self.error = self.error or error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def bookmark(self, version: int, *, ends_initial: bool = False) -> None:
        """Tell the reader that nothing up to a version is still to come."""
        self._queue.append(Event(BOOKMARK, version=version, ends_initial=ends_initial))
        self._wake()

    def close(self) -> None:
        """The reader is gone."""
        self._ended = True
        self._shelf.unfollow(self)

    def _seen(self, change: Change) -> Event | None:
        """What a change looks like through the selector: an object may enter or leave without being new or gone."""
        matches = self._matches
        if matches is None:
            return Event(change.kind.value, change.after, change)
        was = change.before is not None and matches(change.before)
        is_now = change.kind is not ChangeKind.DELETED and matches(change.after)
        if is_now:
            return Event(MODIFIED if was else ADDED, change.after, change)
        if was and change.before is not None:
            return Event(DELETED, change.before.at(change.revision), change)
        return None


def _converted(event: Event, show: Callable[[Stored], Stored]) -> Event:
    """The event without its change, whose encoded form is for those who see what is stored."""
    return event if event.stored is None else event._replace(stored=show(event.stored), change=None)


async def watch(backend: Backend, call: Call) -> tuple[Stream, ListOptions]:
    options = list_options(call, watch_list=backend.watch_list)
    chosen = selection(call.resource, options.label_selector, options.field_selector)
    version = list_version(options.resource_version)
    await _reach(backend, options, version)
    shelf = backend.mirror.shelf(backend.layout.shelf(call.resource))
    show = shower(backend, call.resource)
    stream = Stream(_prefix(backend, call, chosen), shelf, chosen, show)
    if options.initial_events is False:
        stream.resume(version or backend.mirror.revision)
    elif options.initial_events or not version:
        stream.begin(shelf.select(stream.prefix), backend.mirror.revision)
    else:
        stream.resume(version)
    if options.initial_events and options.bookmarks:
        stream.bookmark(backend.mirror.revision, ends_initial=True)
    shelf.follow(stream)
    return stream, options


async def _reach(backend: Backend, options: ListOptions, version: int) -> None:
    if options.initial_events and version:
        await wait_for(backend, version)
    elif not options.resource_version:
        await backend.mirror.fresh()


def _prefix(backend: Backend, call: Call, chosen: Selection) -> bytes:
    """A follower follows a shelf, a namespace or one key."""
    prefix = backend.layout.scope(call.resource, call.namespace)
    name = call.name or chosen.name
    if name and (call.namespace or not call.resource.namespaced):
        return prefix + name.encode()
    return prefix
