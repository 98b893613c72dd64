"""Finish the deletion of namespaces: empty them, say what is left, take the finalizer away."""

from datetime import timedelta
from typing import Final

from apimachinery import meta
from apimachinery.status import NotFound
from apimachinery.wellknown import FINALIZER_NAMESPACE
from controller_manager.engines.namespaces.content import delete_content
from controller_manager.engines.namespaces.deletion import Remains, with_conditions
from controller_manager.kinds import NAMESPACES
from controller_manager.runtime.caches import Change
from controller_manager.runtime.discovery import discover
from controller_manager.runtime.engine import Context, Engine
from controller_manager.runtime.resource import Key, Tree
from controller_manager.runtime.worker import Loop

_SETTLING: Final = timedelta(seconds=1)
"""From the deletion on, how long another API server may not know yet that nothing is to be made in the namespace."""


class Namespaces:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        workers = context.options.controllers.concurrent_namespace_syncs
        self._loop = Loop(
            "namespace", self._reconcile, workers=workers, clock=context.clock, metrics=context.metrics
        )
        context.informers.of(NAMESPACES).add_handler(self._changed)

    async def run(self) -> None:
        await self._loop.run()

    def _changed(self, change: Change) -> None:
        if change.new is not None and meta.is_deleting(change.new):
            self._loop.add(Key("", meta.name(change.new)))

    async def _reconcile(self, key: Key) -> timedelta | None:
        try:
            namespace = await self._client.get(NAMESPACES, key)
        except NotFound:
            return None
        deleted = meta.deletion_timestamp(namespace)
        if deleted is None or FINALIZER_NAMESPACE not in _finalizers(namespace):
            return None
        now = self._clock.now()
        if now < deleted + _SETTLING:
            return deleted + _SETTLING - now
        remains = await delete_content(self._client, await discover(self._client), key.name, now)
        told = await self._say(namespace, remains)
        if not remains.is_everything_gone:
            return remains.estimate / 2 + timedelta(seconds=1)
        await self._finish(told)
        return None

    async def _say(self, namespace: Tree, remains: Remains) -> Tree:
        changed = with_conditions(namespace, remains, self._clock.now())
        if changed is None:
            return namespace
        return await self._client.update(NAMESPACES, changed, subresource="status")

    async def _finish(self, namespace: Tree) -> None:
        left = [one for one in _finalizers(namespace) if one != FINALIZER_NAMESPACE]
        body = meta.with_value(namespace, ("spec", "finalizers"), left)
        await self._client.update(NAMESPACES, body, subresource="finalize")


def _finalizers(namespace: Tree) -> list[str]:
    return (namespace.get("spec") or {}).get("finalizers") or []


NAMESPACE: Final = Engine(
    name="namespace-controller", service_account="namespace-controller", build=Namespaces
)
