"""The client behind the methods of `Cluster`, of the fixture and of `connect`: requests about objects to one server.

It works with any API server. Its errors are the classes of `mockube.apimachinery.status` and of `errors`.
"""

from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from typing import Any, Final, Literal, TypeAlias, TypeVar

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound, UnsupportedMediaType
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import DiscoveredResource
from mockube.client.kinds import DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client, ListOptions, Parsed
from mockube.command_client import AGENT
from mockube.component_base.clock import Clock, RealClock
from mockube.component_base.suggestions import did_you_mean, enumerate_names
from mockube.component_base.supervision import timeout
from mockube.control_objects import rewind

from . import missing, wait_report
from .caller import call_in_caller
from .changes import list_all_changes
from .conditions import WaitCondition, check_condition
from .errors import InvalidValue, KindNotServed, WaitFailed
from .resource_names import ResourceNames
from .targets import ObjectName, check_name
from .trees import Objects
from .watching import repeat_last, selector, watch_objects

ESTABLISH_SECONDS: Final = 10.0
"""The time until an applied CustomResourceDefinition is served, if the manifests have objects of its kind."""
ESTABLISH_POLL_SECONDS: Final = 0.02
MIN_SECONDS: Final = 0.1
"""The time for the last objects of a wait whose first ones took all of it: they may meet the condition already."""
LATER_SECONDS: Final = 5.0
"""A watch of a wait ends so long after it by itself: if both were due at once, aiohttp would take the end of the wait for its own timeout."""
PREDICATE_SECONDS: Final = 0.5
"""The time after which a function is called again for an object that did not change."""
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
RESTARTABLE: Final = (DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS)

PatchType: TypeAlias = Literal["strategic", "merge", "json"]
T = TypeVar("T")


