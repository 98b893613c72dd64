"""Convert custom resources between versions by a webhook.

A definition has one `ConversionWebhook`, and each of its versions a `WebhookConversion`. A converted object is cached for
all reads at its revision, and concurrent reads wait for the same call.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import randomness
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.event_loop import Worker, batches
from mockube.apiserver.kinds.kind import NotConverted
from mockube.apiserver.metrics.admission import ConversionMetrics
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS
from mockube.apiserver.storage.stored_object import StoredObject, canonical_custom
from mockube.apiserver.tracing import spans
from mockube.apiserver.tracing.spans import Attributes
from mockube.component_base.clock import Clock

from . import conversion_review as review
from .conversion_review import ConversionFailed
from .custom_version import CustomVersion

MAX_OBJECTS: Final = 100
MAX_BYTES: Final = 1 << 20
"""The maximum size of the objects of one review, unless it has only one."""
MAX_CACHE_BYTES: Final = 64 << 20
"""Bytes of converted objects that are cached for one version."""
_TYPE_META: Final = {"apiVersion", "kind"}
MAX_CACHED_ANSWERS: Final = 64
"""Cached conversions of objects that are not stored, unless the definition has many versions."""
_ANSWERS_OF_WRITE: Final = 8
"""Conversions of one write to each version, at most: all of them have to be cached until it ends."""


class ReviewDependencies(Struct, frozen=True, kw_only=True):
    """The dependencies of calls to conversion webhooks."""

    post: Callable[[ReadOnlyTree, bytes], Awaitable[bytes]]
    """Sends a review to the endpoint of a client configuration; raises `ConversionFailed`."""
    clock: Clock
    random: Random
    metrics: ConversionMetrics


class Converter(ABC):
    """Converts the objects of one definition at one generation."""

    def __init__(self, custom_versions: Sequence[CustomVersion]) -> None:
        row = custom_versions[0].row
        self.custom_versions: Mapping[str, CustomVersion] = {
            custom.row.api_version: custom for custom in custom_versions
        }
        group, version = row.storage_version or row.group_version
        self.stored = self.custom_versions[f"{group}/{version}"]
        self.worker = Worker()

    @abstractmethod
    async def convert(self, trees: Sequence[Tree], api_version: str) -> Sequence[Tree]:
        """Return the objects in a version; those already in it are unchanged."""


class FunctionConverter(Converter):
    """Converts by a function of this server; used for the kinds of packs."""

    def __init__(
        self, convert: Callable[[Tree, str], Tree], custom_versions: Sequence[CustomVersion]
    ) -> None:
        super().__init__(custom_versions)
        self._convert = convert

    async def convert(self, trees: Sequence[Tree], api_version: str) -> Sequence[Tree]:
        return await self.worker.run(
            sum(map(_text_size, trees)), lambda: [self._convert_tree(tree, api_version) for tree in trees]
        )

    def _convert_tree(self, tree: Tree, api_version: str) -> Tree:
        if tree["apiVersion"] == api_version:
            return tree
        try:
            return self._convert(tree, api_version)
        except WRONG_TYPE_ERRORS as error:
            problem = f"conversion webhook for {review.format_kind(tree)} failed: a field has another type"
            raise ApiError(problem) from error


class ConversionWebhook(Converter):
    """The webhook of one definition at one generation."""

    def __init__(self, reviews: ReviewDependencies, custom_versions: Sequence[CustomVersion]) -> None:
        super().__init__(custom_versions)
        config = custom_versions[0].webhook
        assert config is not None
        self._reviews = reviews
        self._client = config.get("clientConfig") or {}
        self._version = review.review_version(config.get("conversionReviewVersions") or ())
        row = custom_versions[0].row
        self._name = f"{row.name}.{row.group}"

    async def convert(self, trees: Sequence[Tree], api_version: str) -> Sequence[Tree]:
        """Return the objects in a version, as the webhook converted them; those already in it are unchanged.

        As upstream, an object without fields is not sent.
        """
        empty = {id(tree): tree | {"apiVersion": api_version} for tree in trees if tree.keys() == _TYPE_META}
        others = [tree for tree in trees if tree["apiVersion"] != api_version and id(tree) not in empty]
        sizes = {id(tree): len(orjson.dumps(tree)) for tree in others} if len(others) > 1 else {}
        converted_by_id: dict[int, Tree] = empty
        for batch in batches(
            others, lambda tree: sizes.get(id(tree), 0), count=MAX_OBJECTS, max_bytes=MAX_BYTES
        ):
            converted = await self._call_webhook(batch, api_version)
            converted_by_id.update((id(tree), result) for tree, result in zip(batch, converted, strict=True))
        return [converted_by_id.get(id(tree), tree) for tree in trees]

    async def _call_webhook(self, trees: Sequence[Tree], api_version: str) -> Sequence[Tree]:
        reviews, name = self._reviews, self._name
        versions = trees[0]["apiVersion"].rpartition("/")[2], api_version.rpartition("/")[2]
        started_at, uid = reviews.clock.monotonic(), randomness.uid(reviews.random)
        failure = ""

        def attributes() -> Attributes:
            return {
                "custom-resource-definition": name,
                "desired-api-version": api_version,
                "object-count": len(trees),
                "UID": uid,
            }

        try:
            size = sum(map(_text_size, trees))
            body = await self.worker.run(size, review.request, trees, api_version, uid, self._version)
            with spans.child("Call conversion webhook", attributes) as span:
                data = await self._post(trees[0], body)
                span.add_event("Request completed")
            return await self.worker.run(len(data), review.read, data, trees, api_version, uid, self._version)
        except ConversionFailed as error:
            failure = error.failure_type
            raise ApiError(str(error)) from error
        finally:
            reviews.metrics.observe(name, *versions, failure, reviews.clock.monotonic() - started_at)

    async def _post(self, tree: Tree, body: bytes) -> bytes:
        try:
            return await self._reviews.post(self._client, body)
        except ConversionFailed as error:
            about = f"conversion webhook for {review.format_kind(tree)} failed"
            raise ConversionFailed(f"{about}: {error}", error.failure_type) from error


def _text_size(tree: Tree) -> int:
    """Return an estimate of the size of an object."""
    return len(str(tree)) if len(tree) > 2 else 0


class WebhookConversion:
    """The `RemoteConversion` between one version of a definition and the stored one."""

    def __init__(self, webhook: Converter, custom: CustomVersion) -> None:
        self._webhook = webhook
        self._custom = custom
        self._api_version = custom.row.api_version
        self._cache: OrderedDict[tuple[bytes, int], StoredObject] = OrderedDict()
        self._cache_bytes = 0
        self._in_flight: dict[tuple[bytes, int], asyncio.Future[None]] = {}
        self._answers: OrderedDict[tuple[bytes, str], Tree | ApiError] = OrderedDict()

    async def to_stored(self, tree: Tree) -> Tree:
        """Return a valid object in the stored version, without its resourceVersion."""
        metadata = {name: value for name, value in tree["metadata"].items() if name != "resourceVersion"}
        stored = self._webhook.stored
        (converted_tree,) = await self._webhook.convert(
            [tree | {"metadata": metadata}], stored.row.api_version
        )
        pruned: Tree = stored.prune(converted_tree, [])
        stored.default(pruned)
        return pruned

    async def from_stored(self, tree: Tree) -> Tree:
        """Return an object of any version in this version."""
        (converted_tree,) = await self._webhook.convert([self._prune_and_default(tree)], self._api_version)
        pruned: Tree = self._custom.prune(converted_tree, [])
        return pruned

    async def to_client_version(self, items: Sequence[StoredObject]) -> Sequence[StoredObject]:
        """Return stored objects in this version."""
        missing = [item for item in items if (item.key, item.revision) not in self._cache]
        if not missing:
            return [self._cache[item.key, item.revision] for item in items]
        own_items = [item for item in missing if (item.key, item.revision) not in self._in_flight]
        pending_calls = {
            self._in_flight[cache_key]
            for item in missing
            if (cache_key := (item.key, item.revision)) in self._in_flight
        }
        converted_items = (
            {(item.key, item.revision): item for item in await self._convert_items(own_items)}
            if own_items
            else {}
        )
        for pending_call in pending_calls:
            await asyncio.shield(pending_call)  # of another request, whose call goes on if this one ends
        results = [
            converted_items.get(cache_key) or self._cache.get(cache_key)
            for item in items
            for cache_key in [(item.key, item.revision)]
        ]
        # A result is missing if the call of another reader failed, or if the cache has dropped it since.
        if any(result is None for result in results):
            return [
                result or (await self._convert_items([item]))[0]
                for result, item in zip(results, items, strict=True)
            ]
        return [result for result in results if result is not None]

    async def convert_uncached(self, stored: StoredObject) -> StoredObject:
        """Return a stored object in this version, bypassing the cache."""
        return (await self._convert_items([stored]))[0]

    async def _convert_items(self, items: Sequence[StoredObject]) -> Sequence[StoredObject]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cache_keys = [(item.key, item.revision) for item in items]
        self._in_flight.update(dict.fromkeys(cache_keys, done))
        try:
            size = sum(len(item.value) for item in items)
            trees = await self._webhook.worker.run(size, self._read_all, items)
            converted = await self._webhook.convert(trees, self._api_version)
            converted_items = await self._webhook.worker.run(size, self._write_all, items, converted)
            for item in converted_items:
                self._add_to_cache(item)
            return converted_items
        finally:
            for cache_key in cache_keys:
                self._in_flight.pop(cache_key, None)
            done.set_result(None)

    def _read_all(self, items: Sequence[StoredObject]) -> Sequence[Tree]:
        return [self._prune_and_default(orjson.loads(item.value)) for item in items]

    def _write_all(self, items: Sequence[StoredObject], trees: Sequence[Tree]) -> Sequence[StoredObject]:
        prune = self._custom.prune
        return [
            StoredObject(item.key, canonical_custom(prune(tree, [])), item.revision)
            for item, tree in zip(items, trees, strict=True)
        ]

    def _prune_and_default(self, tree: Tree) -> Tree:
        """Return an object pruned and defaulted by its own version's schema."""
        custom = self._webhook.custom_versions.get(tree["apiVersion"])
        if custom is None:
            group_version = tree["apiVersion"]
            raise ApiError(f"request to convert CR from an invalid group/version: {group_version}")
        pruned: Tree = custom.prune(tree, [])
        custom.default(pruned)
        return pruned

    def _add_to_cache(self, stored: StoredObject) -> None:
        if (stored.key, stored.revision) in self._cache:
            return  # watches have sent the first conversion
        self._cache[stored.key, stored.revision] = stored
        self._cache_bytes += len(stored.value)
        while self._cache_bytes > MAX_CACHE_BYTES:
            _, oldest = self._cache.popitem(last=False)
            self._cache_bytes -= len(oldest.value)

    def at_version(self, tree: ReadOnlyTree, api_version: str) -> Tree:
        """Return an object that is not stored in a version; raise `NotConverted` until `prepare_version` was called for it."""
        cache_key = orjson.dumps(tree, option=orjson.OPT_SORT_KEYS), api_version
        answer = self._answers.get(cache_key)
        if answer is None:
            raise NotConverted(self, tree, api_version)
        if isinstance(answer, ApiError):
            del self._answers[cache_key]
            raise answer
        return answer

    async def prepare_version(self, tree: ReadOnlyTree, api_version: str) -> None:
        """Convert an object for `at_version`; as for field managers, it is not pruned."""
        cache_key = orjson.dumps(tree, option=orjson.OPT_SORT_KEYS), api_version
        answer: Any
        try:
            (answer,) = await self._webhook.convert([dict(tree)], api_version)
        except ApiError as error:
            answer = error
        self._answers[cache_key] = answer
        limit = max(MAX_CACHED_ANSWERS, _ANSWERS_OF_WRITE * len(self._webhook.custom_versions))
        while len(self._answers) > limit:
            self._answers.popitem(last=False)
