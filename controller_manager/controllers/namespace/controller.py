"""The namespace controller: it deletes the content of deleted namespaces, and then removes their finalizer."""

from datetime import timedelta
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.timestamps import after
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_NAMESPACE
from mockube.client.cache.store import Change
from mockube.client.discovery import discover
from mockube.client.kinds import NAMESPACES
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.controller_manager.control.runnable import Context, Runnable

from .deletion import RemainingContent, delete_content, with_conditions

_SETTLE_PERIOD: Final = timedelta(seconds=1)
"""The time after a deletion for which other API servers may still create objects in the namespace."""


class NamespaceController:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        workers = context.options.controllers.concurrent_namespace_syncs
        self._loop = ReconcileLoop(
            "namespace", self._reconcile, workers=workers, clock=context.clock, metrics=context.metrics
        )
        context.informers.of(NAMESPACES).add_handler(self._on_change)

    async def run(self) -> None:
        await self._loop.run()

    def _on_change(self, change: Change) -> None:
        deleted = None if change.new is None else meta.deletion_timestamp(change.new)
        if deleted is not None:
            # Other servers take real time, which passes in a pause of the clock, too.
            remaining = after(deleted, _SETTLE_PERIOD) - self._clock.now()
            self._loop.add_coalesced(Key("", meta.name(change.last_known)), remaining)

    async def _reconcile(self, key: Key) -> timedelta | None:
        try:
            namespace = await self._client.get(NAMESPACES, key)
        except NotFound:
            return None
        if not meta.is_deleting(namespace) or FINALIZER_NAMESPACE not in _finalizers(namespace):
            return None
        discovered = await discover(self._client)
        remaining = await delete_content(self._client, discovered, key.name, self._clock.now())
        updated = await self._update_conditions(namespace, remaining)
        if not remaining.is_empty:
            return remaining.estimate / 2 + timedelta(seconds=1)
        await self._remove_finalizer(updated)
        return None

    async def _update_conditions(self, namespace: ReadOnlyTree, remaining: RemainingContent) -> ReadOnlyTree:
        updated = with_conditions(namespace, remaining, self._clock.now())
        if updated is None:
            return namespace
        return await self._client.update(NAMESPACES, updated, subresource="status")

    async def _remove_finalizer(self, namespace: ReadOnlyTree) -> None:
        other_finalizers = [
            finalizer for finalizer in _finalizers(namespace) if finalizer != FINALIZER_NAMESPACE
        ]
        body = meta.with_value(namespace, ("spec", "finalizers"), other_finalizers)
        await self._client.update(NAMESPACES, body, subresource="finalize")


def _finalizers(namespace: ReadOnlyTree) -> list[str]:
    return (namespace.get("spec") or {}).get("finalizers") or []


NAMESPACE: Final = Runnable(
    name="namespace-controller", service_account="namespace-controller", build=NamespaceController
)