class ObjectClient:
    def __init__(
        self,
        client: Client,
        *,
        reports: Client | None = None,
        server_clock: Clock | None = None,
        clock: Clock | None = None,
        names: ResourceNames | None = None,
    ) -> None:
        """Create a client; `reports` sends the requests of discovery and of messages, which do not count as requests of the user.

        `names` are the resources of the server, if they are known.
        """
        self._client = client
        self._reports = reports or client
        self._clock = clock or RealClock()
        self._server_clock = server_clock or self._clock
        self._names = names or ResourceNames(self._reports)

    # --- writes

    async def apply(self, trees: Sequence[Parsed], namespace: str) -> Objects:
        """Apply objects with server-side apply, in their order, and return the resulting objects."""
        applied: Objects = []
        for tree in trees:
            found = await self._resource_of(tree, applied)
            applied.append(await self._apply(found.resource, tree, namespace))
        return applied

    async def create(self, trees: Sequence[Parsed], namespace: str) -> Objects:
        created: Objects = []
        for tree in trees:
            found = await self._resource_of(tree, created)
            body = _in_namespace(found.resource, tree, namespace)
            created.append(
                await self._explain(found.resource, Key.of(body), self._client.create(found.resource, body))
            )
        return created

    async def patch(
        self, target: ObjectName, body: Any, patch_type: PatchType | None, subresource: str
    ) -> Parsed:
        """Patch an object. Without a type, a list is a JSON patch, and a dict is a strategic patch, or a merge patch for custom resources."""
        found, key = await self._find(target)
        if subresource and subresource not in found.subresources:
            hint = did_you_mean(subresource, found.subresources) or _subresources_of(found)
            raise InvalidValue(f'a {found.resource.kind} has no subresource "{subresource}"{hint}')
        if patch_type is not None or isinstance(body, list):
            return await self._patch(found, key, body, patch_type or "json", subresource)
        try:
            return await self._patch(found, key, body, "strategic", subresource)
        except UnsupportedMediaType:
            return await self._patch(found, key, body, "merge", subresource)

    async def scale(self, target: ObjectName, replicas: int) -> Parsed:
        """Set the number of replicas of an object, and return its Scale."""
        found, key = await self._find(target)
        if "scale" not in found.subresources:
            raise InvalidValue(f"a {found.resource.kind} cannot be scaled: it has no subresource scale")
        return await self._patch(found, key, {"spec": {"replicas": replicas}}, "merge", "scale")

    async def rollout_restart(self, target: ObjectName) -> Parsed:
        found, key = await self._find(target)
        if found.resource.group_kind not in {row.group_kind for row in RESTARTABLE}:
            raise InvalidValue(
                f"a {found.resource.kind} cannot be restarted: only a DaemonSet, a Deployment or a StatefulSet can"
            )
        workload = await self._explain(found.resource, key, self._client.get(found.resource, key))
        if workload["spec"].get("paused"):
            raise InvalidValue(f"{found.resource.kind} {key.name} is paused, and cannot be restarted")
        # With microseconds, unlike kubectl's, so that two restarts in the same second are two.
        now = format_micro_time(self._server_clock.now())
        template = {"metadata": {"annotations": {RESTARTED_AT: now}}}
        return await self._patch(found, key, {"spec": {"template": template}}, "strategic", "")

    async def delete(self, targets: Sequence[ObjectName], *, ignore_not_found: bool) -> None:
        """Delete objects, the last one first."""
        for target in reversed(targets):
            found, key = await self._find(target)
            try:
                await self._explain(
                    found.resource, key, self._client.delete(found.resource, key, propagation="Background")
                )
            except NotFound:
                if not ignore_not_found:
                    raise

    # --- reads

    async def get(self, targets: Sequence[ObjectName]) -> Objects:
        objects: Objects = []
        for target in targets:
            found, key = await self._find(target)
            objects.append(await self._explain(found.resource, key, self._client.get(found.resource, key)))
        return objects

    async def list(self, kind: str, namespace: str, options: ListOptions) -> Objects:
        resource = (await self._names.find(kind)).resource
        return (await self._client.list(resource, namespace if resource.namespaced else "", **options)).items

    async def changes(self, kind: str, name: str, namespace: str, user: str) -> Objects:
        """Return Changes, the oldest first."""
        resource = str((await self._names.find(kind)).resource.group_resource) if kind else ""
        selector = {"resource": resource, "name": name, "namespace": namespace, "user": user}
        return [dict(change) for change in await list_all_changes(self._reports, selector)]

    async def rewind(self, moment: str) -> Parsed:
        """Make the objects of a moment the newest ones, and return the status of the Rewind."""
        done: Parsed = await rewind(self._client, moment)
        return done

    async def wait(self, targets: Sequence[ObjectName], condition: WaitCondition, seconds: float) -> Objects:
        """Wait until all objects meet a condition, and return them; raise WaitFailed if one does not in time."""
        deadline = self._clock.monotonic() + seconds
        return [await self._wait(target, condition, seconds, deadline) for target in targets]

    async def wait_gone(self, targets: Sequence[ObjectName], seconds: float) -> None:
        """Wait until the objects do not exist; raise WaitFailed if one still does after the time."""
        deadline = self._clock.monotonic() + seconds
        for target in targets:
            await self._wait_gone(target, seconds, deadline)

    # --- details

    async def _find(self, target: ObjectName) -> tuple[DiscoveredResource, Key]:
        """Return the resource and the key of an object that a user named."""
        if target.api_version:
            found = await self._names.find_kind(target.api_version, target.kind)
        else:
            found = await self._names.find(target.kind)
        namespace = target.namespace if found.resource.namespaced else ""
        if found.resource.namespaced and not namespace:
            raise InvalidValue(f"the namespace of the {found.resource.kind} {target.name} is empty")
        return found, Key(namespace, target.name)

    async def _resource_of(self, tree: ReadOnlyTree, before: Sequence[Parsed]) -> DiscoveredResource:
        """Return the resource of an object. If its definition is one of the objects before, wait until it is served."""
        api_version, kind = meta.api_version(tree), meta.kind(tree)
        try:
            return await self._names.find_kind(api_version, kind)
        except KindNotServed:
            if not any(_defines(definition, kind) for definition in before):
                raise
        deadline = self._clock.monotonic() + ESTABLISH_SECONDS
        while True:
            await self._clock.sleep(ESTABLISH_POLL_SECONDS)
            try:
                return await self._names.find_kind(api_version, kind)
            except KindNotServed:
                if self._clock.monotonic() > deadline:
                    raise

    async def _apply(self, resource: Resource[ReadOnlyTree], tree: Parsed, namespace: str) -> Parsed:
        if not meta.name(tree):
            raise InvalidValue(
                f"the {meta.kind(tree)} has no metadata.name: an object without one is created"
            )
        body = _in_namespace(resource, _without_managed_fields(tree), namespace)
        key = Key.of(body)
        for part in filter(None, key):
            check_name(part)  # it is a part of the path of the request
        work = self._client.patch(resource, key, body, kind="apply", field_manager=AGENT, force=True)
        return await self._explain(resource, key, work)

    async def _patch(
        self, found: DiscoveredResource, key: Key, body: Any, patch_type: PatchType, subresource: str
    ) -> Parsed:
        work = self._client.patch(
            found.resource, key, body, kind=patch_type, field_manager=AGENT, subresource=subresource
        )
        return await self._explain(found.resource, key, work)

    async def _explain(self, resource: Resource[ReadOnlyTree], key: Key, work: Awaitable[T]) -> T:
        """Await a request. An object that does not exist is reported with similar names."""
        try:
            return await work
        except NotFound as error:
            raise await missing.explain_not_found(self._reports, error, resource, key) from None

    async def _wait(
        self, target: ObjectName, condition: WaitCondition, seconds: float, deadline: float
    ) -> Parsed:
        found, key = await self._find_in_time(target, seconds, deadline)
        check_condition(found.resource.group_kind, condition)
        wait = wait_report.WaitState(found.resource, key, condition, seconds)
        with suppress(TimeoutError):
            async with self._until(deadline):
                watch = watch_objects(
                    self._client, found.resource, key, clock=self._clock, seconds=seconds + LATER_SECONDS
                )
                if condition.is_predicate:  # it may depend on other objects
                    watch = repeat_last(watch, PREDICATE_SECONDS)
                async with aclosing(watch) as events:
                    async for event_type, tree in events:
                        wait.last, wait.was_deleted = tree, event_type == "DELETED"
                        if not wait.was_deleted and await _meets(tree, wait):
                            return tree
        if wait.last is None:
            wait.last = await self._current(found.resource, key)
            if wait.last is not None:
                with suppress(TimeoutError):
                    async with self._until(deadline):
                        if await _meets(wait.last, wait):
                            return wait.last
        raise WaitFailed(await wait_report.describe(self._reports, await self._names.all(), wait))

    async def _wait_gone(self, target: ObjectName, seconds: float, deadline: float) -> None:
        found, key = await self._find_in_time(target, seconds, deadline)
        options = ListOptions(field_selector=selector(found.resource, key))
        with suppress(TimeoutError):
            async with self._until(deadline):
                while (object_list := await self._client.list(found.resource, **options)).items:
                    version = object_list.resource_version
                    await self._wait_for_change(found.resource, key, version, seconds + LATER_SECONDS)
                return
        last = await self._current(found.resource, key)
        if last is not None:
            raise WaitFailed(wait_report.describe_remaining(found.resource.kind, key, seconds, last))

    async def _find_in_time(
        self, target: ObjectName, seconds: float, deadline: float
    ) -> tuple[DiscoveredResource, Key]:
        try:
            async with self._until(deadline):
                return await self._find(target)
        except TimeoutError:
            raise WaitFailed(f"the server did not return its resources within {seconds:g} s") from None

    async def _current(self, resource: Resource[ReadOnlyTree], key: Key) -> Parsed | None:
        """Return an object after a wait that ended, perhaps before its first response; None if it does not exist."""
        try:
            async with timeout(self._clock, wait_report.REPORT_SECONDS):
                return await self._reports.get(resource, key)
        except NotFound:
            return None
        except TimeoutError:
            raise WaitFailed(f"the server did not return {resource.kind} {key.name}") from None

    def _until(self, deadline: float) -> AbstractAsyncContextManager[None]:
        return timeout(self._clock, max(deadline - self._clock.monotonic(), MIN_SECONDS))

    async def _wait_for_change(
        self, resource: Resource[ReadOnlyTree], key: Key, version: str, seconds: float
    ) -> None:
        """Wait for the next watch event of an object, or the end of the watch."""
        query = {"fieldSelector": selector(resource, key), "resourceVersion": version}
        async with self._client.watch(resource, query, timeout_seconds=seconds) as stream:
            async for _ in stream.chunks():
                return


