"""Finalize a deleted definition: forbid the creation of its objects, delete them, and remove the finalizer."""

import logging
from collections.abc import Callable
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.apiextensions.custom_resource_definition import CLEANUP
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.delete import delete_collection
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import RequestContext, WriteOptions
from mockube.apiserver.registry.update import guaranteed_update
from mockube.apiserver.registry.write import Write
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import SERVER
from mockube.etcd.errors import KVError

from .catalog import Catalog
from .conditions import COMPLETED, IN_PROGRESS, NOT_EMPTY, Condition, not_deleted, nothing_to_delete

LOG = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""The interval of checks whether all objects are deleted; upstream checks every 5 seconds."""
MAX_CHECKS: Final = 60
"""The number of checks before all objects are deleted once more."""


class DefinitionStatusWriter:
    """Writes the status of definitions as the server itself."""

    def __init__(self, registry: Registry, row: Resource) -> None:
        self._registry = registry
        self._row = row

    async def write(
        self, name: str, mutate: Callable[[ReadOnlyTree], Tree | None], *, ends: bool = False
    ) -> StoredObject | None:
        """Store what `mutate` returns for the definition; with `ends`, remove the finalizer.

        Return the stored object, or None if nothing was stored.
        """
        # Through the status, where the stored versions are not validated against the present ones.
        context = RequestContext(
            verb="update",
            resource=self._row,
            subresource=self._row.subresource("status"),
            name=name,
            user=SERVER,
            user_agent="kube-apiserver",
        )

        def change(_: Write, old: Tree) -> Tree:
            new = mutate(old)
            if new is None:
                return old
            managed_tree = metadata.manage_change(self._registry, context, new, old, WriteOptions())
            return meta.without_finalizer(managed_tree, CLEANUP) if ends else managed_tree

        try:
            answer = await guaranteed_update(Write(registry=self._registry, context=context, change=change))
        except NotFound:
            LOG.debug("%s no longer exists", name)
        except (ApiError, KVError) as error:
            LOG.warning("the result of %s was not stored: %s", name, error)
        else:
            return answer.stored
        return None


class DefinitionFinalizer:
    """Finalizes deleted definitions, each in a task of its own."""

    def __init__(
        self, registry: Registry, catalog: Catalog, row: Resource, status: DefinitionStatusWriter
    ) -> None:
        self._registry = registry
        self._catalog = catalog
        self._row = row
        self._status = status
        self._running: set[str] = set()

    def mark_running(self, name: str) -> bool:
        """Mark the finalization of a definition as running; return whether it was not running before."""
        is_new = name not in self._running
        self._running.add(name)
        return is_new

    async def finalize(self, name: str, resource: GroupResource) -> None:
        """Delete all objects of a definition, then remove the finalizer.

        A definition with other finalizers is served again.
        """
        try:
            self._catalog.set_terminating(resource, terminating=True)
            while not await self._finish_deletion(name, resource):
                await self._registry.clock.sleep(RETRY_SECONDS)
            self._catalog.set_terminating(resource, terminating=False)
        finally:
            self._running.discard(name)

    async def _finish_deletion(self, name: str, resource: GroupResource) -> bool:
        await self._update_status(name, IN_PROGRESS)
        stored = await self._registry.find(self._row, "", name)
        if stored is None:
            return True
        condition = nothing_to_delete(stored.tree()) or await self._delete_objects(resource)
        is_done = bool(condition["status"] == "False")
        await self._update_status(name, condition, ends=is_done)
        return is_done

    async def _delete_objects(self, resource: GroupResource) -> Condition:
        """Delete all objects and wait until they are gone; return the resulting condition."""
        row = self._catalog.stored_row(resource)
        if row is None:
            return COMPLETED
        for _ in range(MAX_CHECKS):
            try:
                await self._registry.watch_cache.fresh()
                await delete_collection(
                    self._registry, RequestContext(verb="deletecollection", resource=row, user=SERVER)
                )
                await self._registry.watch_cache.fresh()
            except (ApiError, KVError) as error:
                LOG.warning("not all %s were deleted: %s", resource, error)
                return not_deleted(str(error))
            if not self._registry.list_cached(resource):
                return COMPLETED
            await self._registry.clock.sleep(RETRY_SECONDS)
        return NOT_EMPTY

    async def _update_status(self, name: str, condition: Condition, *, ends: bool = False) -> None:
        """Write the state of the deletion into the status."""
        now = self._registry.clock.now

        def mutate(old: ReadOnlyTree) -> Tree:
            return conditions.with_condition(old, condition, now())

        await self._status.write(name, mutate, ends=ends)
