"""Says of each APIService whether it is available, in its status, as upstream's aggregator does within the server."""

import logging

from apimachinery import conditions
from apimachinery.clock import Clock
from apimachinery.status import ApiError
from apiserver.resources.spec import Resource
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, User
from apiserver.rest.options import WriteOptions
from apiserver.rest.selection import EVERYTHING
from apiserver.rest.update import change
from apiserver.rest.watch import DELETED, Stream
from apiserver.storage.stored import Tree
from etcd.errors import KVError

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
        shelf = self._backend.mirror.shelf(self._backend.layout.shelf(self._api_services))
        stream = Stream(shelf.prefix, shelf, EVERYTHING)
        stream.begin(shelf.select(shelf.prefix), self._backend.mirror.revision)
        shelf.follow(stream)
        try:
            while events := await stream.take():
                for event in events:
                    if event.stored is not None and event.kind != DELETED:
                        await self._judge(event.stored.tree())
        finally:
            stream.close()

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
    listed = conditions.updated(conditions.of(tree), available, clock.now())
    return tree | {"status": status | {"conditions": listed}}
