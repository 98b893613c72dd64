"""Import objects that `kubectl get -o yaml` printed: in dependency order, concurrently, each independently.

The import reports failures and continues. Existing objects are kept, or replaced if requested.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.status import AlreadyExists, ApiError, Invalid, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import CUSTOM_RESOURCE_DEFINITIONS, NODES
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout

from . import cleaning
from .documents import Document, Origin
from .kinds import NotServed, OwnerUIDs, ServedKinds, discover_kinds
from .order import concurrent_batches

MAX_CONCURRENT: Final = 32
ESTABLISHED_SECONDS: Final = 10.0
_POLL_SECONDS: Final = 0.05


class ImportOutcome(StrEnum):
    CREATED = "created"
    REPLACED = "replaced"
    EXISTS = "exists"
    SKIPPED = "skipped"
    FAILED = "failed"


WRITTEN_OUTCOMES: Final = frozenset({ImportOutcome.CREATED, ImportOutcome.REPLACED})


class Item(Struct, kw_only=True):
    """An object to import, and its outcome."""

    tree: ReadOnlyTree
    """The printed object, in its target namespace."""
    origin: Origin | None = None
    """None for a Namespace or ServiceAccount that the documents imply."""
    outcome: ImportOutcome | None = None
    reason: str = ""

    @property
    def title(self) -> str:
        """The object's name as kubectl prints it, such as `deployment.apps/web`."""
        return f"{str(cleaning.kind_of(self.tree)).lower()}/{meta.name(self.tree)}"


class ImportOptions(Struct, frozen=True, kw_only=True):
    replace: bool = False
    dry_run: bool = False
    namespace: str = ""
    """The namespace for all namespaced objects; "" leaves each in its own."""


