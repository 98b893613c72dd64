"""The storage version migrator: three loops, which start migrations, note the revision up to which objects are old, and write them.

An object is written again by a patch without changes: the server stores it in the version in which it stores new objects.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import (
    ApiError,
    Conflict,
    InternalError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.component import Runner
from mockube.client.discovery import DiscoveredResource, discover
from mockube.client.kinds import CUSTOM_RESOURCE_DEFINITIONS, STORAGE_VERSION_MIGRATIONS
from mockube.client.queue.reconcile_loop import ReconcileLoop, RequeueWithBackoff
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.component_base.supervision import run_all
from mockube.controller_manager.control.runnable import Context, Runnable, WaitForKinds

from . import migrations

NAME: Final = "storage-version-migrator-controller"
_RUNNER: Final = "migration-runner-controller"
"""The field manager of the condition of definitions."""
_NO_NAMESPACE: Final = "@fake:svm_ns!"
"""A namespace that cannot exist, whose list is empty and has the latest revision."""
_PAGE: Final = 500
_MAX_WAIT: Final = timedelta(minutes=1)
"""The time for which a migration waits for a resource that does not exist yet."""
_VERBS: Final = ("update", "patch", "list")
_RETRIABLE: Final = (
    NoResponse,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)


class Migrator:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._migrations = context.informers.of(STORAGE_VERSION_MIGRATIONS)
        loop = partial(ReconcileLoop, clock=context.clock, metrics=context.metrics)
        self._starts = loop(_RUNNER, self._start, workers=1)
        self._revisions = loop("resource-version-controller", self._note_revision, workers=1)
        self._runs = loop(NAME, self._migrate, workers=5)
        self._migrations.add_handler(self._on_change)

    async def run(self) -> None:
        await self._migrations.wait_synced()
        await run_all(starts=self._starts.run(), revisions=self._revisions.run(), runs=self._runs.run())

    def _on_change(self, change: Change) -> None:
        self._starts.add(Key(*migrations.resource_of(change.last_known)))
        if change.new is not None:
            key = Key("", meta.name(change.new))
            self._revisions.add(key)
            self._runs.add(key)

    async def _write(self, migration: ReadOnlyTree, old: ReadOnlyTree) -> None:
        if migration.get("status") != old.get("status"):
            await self._client.update(STORAGE_VERSION_MIGRATIONS, migration, subresource="status")

    # --- starting and ending

    async def _start(self, key: Key) -> None:
        """End finished migrations of a resource, whose group and name the key has, and start the next one."""
        resource = GroupResource(*key)
        upcoming = migrations.next_migration(self._migrations.lister.all(), resource)
        now = self._clock.now()
        for migration in upcoming.finished:
            definition = await self._definition(resource)
            if definition is not None:
                is_success = conditions.is_true(migration, migrations.SUCCEEDED)
                body = migrations.end_status_body(definition, is_success=is_success, time=format_time(now))
                await self._apply(body)
            await self._write(migrations.end(migration, now), migration)
        if upcoming.start is None:
            return
        definition = await self._definition(resource)
        if definition is not None:
            await self._apply(
                migrations.start_status_body(definition, meta.name(upcoming.start), format_time(now))
            )
        await self._write(
            migrations.running_state(upcoming.start, migrations.running_message(), now), upcoming.start
        )

    async def _definition(self, resource: GroupResource) -> ReadOnlyTree | None:
        try:
            return await self._client.get(
                CUSTOM_RESOURCE_DEFINITIONS, Key("", f"{resource.resource}.{resource.group}")
            )
        except NotFound:
            return None

    async def _apply(self, body: ReadOnlyTree) -> None:
        key = Key("", meta.name(body))
        await self._client.patch(
            CUSTOM_RESOURCE_DEFINITIONS,
            key,
            body,
            kind="apply",
            subresource="status",
            field_manager=_RUNNER,
            force=True,
        )

    # --- the revision

    async def _note_revision(self, key: Key) -> None:
        migration = self._migrations.lister.get(*key)
        if migration is None or not migrations.is_running(migration) or migrations.is_finished(migration):
            return
        if (migration.get("status") or {}).get("resourceVersion"):
            return
        discovered = await self._find(migration)
        if discovered is None:
            self._wait_for_kind(migration)
            await self._fail(migration, "resource does not exist in discovery")
            return
        row = discovered.resource
        if not discovered.verbs >= {*_VERBS}:
            name = f"{row.group}/{row.version}, Resource={row.plural}"
            problem = f'resource "{name}" does not support discovery operations: [{" ".join(_VERBS)}]'
            await self._fail(migration, problem)
            return
        namespace = _NO_NAMESPACE if row.namespaced else ""
        page = await self._client.list(row, namespace, limit=1)
        status = {**(migration.get("status") or {}), "resourceVersion": page.resource_version}
        await self._write({**migration, "status": status}, migration)

    def _wait_for_kind(self, migration: ReadOnlyTree) -> None:
        created = meta.creation_timestamp(migration)
        if created is not None and created + _MAX_WAIT > self._clock.now():
            raise RequeueWithBackoff(f"{migrations.resource_of(migration)} is not served yet")

    async def _find(self, migration: ReadOnlyTree) -> DiscoveredResource | None:
        resource = migrations.resource_of(migration)
        discovery = await discover(self._client)
        return next(
            (
                discovered
                for discovered in discovery.resources
                if discovered.resource.group_resource == resource
            ),
            None,
        )

    async def _fail(self, migration: ReadOnlyTree, message: str) -> None:
        await self._write(migrations.failure(migration, message, self._clock.now()), migration)

    # --- the objects

    async def _migrate(self, key: Key) -> None:
        migration = self._migrations.lister.get(*key)
        if migration is None or migrations.is_finished(migration):
            return
        revision = (migration.get("status") or {}).get("resourceVersion")
        if not revision:
            return
        discovered = await self._find(migration)
        if discovered is None:
            self._wait_for_kind(migration)
            problem = "migration encountered unhandled error: unable to obtain GVR from discovery"
            await self._fail(migration, problem)
            return
        objects = [item async for item in self._objects(discovered)]
        old = [item for item in objects if int(meta.resource_version(item)) <= int(revision)]
        await self._rewrite(migration, discovered, old, len(objects))

    async def _objects(self, discovered: DiscoveredResource) -> AsyncIterator[ReadOnlyTree]:
        token = ""
        while True:
            page = await self._client.list(discovered.resource, limit=_PAGE, continue_token=token)
            for item in page.items:
                yield {"metadata": item["metadata"]}
            token = page.continue_token
            if not token:
                return

    async def _rewrite(
        self, migration: ReadOnlyTree, discovered: DiscoveredResource, old: list[ReadOnlyTree], total: int
    ) -> None:
        row = discovered.resource
        for index, item in enumerate(old):
            remaining = len(old) - index
            body: dict[str, Any] = {
                "apiVersion": row.api_version,
                "kind": row.kind,
                "metadata": {"resourceVersion": meta.resource_version(item)},
            }
            try:
                await self._client.patch(row, Key.of(item), body, field_manager=NAME)
            except (Conflict, NotFound):
                continue  # it was written since, or is gone
            except _RETRIABLE as error:
                message = migrations.running_message(remaining, total, str(error))
                await self._write(migrations.running_state(migration, message, self._clock.now()), migration)
                raise
            except ApiError as error:
                await self._fail_with_objects(migration, remaining, total, error)
                return
        await self._write(migrations.success(migration, total, self._clock.now()), migration)

    async def _fail_with_objects(
        self, migration: ReadOnlyTree, remaining: int, total: int, error: ApiError
    ) -> None:
        now = self._clock.now()
        present = migrations.running_state(migration, migrations.running_message(remaining, total), now)
        problem = f"{remaining}/{total} not yet migrated. migration encountered unhandled error: {error}"
        await self._write(migrations.failure(present, problem, now), migration)


def _build(context: Context) -> Runner:
    return WaitForKinds((STORAGE_VERSION_MIGRATIONS,), lambda: Migrator(context), context)


STORAGE_VERSION_MIGRATOR: Final = Runnable(name=NAME, service_account=NAME, build=_build)
