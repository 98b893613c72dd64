"""All caches of a process: one shared informer for each resource."""

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.randomness import Random, fraction
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.informer import Informer, MutationDetector
from mockube.controller_manager.cache.reflector import Reflector
from mockube.controller_manager.cache.store import Lister
from mockube.controller_manager.client.client import AnyResource, Client
from mockube.controller_manager.client.kinds import rows
from mockube.controller_manager.client.resources import Resource, T
from mockube.controller_manager.metrics.informers import InformerMetrics
from mockube.controller_manager.supervision import start, start_in


class Settings(Struct, frozen=True, kw_only=True):
    clock: Clock
    random: Random
    metrics: InformerMetrics = field(default_factory=InformerMetrics)
    min_resync_period: float | None = None
    """Seconds between resyncs, randomized up to twice that for each informer."""
    detector: MutationDetector | None = None


class Informers:
    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._informers: dict[AnyResource, Informer[Any]] = {}
        self._rows: dict[GroupResource, AnyResource] = {row.group_resource: row for row in rows()}
        self._tasks: dict[AnyResource, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self.caches = _Caches(self)

    def of(self, resource: Resource[T]) -> Informer[T]:
        """Return the informer of this resource. One that is added while others run starts at once."""
        informer = self._informers.get(resource)
        if informer is None:
            informer = self._informers[resource] = Informer(
                resource,
                clock=self._settings.clock,
                counts=self._settings.metrics.of(_name(resource)),
                detector=self._settings.detector,
            )
            self._start(informer)
        return informer

    def row(self, resource: AnyResource) -> AnyResource:
        """The row for a discovered resource: one that is already watched whole is not watched again."""
        return self._rows.setdefault(resource.group_resource, resource)

    def forget(self, resource: AnyResource) -> None:
        """Stop the informers of resources that are no longer served, such as those of a deleted definition."""
        del self._informers[resource]
        if self._rows.get(resource.group_resource) is resource:
            del self._rows[resource.group_resource]
        self._settings.metrics.forget(_name(resource))
        task = self._tasks.pop(resource, None)
        if task is not None:
            task.cancel()

    async def ask(self, resource: AnyResource, namespace: str) -> Sequence[ReadOnlyTree]:
        """Return the server's present list, metadata only, without the caches.

        The client of the caches may read everything in them; a controller's service account may not list all that it
        writes.
        """
        object_list = await self._client.list(replace(resource, metadata_only=True), namespace)
        return object_list.items

    async def wait_synced(self) -> None:
        for informer in list(self._informers.values()):
            await informer.wait_synced()

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for informer in self._informers.values():
                self._start(informer)
            await asyncio.get_running_loop().create_future()

    def _start(self, informer: Informer[Any]) -> None:
        if self._group is not None:
            resource = informer.resource
            self._tasks[resource] = start(
                f"informer of {resource}", self._follow(informer), group=self._group
            )

    async def _follow(self, informer: Informer[Any]) -> None:
        settings = self._settings
        reflector = Reflector(
            self._client,
            informer.resource,
            informer,
            settings.metrics.of(_name(informer.resource)),
            clock=settings.clock,
            random=settings.random,
        )
        async with asyncio.TaskGroup() as group:
            name = _name(informer.resource)
            start_in(group, f"reflector of {name}", reflector.run())
            if settings.min_resync_period is not None:
                resync = self._resync(informer, settings.min_resync_period)
                start_in(group, f"resync of {name}", resync)

    async def _resync(self, informer: Informer[Any], period: float) -> None:
        while True:
            await self._settings.clock.sleep(period * (1.0 + fraction(self._settings.random)))
            informer.resync()


class _Caches:
    """The listers of all informers, as `Caches` promises them."""

    def __init__(self, informers: Informers) -> None:
        self._informers = informers

    def of(self, resource: Resource[T]) -> Lister[T]:
        return self._informers.of(resource).lister


def _name(resource: AnyResource) -> str:
    """The name in metrics: a metadata-only informer has a cache of its own."""
    return f"{resource}/metadata" if resource.metadata_only else str(resource)
