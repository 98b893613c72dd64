"""The ResourceQuota controller: it counts usage for new quotas, after changes of objects, and periodically."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.quantity import ZERO
from mockube.apimachinery.quota import amounts
from mockube.apimachinery.quota.amounts import Amounts
from mockube.apimachinery.quota.evaluator import requirements_of
from mockube.apimachinery.quota.evaluators import IGNORED, Evaluators
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Change
from mockube.client.discovery import discover
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key, Resource
from mockube.component_base.supervision import run_all
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.watched_kinds import WatchedKinds

from .usage import UsageCounter

_DISCOVERY_PERIOD: Final = timedelta(seconds=30)
"""The time between two discoveries; a new CustomResourceDefinition causes another one."""
_CACHE_SYNC_DELAY: Final = timedelta(seconds=0.1)
"""The time after which a quota is counted again if a cache was not synced."""
USAGE_DECREASE_DELAY: Final = timedelta(seconds=0.3)
"""How long a quota must be unchanged before its usage is lowered. An object that was just counted by the API server may
not be in the caches: without this delay the limit could be exceeded. Clients are not delayed while the quota is not
exhausted; when it is exhausted, the server adds nothing.
"""
_DISCOVERY_KEY: Final = Key("", "kinds")


class ResourceQuotaController:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._clock = context.clock
        controllers = context.options.controllers
        self._period = timedelta(seconds=controllers.resource_quota_sync_period)
        self._watched = WatchedKinds(
            self._informers, verbs=("create", "list", "watch", "delete"), ignored=IGNORED
        )
        self._evaluators = Evaluators(self, context.informers.caches.gates)
        self._last_changes: dict[Key, float] = {}
        """The times of the last observed change, by quota."""
        self._counters: dict[Key, dict[Resource[Any], UsageCounter]] = {}
        loop = partial(
            ReconcileLoop,
            clock=context.clock,
            metrics=context.metrics,
            requeue_clock=context.clock.routine,
        )
        workers = controllers.concurrent_resource_quota_syncs
        self._loop = loop("resourcequota_primary", self._reconcile, workers=workers)
        self._discovery = loop("resourcequota_discovery", self._discover, workers=1)
        self._quotas = context.informers.of(kinds.RESOURCE_QUOTAS)
        self._quotas.add_handler(self._on_change)

    async def run(self) -> None:
        await run_all(discovery=self._discovery.run(), quotas=self._loop.run())

    # --- watches

    async def _discover(self, _: Key) -> timedelta:
        """Watch all resources that quotas may count. This starts with the first quota."""
        new_rows = self._watched.update(await discover(self._client))
        for row in new_rows:
            self._informers.of(row).add_handler(partial(self._on_object_change, row))
            if row is kinds.CUSTOM_RESOURCE_DEFINITIONS:
                self._informers.of(row).add_handler(self._on_definition)
        for quota in self._quotas.lister.all() if new_rows else ():
            self._loop.add(Key.of(quota))
        return _DISCOVERY_PERIOD

    def _on_definition(self, _: Change) -> None:
        self._discovery.add(_DISCOVERY_KEY)

    def _on_change(self, change: Change) -> None:
        key = Key.of(change.last_known)
        if change.new is None:
            self._last_changes.pop(key, None)
            self._counters.pop(key, None)
            return
        self._last_changes[key] = self._clock.coalescing.monotonic()
        if not needs_recalculation(change.new, change.old):
            return
        if not self._watched:
            self._discovery.add(_DISCOVERY_KEY)
        self._loop.add(key)

    def _on_object_change(self, row: Resource[Any], change: Change) -> None:
        """Queue the quotas that count an object which was deleted or uses less now."""
        if change.old is None:
            return
        old = row.tree(change.old)
        quotas = self._quotas.lister.in_namespace(meta.namespace(old)) if meta.namespace(old) else ()
        if not quotas:
            return
        evaluator = self._evaluators[row.group_resource]
        if change.new is not None and not evaluator.may_release_quota(
            old, row.tree(change.new), self._clock.now()
        ):
            return
        for quota in quotas:
            if evaluator.matching_resources((quota.get("status") or {}).get("hard") or ()):
                self._loop.add(Key.of(quota))

    # --- counting

    async def _reconcile(self, key: Key) -> timedelta:
        quota = self._quotas.lister.get(*key)
        if quota is None:
            return self._period
        # Before the resources are discovered none is counted: the limits hold from now on.
        rows = self._counted_rows(quota)
        synced = [row for row in rows if self._informers.of(row).is_synced]
        used = await self._count(key, quota, synced)
        updated = with_status(quota, used)
        if (
            updated is not None
            and is_lower(quota, used)
            and (wait := self._decrease_delay(key)) > timedelta()
        ):
            self._loop.add_coalesced(key, wait)
            return self._period
        if updated is not None:
            try:
                await self._client.update(kinds.RESOURCE_QUOTAS, updated, subresource="status")
            except NotFound:
                return self._period
        if len(synced) < len(rows):
            self._loop.add_coalesced(key, _CACHE_SYNC_DELAY)
        return self._period

    def _decrease_delay(self, key: Key) -> timedelta:
        """Return the time until the usage of a quota may be lowered."""
        now = self._clock.coalescing.monotonic()
        return USAGE_DECREASE_DELAY - timedelta(seconds=now - self._last_changes.get(key, now))

    def _counted_rows(self, quota: ReadOnlyTree) -> list[Resource[Any]]:
        hard = (quota.get("spec") or {}).get("hard") or ()
        return [
            row
            for row in self._watched.rows()
            if row.namespaced
            and self._informers.find(row) is not None
            and self._evaluators[row.group_resource].matching_resources(hard)
        ]

    async def _count(self, key: Key, quota: ReadOnlyTree, rows: Iterable[Resource[Any]]) -> Amounts:
        """Return the usage of the quota by the objects of these resources."""
        hard, requirements = amounts.read((quota.get("spec") or {}).get("hard")), requirements_of(quota)
        before = self._counters.get(key, {})
        counters = self._counters[key] = {
            row: before.get(row) or UsageCounter(self._evaluators[row.group_resource]) for row in rows
        }
        total: Amounts = {}
        for row, counter in counters.items():
            objects = map(row.tree, self._informers.of(row).lister.in_namespace(key.namespace))
            names = self._evaluators[row.group_resource].matching_resources(hard)
            used = await counter.count(requirements, objects, self._clock.now())
            total = amounts.add(total, amounts.add(dict.fromkeys(names, ZERO), used))
        return amounts.mask(total, hard.keys())

    # --- device classes for counting claims

    def extended_resources(self) -> Mapping[str, str]:
        if kinds.DEVICE_CLASSES.group_resource not in self._watched:
            return {}
        classes = self._informers.of(kinds.DEVICE_CLASSES).lister.all()
        return {
            meta.name(device_class): (device_class.get("spec") or {}).get("extendedResourceName") or ""
            for device_class in classes
        }

    def pod(self, namespace: str, name: str) -> ReadOnlyTree | None:
        view = self._informers.of(kinds.PODS).lister.get(namespace, name)
        return None if view is None else view.object

    def claims(self, namespace: str) -> Iterable[ReadOnlyTree]:
        return self._informers.of(kinds.RESOURCE_CLAIMS).lister.in_namespace(namespace)


# --- the status of a quota


def with_status(quota: ReadOnlyTree, used: Amounts) -> dict[str, Any] | None:
    """Return the quota with its present usage; None if it does not differ. Usage that was not counted stays."""
    hard = amounts.read((quota.get("spec") or {}).get("hard"))
    status = quota.get("status") or {}
    old_used = amounts.read(status.get("used"))
    new_used = amounts.mask({**old_used, **used}, hard.keys())
    if (
        "used" in status
        and "hard" in status
        and old_used == new_used
        and amounts.read(status["hard"]) == hard
    ):
        return None
    return meta.with_value(
        quota, ("status",), {"hard": amounts.to_tree(hard), "used": amounts.to_tree(new_used)}
    )


def is_lower(quota: ReadOnlyTree, used: Amounts) -> bool:
    """Return whether the usage of any resource is lower than in the status."""
    old_used = amounts.read((quota.get("status") or {}).get("used"))
    return any(amount < old_used[name] for name, amount in used.items() if name in old_used)


def needs_recalculation(quota: ReadOnlyTree, old: ReadOnlyTree | None) -> bool:
    """Return whether a quota is new, or its hard limits have changed."""
    if old is None or meta.uid(old) != meta.uid(quota):
        return True
    hard = [amounts.read((version.get("spec") or {}).get("hard")) for version in (quota, old)]
    return hard[0] != hard[1]


RESOURCE_QUOTA: Final = Runnable(
    name="resourcequota-controller", service_account="resourcequota-controller", build=ResourceQuotaController
)
