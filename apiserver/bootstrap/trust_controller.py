"""Write the ConfigMap extension-apiserver-authentication again after it or the CAs have changed."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from mockube.apimachinery.status import ApiError
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.storage.recent_changes import Change
from mockube.etcd.errors import KVError

from .ensure import ensure
from .required_object import GroupVersionResource, RequiredObject

LOG: Final = logging.getLogger(__name__)
RETRY_SECONDS: Final = 1.0


class TrustController:
    """Watches the cache for this object, and writes it."""

    def __init__(
        self,
        registry: Registry,
        resources: Callable[[GroupVersionResource], Resource],
        required_object: Callable[[], RequiredObject],
    ) -> None:
        """`required_object` returns the object with the current authorities."""
        self._registry = registry
        self._resources = resources
        self._required_object = required_object
        required = required_object()
        resource = resources(required.resource)
        self.prefix = registry.layout.object(resource, required.namespace, required.name)
        self._cache = registry.watch_cache.resource_cache(registry.layout.prefix(resource))
        self._is_outdated = asyncio.Event()

    def handle_change(self, _change: Change) -> None:
        self.invalidate()

    def handle_missed_change(self) -> None:
        self.invalidate()

    def invalidate(self) -> None:
        self._is_outdated.set()

    async def run(self) -> None:
        """Write the object whenever it is outdated, until cancelled."""
        self._cache.watchers.add(self)
        try:
            while True:
                await self._is_outdated.wait()
                self._is_outdated.clear()
                while not await self._write():
                    await self._registry.clock.sleep(RETRY_SECONDS)
        finally:
            self._cache.watchers.remove(self)

    async def _write(self) -> bool:
        """Write the object; return whether that succeeded."""
        try:
            await ensure(self._registry, self._resources, [self._required_object()])
        except (ApiError, KVError) as error:
            LOG.warning("The ConfigMap extension-apiserver-authentication was not written: %s", error)
            return False
        return True
