"""The end of a definition: it waits until nothing of what it defined is left, and nobody may create more of it."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from apimachinery import meta
from apimachinery.groups import GroupResource
from apimachinery.status import ApiError, NotFound
from apiserver.crd.catalog import Catalog
from apiserver.crd.custom import Custom
from apiserver.resources.spec import Resource
from apiserver.resources.strategies.definitions import CLEANUP
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, User
from apiserver.rest.delete import delete_collection
from apiserver.rest.options import WriteOptions
from apiserver.rest.update import change
from apiserver.storage.stored import Tree
from etcd.errors import KVError

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
            while not await self._is_empty(resource):
                await self._backend.clock.sleep(RETRY_SECONDS)
            await self._release(name)
        finally:
            self._under_way.discard(name)

    def _close(self, resource: GroupResource) -> None:
        customs = self._catalog.versions_of(resource)
        if customs:
            self._catalog.add(_without_create(customs))

    async def _is_empty(self, resource: GroupResource) -> bool:
        """Delete what is there; false while something is, for it may wait for others."""
        row = self._catalog.stored_rows.get(resource)
        if row is None:
            return True
        try:
            await self._backend.mirror.fresh()
            await delete_collection(self._backend, Call(verb="deletecollection", resource=row, user=USER))
            await self._backend.mirror.fresh()
        except (ApiError, KVError) as error:
            LOG.warning("%s were not all deleted: %s", resource, error)
            return False
        return not self._backend.all_seen(resource)

    async def _release(self, name: str) -> None:
        call = Call(verb="update", resource=self._row, name=name, user=USER)

        async def transform(old: Tree) -> Tree:
            return meta.without_finalizer(old, CLEANUP)

        try:
            await change(self._backend, call, WriteOptions(), transform)
        except NotFound:
            LOG.debug("%s is gone already", name)
        except (ApiError, KVError) as error:
            LOG.warning("%s was not let go: %s", name, error)


def _without_create(customs: Sequence[Custom]) -> Sequence[Custom]:
    return [
        replace(
            custom,
            row=replace(custom.row, verbs=tuple(verb for verb in custom.row.verbs if verb != "create")),
        )
        for custom in customs
    ]