def _subresources_of(found: DiscoveredResource) -> str:
    return f": it has {enumerate_names(found.subresources)}" if found.subresources else ""


async def _meets(tree: Parsed, wait: wait_report.WaitState) -> bool:
    """Return whether an object meets the condition of a wait; the problem is noted, for the case that the wait fails."""
    find_problem = wait.condition.find_problem
    if wait.condition.is_predicate:
        wait.problem = wait_report.STILL_RUNNING
        wait.problem = await call_in_caller(lambda: find_problem(tree))
    else:
        wait.problem = find_problem(tree)
    return wait.problem is None


def _defines(tree: ReadOnlyTree, kind: str) -> bool:
    """Return whether an object is the definition of a kind."""
    return meta.kind(tree) == "CustomResourceDefinition" and tree["spec"]["names"]["kind"] == kind


def _in_namespace(resource: Resource[ReadOnlyTree], tree: Parsed, namespace: str) -> Parsed:
    """Return an object with its namespace: its own, or that of the method."""
    own = meta.namespace(tree)
    if not resource.namespaced:
        return meta.with_value(tree, ("metadata", "namespace"), None) if own else tree
    if own and namespace not in ("default", own):
        raise InvalidValue(
            f'the namespace of the {meta.kind(tree)} {meta.name(tree)} is "{own}", and the method\'s is "{namespace}"'
        )
    return tree if own else {**tree, "metadata": {**meta.metadata(tree), "namespace": namespace}}


def _without_managed_fields(tree: Parsed) -> Parsed:
    """Return an object without the field owners that it has if it was read from a server."""
    metadata = meta.metadata(tree)
    if "managedFields" not in metadata:
        return tree
    return {**tree, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
