"""The verbs of a kind whose objects are records that the server makes: they are listed and watched, and nobody writes them.

A record is built when a client reads it. A watch has a task that builds what is new for it, so that the server does nothing
for records that nobody reads. Records that are dropped send no event: they are history, and do not end.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from mockube.apimachinery import status
from mockube.apimachinery.groups import CONTROL, GroupResource
from mockube.apimachinery.status import ApiError, BadRequest, Expired
from mockube.apiserver import fields
from mockube.apiserver.event_loop import filter_in_slices
from mockube.apiserver.fields import Term
from mockube.apiserver.registry.read import get_version
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import (
    EXACT,
    ListOptions,
    ListResult,
    ObjectResult,
    RequestContext,
)
from mockube.apiserver.registry.selection import Selection, select_by
from mockube.apiserver.registry.watch_stream import ClientWatch, OpenWatch
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.supervision import start

from .strategy import ControlStrategy

LOG: Final = logging.getLogger(__name__)

VERBS: Final = ("get", "list", "watch")
TOO_OLD: Final = "The resourceVersion for the provided watch is too old."


class Record(NamedTuple):
    """A record, and what it was at its last version; None if it is new."""

    stored: StoredObject
    before: StoredObject | None = None


class RecordStrategy(ControlStrategy):
    """The records of one kind. Versions count up; a watch that is too far behind gets 410."""

    def __init__(self, root: bytes) -> None:
        """`root` begins all keys of the server; watches know the objects by their keys."""
        self._prefix = root + f"{CONTROL}/{self.kind.plural}/".encode()

    @property
    def newest(self) -> int:
        """The version that the records have now."""
        raise NotImplementedError

    async def find(self, context: RequestContext) -> StoredObject | None:
        """Return the record with the name of the request, if the user may read it."""
        raise NotImplementedError

    async def all(self, context: RequestContext) -> tuple[int, Sequence[StoredObject]]:
        """Return all records that the user may read, and the version at which they are so: none is newer."""
        raise NotImplementedError

    def follow(
        self, version: int, context: RequestContext
    ) -> AsyncGenerator[tuple[int, Sequence[Record]], None]:
        """Yield the records after a version that the user may read, in their order, each time with the version that this reaches.

        Raise Expired if they are no longer known.
        """
        raise NotImplementedError

    def check_term(self, _term: Term) -> str:
        """Return a warning if no object that a term of a field selector names is served; "" if one is.

        Raise ValueError if no record can have its value: an empty list in silence would look as if nothing had happened.
        """
        return ""

    async def missing(self, _context: RequestContext, _items: Sequence[StoredObject]) -> str:
        """Return a warning if a list may lack records that its selector selects, because they are dropped; "" if it lacks none."""
        return ""

    # --- verbs

    def verbs(self) -> OwnVerbs:
        return {(self.kind.group_resource, ""): {"get": self.get, "list": self.list}}

    def watches(self) -> Mapping[GroupResource, OpenWatch]:
        return {self.kind.group_resource: self.open_watch}

    async def get(self, _registry: Registry, context: RequestContext) -> ObjectResult:
        stored = await self.find(context)
        if stored is None:
            raise status.not_found(context.resource.group_resource, context.name)
        return ObjectResult(stored=stored)

    async def list(self, registry: Registry, context: RequestContext) -> ListResult:
        options, chosen = await select_by(registry, context)
        warnings = [*self._warnings(options)]
        if options.continue_token:
            raise BadRequest(f"a list of {context.resource.name} has one page: it continues with no token")
        version, (newest, objects) = get_version(options.resource_version), await self.all(context)
        if options.match == EXACT and version != newest:
            raise Expired(f"only the newest version of {context.resource.name} can be listed")
        items = await _selected(chosen, objects)
        warnings = [] if items else warnings
        if missing := await self.missing(context, items):
            warnings.append(missing)
        for text in warnings:
            context.report.warn(text)
        return ListResult(
            api_version=context.resource.api_version,
            kind=context.resource.list_kind,
            items=items,
            metadata={"resourceVersion": str(newest)},
            named=True,
        )

    async def open_watch(
        self, registry: Registry, context: RequestContext
    ) -> tuple[ClientWatch, ListOptions]:
        """Begin a watch: of the existing records and the following ones, or of those after a version."""
        options, chosen = await select_by(registry, context, watch_list=registry.watch_list)
        for text in self._warnings(options):
            context.report.warn(text)
        version = get_version(options.resource_version)
        stream = RecordWatch(registry.layout.prefix(context.resource), chosen, self, context)
        if options.initial_events is not False and (options.initial_events or not version):
            bookmark = bool(options.initial_events and options.bookmarks)
            stream.position, objects = await self.all(context)
            await stream.begin(objects, stream.position, bookmark=bookmark)
        else:
            stream.position = version or self.newest
        stream.start()
        return stream, options

    def _warnings(self, options: ListOptions) -> Iterator[str]:
        """Yield the warnings about the field selector of a request; raise BadRequest for a value that no record can have."""
        for term in fields.parse(options.field_selector).terms:
            try:
                warning = self.check_term(term) if term.value else ""
            except ValueError as error:
                raise BadRequest(f"field selector {term}: {error}") from error
            if warning:
                yield f"field selector {term}: {warning}"


async def _selected(chosen: Selection, items: Sequence[StoredObject]) -> Sequence[StoredObject]:
    return items if chosen.matches is None else await filter_in_slices(chosen.matches, items)


class RecordWatch(ClientWatch):
    """The watch of one client, and the task that builds its records."""

    def __init__(
        self, prefix: bytes, chosen: Selection, source: RecordStrategy, context: RequestContext
    ) -> None:
        cache = ResourceCache(prefix)
        super().__init__(prefix, cache, chosen)
        cache.watchers.add(self)
        self.agent = context.user_agent
        self.position = 0
        """The version that the task has reached."""
        self._source, self._context = source, context
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to add the records after the position."""
        self._task = start(f"follow {self._source.kind.plural}", self._follow())

    async def _follow(self) -> None:
        try:
            async with aclosing(self._source.follow(self.position, self._context)) as batches:
                async for position, records in batches:
                    self.position = position
                    for record in records:
                        self.handle_change(_change(record))
        except ApiError as error:
            self.end(error)
        except Exception:
            LOG.exception("A watch of %s failed; its client lists again", self._source.kind.plural)
            self.end(Expired(TOO_OLD))

    def bookmark(self, _version: int) -> None:
        super().bookmark(self.position)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        super().close()


def _change(record: Record) -> Change:
    kind = ChangeKind.ADDED if record.before is None else ChangeKind.MODIFIED
    return Change(kind, record.stored, record.before, 0.0)