@dataclass(slots=True)
class Importer:
    """One import into one cluster."""

    client: Client
    clock: Clock
    options: ImportOptions
    on_result: Callable[[Item], None]
    """Called once for each object, when its outcome is known."""
    _kinds: ServedKinds = field(init=False)
    _owners: OwnerUIDs = field(init=False)
    _nodes: set[str] = field(init=False)

    async def run(self, documents: Iterable[Document]) -> None:
        self._kinds = await discover_kinds(self.client)
        self._owners = OwnerUIDs(self.client)
        items = self._items(documents)
        self._nodes = {meta.name(node) for node in (await self.client.list(NODES)).items}
        self._nodes |= {
            meta.name(item.tree) for item in items if cleaning.kind_of(item.tree) == cleaning.NODE
        }
        for batch in concurrent_batches([item.tree for item in items]):
            await self._run_all(self._import_object, [items[index] for index in batch])
            if any(cleaning.kind_of(items[index].tree) == cleaning.DEFINITION for index in batch):
                await self._wait_for_definitions([items[index] for index in batch])
            self._report(items[index] for index in batch if not meta.owner_references(items[index].tree))
        owned = [item for item in items if meta.owner_references(item.tree)]
        if not self.options.dry_run:
            await self._write_owners([item for item in owned if item.outcome in WRITTEN_OUTCOMES])
        self._report(owned)

    def _report(self, items: Iterable[Item]) -> None:
        for item in items:
            self.on_result(item)

    def _items(self, documents: Iterable[Document]) -> list[Item]:
        items = [
            Item(tree=self._with_namespace(document.tree), origin=document.origin) for document in documents
        ]
        if self.options.namespace:
            items = [item for item in items if cleaning.kind_of(item.tree) != cleaning.NAMESPACE]
        return [
            *items,
            *(Item(tree=tree) for tree in cleaning.implied_objects([item.tree for item in items])),
        ]

    def _with_namespace(self, tree: ReadOnlyTree) -> ReadOnlyTree:
        if not self._kinds.is_namespaced(tree):
            return tree
        namespace = self.options.namespace or meta.namespace(tree) or "default"
        return meta.with_metadata(tree, namespace=namespace)

    async def _run_all(self, work: Callable[[Item], Any], items: Sequence[Item]) -> None:
        """Run `work` for the items, MAX_CONCURRENT at a time; an unreachable server ends all of them."""
        waiting = iter(items)

        async def worker() -> None:
            for item in waiting:
                try:
                    await work(item)
                except (ApiError, NotServed) as error:
                    item.outcome, item.reason = ImportOutcome.FAILED, str(error)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(MAX_CONCURRENT, len(items))):
                    group.create_task(worker())
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    # --- one object

    async def _import_object(self, item: Item) -> None:
        tree = item.tree
        if reason := cleaning.reason_to_skip(tree):
            item.outcome, item.reason = ImportOutcome.SKIPPED, reason
        elif self.options.dry_run:
            item.outcome = await self._predict(tree)
        else:
            try:
                live_object = await self._create(tree)
                item.outcome = ImportOutcome.CREATED
            except AlreadyExists:
                live_object, item.outcome = await self._keep_or_replace(item)
            self._owners.record_uid(meta.uid(tree), meta.uid(live_object))
            if item.outcome is not ImportOutcome.EXISTS:
                await self._write_status(tree)

    async def _create(self, tree: ReadOnlyTree) -> ReadOnlyTree:
        resource, body = self._kinds.resource_of(tree), cleaning.clean_object(tree, self._nodes)
        try:
            return await self.client.create(resource, body)
        except Invalid:
            body_without_assigned_fields = cleaning.without_assigned_fields(body)
            if body_without_assigned_fields is None:
                raise
            return await self.client.create(resource, body_without_assigned_fields)

    async def _keep_or_replace(self, item: Item) -> tuple[ReadOnlyTree, ImportOutcome]:
        resource = self._kinds.resource_of(item.tree)
        live_object = await self.client.get(resource, Key.of(item.tree))
        if not self.options.replace or item.origin is None:
            return live_object, ImportOutcome.EXISTS
        body = cleaning.clean_object(item.tree, self._nodes)
        references = meta.owner_references(live_object)
        body = meta.with_metadata(
            body, resourceVersion=meta.resource_version(live_object), ownerReferences=references
        )
        return await self.client.update(resource, body), ImportOutcome.REPLACED

    async def _write_status(self, tree: ReadOnlyTree) -> None:
        status = cleaning.status_of(tree, self._nodes)
        if status is not None and self._kinds.has_status(tree):
            resource = self._kinds.resource_of(tree)
            await self.client.patch(resource, Key.of(tree), {"status": status}, subresource="status")

    async def _predict(self, tree: ReadOnlyTree) -> ImportOutcome:
        try:
            await self.client.get(self._kinds.resource_of(tree), Key.of(tree))
        except (NotFound, NotServed):
            return ImportOutcome.CREATED
        return ImportOutcome.REPLACED if self.options.replace else ImportOutcome.EXISTS

    async def _write_owners(self, items: Sequence[Item]) -> None:
        """Set the owner references that controllers have not already set by adoption."""
        owner_uids = await self._owner_uids(
            {cleaning.kind_of(item.tree): item.tree for item in items}.values()
        )

        async def write_owner(item: Item) -> None:
            tree, kinds = item.tree, self._kinds
            references, absent = await self._owners.references(tree, kinds)
            if absent:
                item.reason = f"without its owner, which does not exist: {', '.join(absent)}"
            if not {reference["uid"] for reference in references} <= owner_uids.get(
                (cleaning.kind_of(tree), Key.of(tree)), set()
            ):
                body = {"metadata": {"ownerReferences": references}}
                await self.client.patch(kinds.resource_of(tree), Key.of(tree), body)

        await self._run_all(write_owner, items)

    async def _owner_uids(self, samples: Iterable[ReadOnlyTree]) -> Mapping[tuple[GroupKind, Key], set[str]]:
        """Return the owners' uids of each object of the samples' kinds."""
        uids_by_object = {}
        for sample in samples:
            resource = replace(self._kinds.resource_of(sample), metadata_only=True)
            for obj in (await self.client.list(resource)).items:
                uids = {reference["uid"] for reference in meta.owner_references(obj)}
                uids_by_object[cleaning.kind_of(sample), Key.of(obj)] = uids
        return uids_by_object

    async def _wait_for_definitions(self, items: Sequence[Item]) -> None:
        """Wait until the CustomResourceDefinitions are established, and discover their kinds."""
        for item in items:
            if item.outcome in WRITTEN_OUTCOMES:
                await self._wait_until_established(item)
        self._kinds = await discover_kinds(self.client)

    async def _wait_until_established(self, item: Item) -> None:
        key = Key.of(item.tree)
        try:
            async with timeout(self.clock, ESTABLISHED_SECONDS):
                while not conditions.is_true(
                    await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, key), "Established"
                ):
                    await self.clock.sleep(_POLL_SECONDS)
        except TimeoutError:
            item.reason = (
                f"but CustomResourceDefinition {key.name} was not established within {ESTABLISHED_SECONDS:g} s: "
                "check its status conditions, since its names may conflict with another definition"
            )
