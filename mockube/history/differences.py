"""The objects that differ between two moments, by the APIs of both."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import DiscoveredResource
from mockube.client.kubeconfig import Access
from mockube.client.verbs import Client
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.moments import PATH
from mockube.objects.resource_names import ResourceNames, find_resource

from .field_values import FieldChange, changes_of
from .versions import without_own_fields

NOISE: Final = ("events", "leases")
"""Resources that change all the time: they are compared if they are named."""
MAX_REQUESTS: Final = 8
"""The lists that are requested at a time."""

Identity = tuple[str, str, str]
"""The resource with its group, the namespace and the name of an object."""


class ObjectDifference(Struct, frozen=True, kw_only=True):
    identity: Identity
    before: ReadOnlyTree | None
    after: ReadOnlyTree | None

    @property
    def type(self) -> str:
        if self.before is None or self.after is None:
            return "ADDED" if self.before is None else "DELETED"
        return "MODIFIED" if meta.uid(self.before) == meta.uid(self.after) else "REPLACED"

    def changes(self) -> list[FieldChange]:
        return changes_of(self.before, self.after)


async def differences(
    access: Access, revisions: tuple[int, int], *, namespace: str, kinds: Sequence[tuple[str, str]]
) -> Sequence[ObjectDifference]:
    """Return the objects that differ, in the order of their resources and names; `kinds` are those to compare, each with a
    name or ""; without any, all but `NOISE`.
    """
    before, after = [await _objects(access, revision, namespace, kinds) for revision in revisions]
    return [
        ObjectDifference(
            identity=identity,
            before=_clean(before.get(identity)),
            after=_clean(after.get(identity)),
        )
        for identity in sorted({*before, *after})
        if _version(before.get(identity)) != _version(after.get(identity))
    ]


async def _objects(
    access: Access, revision: int, namespace: str, kinds: Sequence[tuple[str, str]]
) -> Mapping[Identity, ReadOnlyTree]:
    """Return all objects of a moment that the user may list."""
    at = dataclasses.replace(access, server=f"{access.server.rstrip('/')}{PATH}{revision}")
    objects: dict[Identity, ReadOnlyTree] = {}
    async with open_client(at, RealClock()) as client:
        resources = await _resources(client, namespace, kinds)
        places = asyncio.Semaphore(MAX_REQUESTS)

        async def add(found: DiscoveredResource, name: str) -> None:
            async with places:
                items = await _list(client, found, namespace, is_named=bool(kinds))
            resource = str(found.resource.group_resource)
            for item in items:
                if name in ("", meta.name(item)):
                    objects[resource, meta.namespace(item), meta.name(item)] = item

        async with _group() as group:
            for found, name in resources:
                group.create_task(add(found, name))
    return objects


@asynccontextmanager
async def _group() -> AsyncIterator[asyncio.TaskGroup]:
    """Yield a group of tasks; the first error of one is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _resources(
    client: Client, namespace: str, kinds: Sequence[tuple[str, str]]
) -> Sequence[tuple[DiscoveredResource, str]]:
    """Return the resources to compare, with the name of the only object; "" for all."""
    names = ResourceNames(client)
    every = [found for found in await names.all() if "list" in found.verbs]
    if kinds:  # a kind may be served at one of the moments only
        return [(found, name) for kind, name in kinds if (found := find_resource(every, kind)) is not None]
    return [
        (found, "")
        for found in every
        if found.resource.plural not in NOISE and (found.resource.namespaced or not namespace)
    ]


async def _list(
    client: Client, found: DiscoveredResource, namespace: str, *, is_named: bool
) -> Sequence[ReadOnlyTree]:
    """Return the objects of a resource; none if the user may not list it, unless it was named."""
    resource = found.resource
    try:
        return (await client.list(resource, namespace if resource.namespaced else "")).items
    except NotFound:
        return ()
    except ApiError:
        if is_named:
            raise
        return ()


def _version(tree: ReadOnlyTree | None) -> object:
    return None if tree is None else (meta.uid(tree), tree["metadata"].get("resourceVersion"))


def _clean(tree: ReadOnlyTree | None) -> ReadOnlyTree | None:
    return None if tree is None else without_own_fields(tree)
