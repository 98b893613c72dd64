"""The end of a definition: it waits until nothing of what it defined is left, and nobody may create more of it."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import Tree
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.custom import Custom
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.apiextensions.custom_resource_definition import CLEANUP
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Call
from mockube.apiserver.registry.delete import delete_collection
from mockube.apiserver.registry.options import WriteOptions
from mockube.apiserver.registry.update import change
from mockube.apiserver.user import User
from mockube.etcd.errors import KVError

LOG = logging.getLogger(__name__)

USER: Final = User(name="system:apiserver", groups=("system:masters",))
RETRY_SECONDS: Final = 1.0
"""How often it is looked again whether everything is gone; upstream looks every 5 seconds."""


class Cleaning:
    def __init__(self, backend: Backend, catalog: Catalog, row: Resource) -> None:
        self._backend = backend
        self._catalog = catalog
        self._row = row
        self._under_way: set[str] = set()

    def begins(self, name: str) -> bool:
        """Whether the clean-up of a definition is to begin now, and not under way."""
        is_new = name not in self._under_way
        self._under_way.add(name)
        return is_new

    async def clean(self, name: str, resource: GroupResource) -> None:
        try:
            self._close(resource)
            await self._tell(name, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            while not await self._is_empty(resource):
                await self._backend.clock.sleep(RETRY_SECONDS)
            await self._release(name)
        finally:
            self._under_way.discard(name)

    def _close(self, resource: GroupResource) -> None:
        customs = self._catalog.versions_of(resource)
        if customs:
            self._catalog.add(_terminating(customs))

    async def _is_empty(self, resource: GroupResource) -> bool:
        """Delete what is there; false while something is, for it may wait for others."""
        row = self._catalog.stored_rows.get(resource)
        if row is None:
            return True
        try:
            await self._backend.watch_cache.fresh()
            await delete_collection(self._backend, Call(verb="deletecollection", resource=row, user=USER))
            await self._backend.watch_cache.fresh()
        except (ApiError, KVError) as error:
            LOG.warning("%s were not all deleted: %s", resource, error)
            return False
        return not self._backend.all_seen(resource)

    async def _tell(self, name: str, reason: str, message: str) -> None:
        """Say in the status how far the deletion is."""
        condition = {"type": "Terminating", "status": "True", "reason": reason, "message": message}

        def with_condition(old: Tree) -> Tree:
            listed = conditions.set_condition(conditions.of(old), condition, self._backend.clock.now())
            return old | {"status": (old.get("status") or {}) | {"conditions": listed}}

        await self._change(name, with_condition)

    async def _release(self, name: str) -> None:
        await self._change(name, lambda old: meta.without_finalizer(old, CLEANUP))

    async def _change(self, name: str, made: Callable[[Tree], Tree]) -> None:
        # Through the status, where the versions that objects were stored in are not held against those that there are.
        status = self._row.subresource("status")
        call = Call(verb="update", resource=self._row, subresource=status, name=name, user=USER)

        async def transform(old: Tree) -> Tree:
            return made(old)

        try:
            await change(self._backend, call, WriteOptions(), transform)
        except NotFound:
            LOG.debug("%s is gone already", name)
        except (ApiError, KVError) as error:
            LOG.warning("the deletion of %s was not stored: %s", name, error)


def _terminating(customs: Sequence[Custom]) -> Sequence[Custom]:
    return [replace(custom, row=replace(custom.row, terminating=True)) for custom in customs]
