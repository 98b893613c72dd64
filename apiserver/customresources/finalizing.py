"""The end of a definition: it waits until nothing of what it defined is left, and nobody may create more of it."""

import logging
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.customresources import definition_status
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.definition_status import Condition
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.apiextensions.custom_resource_definition import CLEANUP
from mockube.apiserver.registry import managed
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Call
from mockube.apiserver.registry.delete import delete_collection
from mockube.apiserver.registry.options import WriteOptions
from mockube.apiserver.registry.update import change
from mockube.apiserver.storage.stored import Stored
from mockube.apiserver.user import User
from mockube.etcd.errors import KVError

LOG = logging.getLogger(__name__)

USER: Final = User(name="system:apiserver", groups=("system:masters",))
RETRY_SECONDS: Final = 1.0
"""How often it is looked again whether everything is gone; upstream looks every 5 seconds."""
LOOKS: Final = 60
"""How often it is looked before everything is deleted once more."""


class StatusWriter:
    """Writes the status of definitions as the server itself."""

    def __init__(self, backend: Backend, row: Resource) -> None:
        self._backend = backend
        self._row = row

    async def write(
        self, name: str, made: Callable[[ReadOnlyTree], Tree | None], *, ends: bool = False
    ) -> Stored | None:
        """Store what is made of the definition, if it is made into something; with `ends`, it may go then.

        Returns what is stored, or None if nothing was.
        """
        # Through the status, where the versions that objects were stored in are not held against those that there are.
        call = Call(
            verb="update",
            resource=self._row,
            subresource=self._row.subresource("status"),
            name=name,
            user=USER,
            user_agent="kube-apiserver",
        )
        options = WriteOptions()

        async def transform(old: Tree) -> Tree:
            new = made(old)
            if new is None:
                return old
            managed_tree = managed.on_update(self._backend, call, new, old, options)
            return meta.without_finalizer(managed_tree, CLEANUP) if ends else managed_tree

        try:
            answer = await change(self._backend, call, options, transform)
        except NotFound:
            LOG.debug("%s is gone already", name)
        except (ApiError, KVError) as error:
            LOG.warning("what became of %s was not stored: %s", name, error)
        else:
            return answer.stored
        return None


class Cleaning:
    def __init__(self, backend: Backend, catalog: Catalog, row: Resource, status: StatusWriter) -> None:
        self._backend = backend
        self._catalog = catalog
        self._row = row
        self._status = status
        self._under_way: set[str] = set()

    def begins(self, name: str) -> bool:
        """Whether the clean-up of a definition is to begin now, and not under way."""
        is_new = name not in self._under_way
        self._under_way.add(name)
        return is_new

    async def clean(self, name: str, resource: GroupResource) -> None:
        """Delete all objects of a definition, and then let it go; with other finalizers it stays, and is served again."""
        try:
            self._serve(resource, terminating=True)
            while not await self._end(name, resource):
                await self._backend.clock.sleep(RETRY_SECONDS)
            self._serve(resource, terminating=False)
        finally:
            self._under_way.discard(name)

    def _serve(self, resource: GroupResource, *, terminating: bool) -> None:
        customs = self._catalog.versions_of(resource)
        if customs:
            self._catalog.add(
                [replace(custom, row=replace(custom.row, terminating=terminating)) for custom in customs]
            )

    async def _end(self, name: str, resource: GroupResource) -> bool:
        await self._tell(name, definition_status.IN_PROGRESS)
        stored = await self._backend.find(self._row, "", name)
        if stored is None:
            return True
        condition = definition_status.nothing_to_delete(stored.tree()) or await self._deleted(resource)
        is_done = bool(condition["status"] == "False")
        await self._tell(name, condition, ends=is_done)
        return is_done

    async def _deleted(self, resource: GroupResource) -> Condition:
        """Delete what is there, and wait until it is gone; returns what has become of it."""
        row = self._catalog.stored_rows.get(resource)
        if row is None:
            return definition_status.COMPLETED
        for _ in range(LOOKS):
            try:
                await self._backend.watch_cache.fresh()
                await delete_collection(self._backend, Call(verb="deletecollection", resource=row, user=USER))
                await self._backend.watch_cache.fresh()
            except (ApiError, KVError) as error:
                LOG.warning("%s were not all deleted: %s", resource, error)
                return definition_status.not_deleted(str(error))
            if not self._backend.all_seen(resource):
                return definition_status.COMPLETED
            await self._backend.clock.sleep(RETRY_SECONDS)
        return definition_status.NOT_EMPTY

    async def _tell(self, name: str, condition: Condition, *, ends: bool = False) -> None:
        """Say in the status how far the deletion is."""
        now = self._backend.clock.now

        def made(old: ReadOnlyTree) -> Tree:
            return conditions.with_condition(old, condition, now())

        await self._status.write(name, made, ends=ends)
