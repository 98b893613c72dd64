"""The verbs of a kind whose objects are records that the server makes: they are listed and watched, and nobody writes them.

A record is built when a client reads it. A watch has a task that builds what is new for it, so that the server does nothing
for records that nobody reads. Records that are dropped send no event: they are history, and do not end.
"""

import asyncio
import logging
import re
from bisect import bisect_left
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Final, NamedTuple

from mockube.apimachinery import gotext, names, status
from mockube.apimachinery.groups import CONTROL, GroupResource
from mockube.apimachinery.status import ApiError, BadRequest, Expired
from mockube.apimachinery.tree import Tree
from mockube.apiserver import fields
from mockube.apiserver.fields import Term
from mockube.apiserver.registry.read import get_version, list_version
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import (
    EXACT,
    ListOptions,
    ListResult,
    ObjectResult,
    RequestContext,
)
from mockube.apiserver.registry.revisions import too_large
from mockube.apiserver.registry.selection import Selection, select_by
from mockube.apiserver.registry.watch_stream import ClientWatch, OpenWatch
from mockube.apiserver.storage import continue_token
from mockube.apiserver.storage.continue_token import BadContinueToken, ContinueToken
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.supervision import start

from .strategy import ControlStrategy

LOG: Final = logging.getLogger(__name__)

VERBS: Final = ("get", "list", "watch")
_BUILT_AT_ONCE: Final = 20
_NAME: Final = re.compile(r"[0-9]{1,19}(?:-|\Z)")
"""The beginning of the name of a record, or all of it."""
TOO_OLD: Final = "The resourceVersion for the provided watch is too old."


class Record(NamedTuple):
    """A record, and what it was at its last version; None if it is new."""

    stored: StoredObject
    before: StoredObject | None = None


class Listed(NamedTuple):
    """A record that a user may read, which is built if a page has it."""

    name: str
    build: Callable[[], Awaitable[StoredObject]]


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

    async def all(self, context: RequestContext, version: int | None = None) -> tuple[int, Sequence[Listed]]:
        """Return all records that the user may read, as they were at a version: that of a first page, or the newest one."""
        raise NotImplementedError

    def follow(
        self, version: int, context: RequestContext
    ) -> AsyncGenerator[tuple[int, Sequence[Record]], None]:
        """Yield the records after a version that the user may read, in their order, each time with the version that this reaches.

        Raise Expired if they are no longer known.
        """
        raise NotImplementedError

    def check_term(self, _term: Term) -> None:
        """Raise ValueError if no record can have the value of a term of a field selector.

        An empty list would look as if nothing had happened.
        """

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
        self._check_terms(options)
        token = _read_token(options)
        version = list_version(options.resource_version) if token is None else token.revision
        newest, listed = await self.all(context, version if token is not None and version > 0 else None)
        if version > newest:
            raise too_large(version, newest, retry_after=1)
        if token is not None:
            listed = _after(listed, token.start)
        elif options.match == EXACT and version != newest:
            raise Expired(f"only the newest version of {context.resource.name} can be listed")
        items, remaining = await _build(listed, chosen, options.limit)
        if token is None and (missing := await self.missing(context, items)):
            context.report.warn(missing)
        metadata: Tree = {"resourceVersion": str(newest)}
        if remaining:
            last = listed[-remaining - 1].name
            metadata["continue"] = continue_token.encode(ContinueToken(newest, last))
            if chosen.matches is None:
                metadata["remainingItemCount"] = remaining
        return ListResult(
            api_version=context.resource.api_version,
            kind=context.resource.list_kind,
            items=items,
            metadata=metadata,
            named=True,
        )

    async def open_watch(
        self, registry: Registry, context: RequestContext
    ) -> tuple[ClientWatch, ListOptions]:
        """Begin a watch: of the existing records and the following ones, or of those after a version."""
        options, chosen = await select_by(registry, context, watch_list=registry.watch_list)
        self._check_terms(options)
        version = get_version(options.resource_version)
        stream = RecordWatch(registry.layout.prefix(context.resource), chosen, self, context)
        if options.initial_events is not False and (options.initial_events or not version):
            bookmark = bool(options.initial_events and options.bookmarks)
            stream.position, listed = await self.all(context)
            objects, _ = await _build(listed, chosen)
            await stream.begin(objects, stream.position, bookmark=bookmark)
        else:
            stream.position = version or self.newest
        stream.start()
        return stream, options

    def _check_terms(self, options: ListOptions) -> None:
        """Raise BadRequest for a term of a field selector with a value that no record can have."""
        for term in fields.parse(options.field_selector).terms:
            try:
                if term.value:
                    _check_name(term)
                    self.check_term(term)
            except ValueError as error:
                raise BadRequest(f"field selector {term}: {error}") from error


_NAMES: Final[Mapping[str, Callable[[str], Sequence[str]]]] = {
    "namespace": names.check_dns1123_label,
    "name": names.check_path_segment_name,
    "fault": names.check_dns1123_subdomain,
}
"""What returns the problems of a name, by the field that has it."""


def _check_name(term: Term) -> None:
    """Raise ValueError for a name that no object can have."""
    problems = _NAMES[term.field](term.value) if term.field in _NAMES else ()
    for problem in problems:
        raise ValueError(f"{gotext.quote(term.value)} is no name: {problem}")


def _read_token(options: ListOptions) -> ContinueToken | None:
    """Return the version of a list, and the name of the last record before the page; None for the first page."""
    if not options.continue_token:
        return None
    try:
        token = continue_token.decode(options.continue_token)
    except BadContinueToken as error:
        raise BadRequest(f"invalid continue token: {error}") from error
    if not _NAME.match(token.start):
        raise BadRequest(f"invalid continue token: continue key is not valid: {token.start}")
    if options.resource_version not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    return token


def _order(name: str) -> int:
    """Return the number with which the name of a record begins: records are listed by it."""
    return int(name.partition("-")[0])


def _after(listed: Sequence[Listed], name: str) -> Sequence[Listed]:
    """Return the records after one, which may have been dropped. Those with the same number are dropped together."""
    order = _order(name)
    position = bisect_left(listed, order, key=lambda each: _order(each.name))
    while position < len(listed) and _order(listed[position].name) == order:
        position += 1
        if listed[position - 1].name == name:
            break
    return listed[position:]


async def _build(
    listed: Sequence[Listed], chosen: Selection, limit: int = 0
) -> tuple[Sequence[StoredObject], int]:
    """Return the selected records, up to a limit, and how many records follow them, whether they are selected or not."""
    items: list[StoredObject] = []
    slice_ = max(1, _BUILT_AT_ONCE // chosen.cost)
    for position, each in enumerate(listed):
        if limit and len(items) == limit:
            return items, len(listed) - position
        if position % slice_ == slice_ - 1:
            await yield_to_loop()
        stored = await each.build()
        if chosen.matches is None or chosen.matches(stored):
            items.append(stored)
    return items, 0


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
