"""Get and list from the watch cache, at least as new as requested, without encoding objects again."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any, NamedTuple

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError, Expired
from mockube.apiserver.event_loop import QUICK_SLICE, filter_in_slices
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.storage import continue_token
from mockube.apiserver.storage.continue_token import LATEST, BadContinueToken, ContinueToken
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.kv import HEAD, Range, prefix_end

from .convert import objects_for_selectors, remote_conversion
from .registry import Registry
from .request_context import EXACT, ListOptions, ListResult, ObjectResult, RequestContext
from .revisions import at_revision, pages_at, wait_for
from .selection import Selection, select_by

PAGE_AT_REVISION = 500
"""The objects that are read at once at a revision of the store."""
CONTINUE_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - "
    "objects that were created, modified, or deleted between the time the first chunk was returned and now may "
    "show up in the list."
)


class PageExpired(Expired):
    """The revision of a page was compacted; the error has a token to continue with."""

    def __init__(self, fresh_token: str) -> None:
        super().__init__(CONTINUE_EXPIRED)
        self._fresh_token = fresh_token

    def status(self) -> dict[str, Any]:
        return super().status() | {"metadata": {"continue": self._fresh_token}}


async def get(registry: Registry, context: RequestContext) -> ObjectResult:
    if context.query and context.flag("export"):
        raise status.BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
    minimum = get_version(context.parameter("resourceVersion"))
    if minimum:
        await wait_for(registry.watch_cache, minimum)
    stored = await registry.get(context.resource, context.namespace, context.name, revision=context.revision)
    return ObjectResult(stored=stored)


async def list_objects(registry: Registry, context: RequestContext) -> ListResult:
    options, chosen = await select_by(registry, context)
    if options.continue_token:
        return await _next_page(registry, context, options, chosen)
    revision = list_version(options.resource_version)
    # Upstream reads the items of a deleted collection in pages of its own size.
    in_pages = options.limit or context.verb == "deletecollection"
    is_exact = options.match == EXACT or (in_pages and not options.match)
    exact = (revision if is_exact else HEAD) or context.revision
    if exact:
        scope, position = _scope(registry, context, chosen), ContinueToken(exact, "")
        return await _page_at_revision(registry, context, options, chosen, scope, position)
    if revision:
        await wait_for(registry.watch_cache, revision)
    elif options.resource_version != "0":
        await registry.watch_cache.fresh()
    resource_cache = registry.watch_cache.resource_cache(registry.layout.prefix(context.resource))
    if chosen.label is not None and not resource_cache.is_indexed(chosen.label[0]):
        with closing(resource_cache.index_label(chosen.label[0], QUICK_SLICE)) as steps:
            for _ in steps:
                await yield_to_loop()
    if not registry.watch_cache.progress.is_consistent:
        await registry.watch_cache.progress.wait_consistent()
    scope = _scope(registry, context, chosen)
    registry.warn_unreadable(context, scope.prefix)
    # What may be of any age is not cut into pages, as upstream has it in a cache.
    is_whole = options.resource_version == "0" and not context.resource.uncached
    limit = 0 if is_whole else options.limit
    revision = registry.watch_cache.revision  # of what is selected from now on, before others have their turn
    items, remaining = await _first_items(registry, context, resource_cache, scope, chosen, limit)
    return _page(context, chosen, scope, items, remaining, revision)


class _Scope(NamedTuple):
    """The keys of all objects that can match: those below a prefix, or one."""

    prefix: bytes
    key: bytes | None = None

    def token(self, last: bytes, revision: int) -> str:
        """Return the token of the page after a key."""
        start = last.removeprefix(self.prefix) + b"\x00"
        return continue_token.encode(ContinueToken(revision, start.decode()))


def _scope(registry: Registry, context: RequestContext, chosen: Selection) -> _Scope:
    """Return the scope of a list's first page; later pages do not use the name or the namespace of the selection."""
    resource = context.resource
    namespace = context.namespace or (chosen.namespace if resource.namespaced else "")
    prefix = registry.layout.scope(resource, namespace)
    if chosen.name and (namespace or not resource.namespaced):
        return _Scope(prefix, registry.layout.object(resource, namespace, chosen.name))
    return _Scope(prefix)


async def _first_items(
    registry: Registry,
    context: RequestContext,
    resource_cache: ResourceCache,
    scope: _Scope,
    chosen: Selection,
    limit: int,
) -> tuple[Sequence[StoredObject], int]:
    """Return the items of the first page, and the number of objects after the last one, whether they match or not."""
    if chosen.matches is None:
        items = resource_cache.select(scope.prefix, limit=limit)
        return items, resource_cache.count(scope.prefix) - len(items)
    if scope.key is not None:
        named = resource_cache.get(scope.key)
        candidates: Sequence[StoredObject] = [] if named is None else [named]
    else:
        candidates = resource_cache.select(scope.prefix, chosen.label)
        if limit and chosen.indexed is not None:
            candidates = await filter_in_slices(chosen.indexed, candidates, cost=chosen.cost)
    if remote_conversion(registry, context.resource) is not None:
        candidates = await objects_for_selectors(registry, context.resource, candidates)
    items = await filter_in_slices(chosen.matches, candidates, cost=chosen.cost, limit=limit)
    if not limit or len(items) < limit:
        return items, 0
    last = items[-1].key
    if scope.key is not None or chosen.indexed is not None:
        return items, sum(candidate.key > last for candidate in candidates)
    return items, len(resource_cache.between(last + b"\x00", prefix_end(scope.prefix)))


