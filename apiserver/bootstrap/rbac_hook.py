"""Create the default roles and bindings in the background, while requests are served, as upstream does."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.delete import delete
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.update import update
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.etcd.errors import KVError

from . import rbac
from .ensure import create_directly, ensure, request_context
from .required_object import GroupVersionResource, RequiredObject

LOG = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""The interval between attempts if some objects could not be written."""


class BootstrapRoles:
    def __init__(
        self,
        registry: Registry,
        resources: Callable[[GroupVersionResource], Resource],
        minor: str = minors.NEWEST,
    ) -> None:
        self._registry = registry
        self._minor = minor
        self._resources = resources
        self._additional_objects: list[RequiredObject] = []
        self._is_pending = False
        self._is_outdated = asyncio.Event()
        self._is_outdated.set()
        self._on_ready: list[Callable[[], None]] = []

    async def problem(self) -> str:
        """Return why the hook has not finished; "" if it has."""
        return "not finished" if self._is_pending else ""

    def add(self, required_objects: Iterable[RequiredObject]) -> None:
        """Add objects to those of upstream."""
        self._additional_objects += required_objects

    def expect(self) -> None:
        """Report the hook as not finished, even before `run` begins."""
        self._is_pending = True

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call the function once, when all objects exist; immediately if they already do."""
        if self._is_pending:
            self._on_ready.append(callback)
        else:
            callback()

    async def invalidate(self) -> None:
        """Reconcile all objects again, because the content of the store was replaced."""
        self._is_pending = True
        self._is_outdated.set()

    async def run(self) -> None:
        """Create missing objects, now and after each `invalidate`, until cancelled."""
        while True:
            await self._is_outdated.wait()
            self._is_outdated.clear()
            while not await self.reconcile():
                await self._registry.clock.sleep(RETRY_SECONDS)
            self._is_pending = False
            while self._on_ready:
                self._on_ready.pop()()

    async def reconcile(self) -> bool:
        """Create and complete the roles and bindings; return whether all of them succeeded."""
        try:
            await self._registry.watch_cache.fresh()
            required_objects = [*rbac.policy(self._minor), *self._additional_objects]
            missing = [
                required_object
                for required_object in required_objects
                if self._find_present(required_object) is None
            ]
            present = [
                required_object
                for required_object in required_objects
                if self._find_present(required_object) is not None
            ]
            if await create_directly(self._registry, self._resources, missing) < len(missing):
                present = required_objects  # another server creates them, too
            await self._registry.watch_cache.fresh()
            outcomes = [await self._complete(required_object) for required_object in present]
        except (ApiError, KVError) as error:
            LOG.warning("System roles are incomplete, retrying: %s", error)
            return False
        return all(outcomes)

    def _find_present(self, required_object: RequiredObject) -> StoredObject | None:
        resource = self._resources(required_object.resource)
        return self._registry.find_cached(
            resource.group_resource, required_object.namespace, required_object.name
        )

    async def _complete(self, required_object: RequiredObject) -> bool:
        """Create an object, or add what it lacks; return whether that succeeded."""
        stored = self._find_present(required_object)
        present = None if stored is None else stored.tree()
        if present is None:
            await ensure(self._registry, self._resources, [required_object])
            return True
        if rbac.is_of_other_role(required_object.content, present):
            return await self._replace(required_object)
        tree = rbac.reconcile(required_object.content, present)
        if tree == present:
            return True
        if rbac.is_protected(present):
            LOG.warning(
                "%s %s lacks rights, but its annotation forbids updates",
                present["kind"],
                required_object.name,
            )
            return True
        return await self._update(required_object, tree)

    async def _update(self, required_object: RequiredObject, tree: Tree) -> bool:
        try:
            await update(
                self._registry,
                request_context(self._resources(required_object.resource), required_object, "update", tree),
            )
        except (Conflict, NotFound):
            return False
        return True

    async def _replace(self, required_object: RequiredObject) -> bool:
        with suppress(NotFound):
            await delete(
                self._registry,
                request_context(self._resources(required_object.resource), required_object, "delete", {}),
            )
        return bool(await ensure(self._registry, self._resources, [required_object]))
