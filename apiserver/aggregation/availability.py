"""Says of each APIService whether it is available, in its status, as upstream's aggregator does within the server."""

import logging

from mockube.apimachinery import conditions
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.backend import OF_WRONG_TYPES, Backend
from mockube.apiserver.registry.call import Call
from mockube.apiserver.registry.options import WriteOptions
from mockube.apiserver.registry.selection import EVERYTHING
from mockube.apiserver.registry.update import change
from mockube.apiserver.registry.watch_stream import DELETED, Stream
from mockube.apiserver.storage.stored import Stored
from mockube.apiserver.user import User
from mockube.etcd.errors import KVError

LOG = logging.getLogger(__name__)

SYSTEM = User(name="system:apiserver", groups=("system:masters",))
NOT_PROXIED = "this server does not proxy requests to other API servers"


class Availability:
    """Follows API services; run it as a task of the server."""

    def __init__(self, backend: Backend, api_services: Resource, services: Resource) -> None:
        self._backend = backend
        self._api_services = api_services
        self._services = services

    async def run(self) -> None:
        """Judge all anew whenever changes may have been missed, until cancelled."""
        while True:
            await self._follow()

    async def _follow(self) -> None:
        watch_cache = self._backend.watch_cache
        resource_cache = watch_cache.resource_cache(self._backend.layout.resource_cache(self._api_services))
        stream = Stream(resource_cache.prefix, resource_cache, EVERYTHING)
        stream.begin(resource_cache.select(resource_cache.prefix), watch_cache.revision)
        resource_cache.follow(stream)
        watch_cache.on_reset.append(stream.miss)
        try:
            while events := await stream.take():
                for event in events:
                    if event.stored is not None and event.kind != DELETED:
                        await self._try_to_judge(event.stored)
        finally:
            watch_cache.on_reset.remove(stream.miss)
            stream.close()

    async def _try_to_judge(self, stored: Stored) -> None:
        try:
            await self._judge(stored.tree())
        except OF_WRONG_TYPES as error:
            self._backend.watch_cache.report_malformed(stored, error)

    async def _judge(self, tree: Tree) -> None:
        available = await self._available(tree)
        if conditions.says(tree, available):
            return
        call = Call(
            verb="update",
            resource=self._api_services,
            subresource=self._api_services.subresource("status"),
            name=tree["metadata"]["name"],
            user=SYSTEM,
        )

        async def transform(old: Tree) -> Tree:
            return _with(old, available, self._backend.clock)

        try:
            await change(self._backend, call, WriteOptions(), transform)
        except (ApiError, KVError) as error:
            LOG.warning("availability of %s was not stored: %s", call.name, error)

    async def _available(self, tree: Tree) -> Tree:
        service = tree["spec"].get("service")
        if service is None:
            return _condition("True", "Local", "Local APIServices are always available")
        name, namespace = service.get("name", ""), service.get("namespace", "")
        if await self._backend.find(self._services, namespace, name) is None:
            missing = f'service/{name} in "{namespace}" is not present'
            return _condition("False", "ServiceNotFound", missing)
        return _condition("False", "FailedDiscoveryCheck", NOT_PROXIED)


def _condition(status: str, reason: str, message: str) -> Tree:
    return {"type": "Available", "status": status, "reason": reason, "message": message}


def _with(tree: Tree, available: Tree, clock: Clock) -> Tree:
    status = tree.get("status") or {}
    listed = conditions.set_condition(conditions.of(tree), available, clock.now())
    return tree | {"status": status | {"conditions": listed}}