def _page(
    context: RequestContext,
    chosen: Selection,
    scope: _Scope,
    items: Sequence[StoredObject],
    remaining: int,
    revision: int,
) -> ListResult:
    """Return the first page of a list from the watch cache at a revision."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if remaining:
        metadata["continue"] = scope.token(items[-1].key, revision)
        if chosen.matches is None:
            metadata["remainingItemCount"] = remaining
    return _answer(context, items, metadata)


def _answer(
    context: RequestContext, items: Sequence[StoredObject], metadata: Mapping[str, Any]
) -> ListResult:
    resource = context.resource
    return ListResult(
        api_version=resource.api_version,
        kind=resource.list_kind,
        items=items,
        metadata={"continue": "", **metadata} if resource.custom else metadata,
        named=resource.custom,
    )


async def _next_page(
    registry: Registry, context: RequestContext, options: ListOptions, chosen: Selection
) -> ListResult:
    try:
        token = options.continue_token
        position = await registry.worker.run(len(token), continue_token.decode, token)
    except BadContinueToken as error:
        raise status.BadRequest(f"invalid continue token: {error}") from error
    if options.resource_version not in ("", "0"):
        raise status.BadRequest("specifying resource version is not allowed when using continue")
    scope = _Scope(registry.layout.scope(context.resource, context.namespace))
    return await _page_at_revision(registry, context, options, chosen, scope, position)


async def _page_at_revision(
    registry: Registry,
    context: RequestContext,
    options: ListOptions,
    chosen: Selection,
    scope: _Scope,
    position: ContinueToken,
) -> ListResult:
    """Return a page at an exact revision, read from the store."""
    start, end = scope.prefix + position.start.encode(), prefix_end(scope.prefix)
    if scope.key is not None:
        start, end = scope.key, scope.key + b"\x00"
    items: list[StoredObject] = []
    revision, remaining, more = max(position.revision, 0), 0, True
    while more and not (options.limit and len(items) >= options.limit):
        page_size = min(options.limit - len(items), PAGE_AT_REVISION) if options.limit else PAGE_AT_REVISION
        request = Range(key=start, range_end=end, revision=revision, limit=page_size)
        try:
            page = await at_revision(registry.kv.range(request))
        except Expired as error:
            if options.continue_token:
                raise PageExpired(continue_token.encode(ContinueToken(LATEST, position.start))) from error
            raise
        revision = revision or page.revision
        read: Sequence[StoredObject] = list(registry.readable(context.resource, page.kvs))
        if chosen.matches is not None:
            read = await filter_in_slices(
                chosen.matches,
                await objects_for_selectors(registry, context.resource, read),
                cost=chosen.cost,
            )
        items += read
        more, remaining = page.more, page.count - len(page.kvs)
        if page.kvs:
            start = page.kvs[-1].key + b"\x00"
        if more:
            await yield_to_loop()
    registry.warn_unreadable(context, scope.prefix)
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if more:
        metadata["continue"] = scope.token(start.removesuffix(b"\x00"), revision)
        if chosen.matches is None:
            metadata["remainingItemCount"] = remaining
    return _answer(context, items, metadata)


async def objects_at(
    registry: Registry, resource: Resource, prefix: bytes, revision: int
) -> Sequence[StoredObject]:
    """Return the objects below a prefix as they were at a revision of the store; other tasks run between its pages."""
    items: list[StoredObject] = []
    async with aclosing(pages_at(registry.kv, prefix, revision, PAGE_AT_REVISION)) as pages:
        async for page in pages:
            items += registry.readable(resource, page.kvs)
    return items


# --- resourceVersions of reads


def parse_version(text: str) -> int:
    """Return a resourceVersion as a number; "" and "0" are 0. The message of the ValueError is upstream's."""
    if not text:
        return 0
    try:
        return gotext.parse_uint(text)
    except gotext.NumberError as error:
        raise ValueError(errors.invalid(ROOT.child("resourceVersion"), text, str(error))) from error


def list_version(text: str) -> int:
    try:
        return parse_version(text)
    except ValueError as error:
        raise status.BadRequest(f"invalid resource version: {error}") from error


def get_version(text: str) -> int:
    try:
        return parse_version(text)
    except ValueError as error:
        raise ApiError(str(error)) from error
