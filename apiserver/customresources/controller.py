"""The controller of CustomResourceDefinitions: accepts names, serves the resources, and finalizes deleted definitions.

A pass processes the definitions that have changed, and those that wait for names which have become free. Several servers
may share a store: each serves the resources itself, and all write the same conditions. A definition gets the names that
no earlier definition of its group has.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct, to_builtins
from msgspec.json import Decoder

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.apiextensions.custom_resource_definition import CLEANUP
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS, Registry
from mockube.apiserver.storage.recent_changes import Change
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.interpreter_memory import return_free_memory
from mockube.component_base.loop import yield_to_loop

from . import conditions
from .catalog import Catalog
from .compile import compile_definition
from .conditions import UsedNames
from .conversion_webhook import ReviewDependencies
from .custom_version import CustomVersion
from .finalizing import DefinitionFinalizer, DefinitionStatusWriter
from .registries import OBJECT_META

SLICE_BYTES: Final = 256 * 1024
"""The size of changed definitions that are parsed before other requests are served."""
RETURN_BYTES: Final = 2 << 20
"""The size of compiled definitions after which free memory is returned: schemas take a multiple of it while they are parsed."""
DEFINITIONS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")


class _Spec(Struct, omit_defaults=True):
    group: str
    names: dict[str, Any]
    conversion: dict[str, Any] | None = None


class _Definition(Struct, omit_defaults=True):
    """A definition without its schemas, which may have megabytes: they are read when they are compiled."""

    metadata: dict[str, Any]
    spec: _Spec
    status: dict[str, Any] | None = None


_read: Final = Decoder(_Definition).decode


class _ParsedDefinition(Struct, frozen=True, kw_only=True):
    """A definition at one of its versions, parsed once."""

    stored: StoredObject
    tree: Tree
    """Without its schemas."""

    @classmethod
    def of(cls, stored: StoredObject) -> "_ParsedDefinition":
        """Raise one of `WRONG_TYPE_ERRORS` if a field that is read elsewhere has another type."""
        definition = cls(stored=stored, tree=to_builtins(_read(stored.value)))
        conditions.accepted_names(definition.tree)
        hash(definition.resource)
        return definition

    @property
    def resource(self) -> GroupResource:
        spec = self.tree["spec"]
        return GroupResource(spec["group"], spec["names"]["plural"])

    @property
    def served_as(self) -> tuple[str, int, bytes]:
        """Return the key of the served version of the definition: its uid, generation and accepted names."""
        names = orjson.dumps(conditions.accepted_names(self.tree))
        return meta.uid(self.tree), meta.generation(self.tree), names


class DefinitionController:
    """Establishes, serves and finalizes definitions in a task of the server; `catch_up` runs before that task."""

    def __init__(self, registry: Registry, catalog: Catalog, reviews: ReviewDependencies) -> None:
        self._registry = registry
        self._catalog = catalog
        self._reviews = reviews
        self._row: Resource = registry.rows[DEFINITIONS]
        self._resource_cache = registry.watch_cache.resource_cache(registry.layout.prefix(self._row))
        self.prefix = self._resource_cache.prefix
        self._definitions: dict[str, _ParsedDefinition] = {}
        self._used_names = UsedNames()
        self._waiting: dict[str, set[str]] = {}
        """By group, the definitions whose names are not all accepted."""
        self._served: dict[str, tuple[str, int, bytes]] = {}
        self._changed_names: dict[str, None] = {}
        """The definitions to sync, in order."""
        self._needs_resync = True
        self._compiled_bytes = 0
        self._unchecked_names: set[str] = set()
        """Definitions that another server may have stored: whether their schemas are structural is not known."""
        self._status = DefinitionStatusWriter(registry, self._row)
        self._finalizer = DefinitionFinalizer(registry, catalog, self._row, self._status)
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        registry.watch_cache.on_reset.append(self.handle_missed_change)

    def handle_change(self, change: Change) -> None:
        self._changed_names[_name_of(change.after)] = None
        self._wake()

    def handle_missed_change(self) -> None:
        self._needs_resync = True
        self._wake()

    def _wake(self) -> None:
        self._idle.clear()
        self._changed.set()

    async def wait_idle(self) -> None:
        """Wait until all definitions that changed before this call are served."""
        await self._idle.wait()

    def served_versions(self, stored: StoredObject) -> Sequence[CustomVersion]:
        """Return the compiled versions of a definition if it is served like this now; else none."""
        definition = _ParsedDefinition.of(stored)
        is_same = self._served.get(_name_of(stored)) == definition.served_as
        return self._catalog.versions_of(definition.resource) if is_same else ()

    async def run(self) -> None:
        self._resource_cache.watchers.add(self)
        try:
            async with asyncio.TaskGroup() as group:
                self.handle_missed_change()
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    await self.catch_up(group)
                    if not self._changed.is_set():
                        self._idle.set()
        finally:
            self._idle.set()
            self._resource_cache.watchers.remove(self)

    async def catch_up(self, group: asyncio.TaskGroup | None = None) -> None:
        """Sync the definitions that have changed; without a group, none is finalized."""
        for name in await self._parse_changed():
            definition = self._definitions.get(name)
            if definition is None:
                if self._served.pop(name, None):
                    self._catalog.remove(_resource_of(name))
            elif meta.is_deleting(definition.tree):
                needs_cleanup = group is not None and CLEANUP in meta.finalizers(definition.tree)
                if group is not None and needs_cleanup and self._finalizer.mark_running(name):
                    group.create_task(
                        self._finalizer.finalize(name, definition.resource), name=f"clean up {name}"
                    )
            else:
                await self._sync(name)

    # --- parsing

    async def _parse_changed(self) -> Sequence[str]:
        """Parse changed definitions; return those to sync, with those that wait for names that became free."""
        changed, self._changed_names = self._changed_names, {}
        is_resync, self._needs_resync = self._needs_resync, False
        if is_resync:
            present = {_name_of(stored) for stored in self._resource_cache}
            self._unchecked_names |= present
            changed = dict.fromkeys((*present, *self._definitions, *self._served))
        size, groups = 0, dict[str, None]()
        for name in changed:
            if size >= SLICE_BYTES:
                await yield_to_loop()
                size = 0
            stored = self._resource_cache.get(self.prefix + name.encode())
            before = self._definitions.get(name)
            if stored is None:
                self._remove(name, groups)
            elif before is None or is_resync or before.stored.revision < stored.revision:
                size += len(stored.value)
                self._add(name, stored, groups)
        for group in groups:
            changed |= dict.fromkeys(self._waiting.get(group, ()))
        return [*changed]

    def _add(self, name: str, stored: StoredObject, groups: dict[str, None]) -> None:
        try:
            definition = _ParsedDefinition.of(stored)
        except WRONG_TYPE_ERRORS as error:
            self._registry.watch_cache.report_malformed(stored, error)
            self._remove(name, groups)
            return
        self._definitions[name] = definition
        group = definition.resource.group
        if self._used_names.put(name, group, conditions.accepted_names(definition.tree)):
            groups[group] = None
        waiting = self._waiting.setdefault(group, set())
        (waiting.discard if conditions.has_its_names(definition.tree) else waiting.add)(name)

    def _remove(self, name: str, groups: dict[str, None]) -> None:
        self._unchecked_names.discard(name)
        definition = self._definitions.pop(name, None)
        if definition is None:
            return
        group = definition.resource.group
        self._waiting.get(group, set()).discard(name)
        if self._used_names.remove(name):
            groups[group] = None

    # --- syncing

    async def _sync(self, name: str) -> None:
        """Update the status of a definition and serve it; a change of its names requeues the definitions that wait for them."""
        now = self._registry.clock.now
        try:
            await self._update_status(name, lambda old: conditions.with_names(old, self._used_names, now()))
            await self._check_structure(name)
            approval = conditions.approval(self._definitions[name].tree)
            if approval is not None:
                await self._update_status(name, lambda old: conditions.with_condition(old, approval, now()))
            if conditions.may_be_served(self._definitions[name].tree):
                # It is served before its status shows it: a client that reads the status may send requests at once.
                await self._serve(name, self._definitions[name])
            await self._update_status(name, lambda old: conditions.with_established(old, now()))
            if conditions.is_established(self._definitions[name].tree):
                self._catalog.list_resource(_resource_of(name))
        except (*WRONG_TYPE_ERRORS, RecursionError) as error:
            self._registry.watch_cache.report_malformed(self._definitions[name].stored, error)

    async def _update_status(self, name: str, mutate: Callable[[ReadOnlyTree], Tree | None]) -> None:
        if mutate(self._definitions[name].tree) is None:
            return
        stored = await self._status.write(name, mutate)
        if stored is not None:
            groups = dict[str, None]()
            self._add(name, stored, groups)
            for group in groups:
                self._changed_names |= dict.fromkeys(self._waiting.get(group, ()))
            if self._changed_names:
                self._wake()

    async def _check_structure(self, name: str) -> None:
        """Check the schemas of a definition that was not checked when it was written, or was not structural."""
        definition = self._definitions[name]
        if name not in self._unchecked_names and not conditions.is_unstructured(definition.tree):
            return
        self._unchecked_names.discard(name)
        size = len(definition.stored.value) * self._row.work
        problem = await self._registry.worker.run(size, _structure_problem, definition.stored)
        now = self._registry.clock.now
        await self._update_status(name, lambda old: conditions.with_structure(old, problem, now()))

    async def _serve(self, name: str, definition: _ParsedDefinition) -> None:
        tree, worker = definition.tree, self._registry.worker
        version = definition.served_as
        if self._served.get(name) == version:
            return
        schemas = self._registry.scheme.schemas
        # Its patterns are parsed to estimate their cost: a few bytes may take long.
        size = len(definition.stored.value) * self._row.work
        custom_versions = await worker.run(
            size, _compile, definition.stored, lambda: schemas.definition(OBJECT_META)
        )
        if not conditions.is_established(tree) and not self._catalog.versions_of(definition.resource):
            # As upstream, which lists it after the last change of its status: clients that wait for it may then update it.
            # The kinds of packs are listed since the start of the server.
            self._catalog.unlist(definition.resource)
        # Every change of a definition is a new generation of it.
        changed_at = definition.stored.revision if meta.generation(tree) > 1 else 0
        self._catalog.add(custom_versions, changed_at=changed_at, reviews=self._reviews)
        await self._registry.watch_cache.rebuild_if_outdated()
        self._served[name] = version
        self._compiled_bytes += len(definition.stored.value)
        if self._compiled_bytes > RETURN_BYTES:
            self._compiled_bytes = 0
            return_free_memory()


async def serve_established(
    registry: Registry,
    catalog: Catalog,
    reviews: ReviewDependencies,
    definitions: Iterable[StoredObject],
    compiled: Callable[[StoredObject], Sequence[CustomVersion]],
) -> None:
    """Serve the definitions of a store that does not change: those that are established there.

    `compiled` returns the versions of a definition that another server has compiled, or none.
    """
    row, schemas = registry.rows[DEFINITIONS], registry.scheme.schemas
    for stored in definitions:
        try:
            definition = _ParsedDefinition.of(stored)
            if not conditions.is_established(definition.tree):
                continue
            versions = compiled(stored) or await registry.worker.run(
                len(stored.value) * row.work, _compile, stored, lambda: schemas.definition(OBJECT_META)
            )
        except (*WRONG_TYPE_ERRORS, RecursionError) as error:
            registry.watch_cache.report_malformed(stored, error)
            continue
        changed_at = stored.revision if meta.generation(definition.tree) > 1 else 0
        catalog.add(versions, changed_at=changed_at, reviews=reviews)


def _compile(stored: StoredObject, metadata: Callable[[], SchemaType]) -> Sequence[CustomVersion]:
    return compile_definition(stored.tree(), metadata)


def _structure_problem(stored: StoredObject) -> str:
    return conditions.structure_problem(stored.tree())


def _name_of(stored: StoredObject) -> str:
    return stored.key.rpartition(b"/")[2].decode()


def _resource_of(name: str) -> GroupResource:
    plural, _, group = name.partition(".")
    return GroupResource(group, plural)
