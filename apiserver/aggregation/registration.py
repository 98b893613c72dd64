"""Registers an APIService for each version that CustomResourceDefinitions serve, and removes it with the last of them.

An APIService without the label of upstream's controllers, or with another value, is left unchanged.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Collection, Iterator, Sequence
from typing import Final

import orjson
from msgspec import Struct
from msgspec.json import Decoder

from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.create import create
from mockube.apiserver.registry.delete import delete
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS, Registry
from mockube.apiserver.registry.request_context import Body, RequestContext, WriteOptions
from mockube.apiserver.registry.resource_watchers import watched_keys
from mockube.apiserver.registry.update import guaranteed_update
from mockube.apiserver.registry.write import Write
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import SERVER
from mockube.component_base.loop import yield_to_loop
from mockube.etcd.errors import KVError

LOG = logging.getLogger(__name__)

AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
ALWAYS = "true"
"""The value of the label on an APIService that is created and deleted with its definitions."""
PRIORITY = {"groupPriorityMinimum": 1000, "versionPriority": 100}
SLICE = 100
"""Definitions that are read before the event loop serves other requests."""


class _Version(Struct):
    name: str
    served: bool


class _Spec(Struct):
    group: str
    versions: list[_Version]


class _Definition(Struct):
    """The fields that are read of a definition; schemas can have megabytes."""

    spec: _Spec


_read: Final = Decoder(_Definition).decode


class APIServiceRegistration:
    """Creates and deletes APIServices; `run` is a task of the server."""

    def __init__(
        self, registry: Registry, definitions: Resource, api_services: Resource, user_agent: str
    ) -> None:
        self._registry = registry
        self._definitions = definitions
        self._api_services = api_services
        self._user_agent = user_agent
        self._served_by: dict[bytes, frozenset[GroupVersion]] = {}
        """By key of a definition, the versions that it serves."""
        self._servers: Counter[GroupVersion] = Counter()
        """The number of definitions that serve a version."""

    async def run(self) -> None:
        """Register and remove the versions that change, until cancelled."""
        resources = self._definitions, self._api_services
        with watched_keys(self._registry, resources) as (changed, (definitions, api_services)):
            while True:
                await changed.wait()
                changed.clear()
                versions = await self._update(definitions.take(known_keys=self._served_by))
                names = [key.rpartition(b"/")[2].decode() for key in api_services.take()]
                for version in dict.fromkeys((*versions, *map(_version_of, names))):
                    await self._reconcile(version)

    async def _update(self, keys: Sequence[bytes]) -> Collection[GroupVersion]:
        """Update the versions that definitions serve; return those that have changed."""
        cache, changed = (
            self._registry.resource_cache(self._definitions.group_resource).objects,
            dict[GroupVersion, None](),
        )
        for index, key in enumerate(keys):
            if index and index % SLICE == 0:
                await yield_to_loop()
            stored = cache.get(key)
            before = self._served_by.pop(key, frozenset())
            served = frozenset(self._served_versions(stored)) if stored is not None else frozenset()
            if stored is not None:
                self._served_by[key] = served
            self._servers.subtract(before)
            self._servers.update(served)
            changed |= dict.fromkeys(sorted(before ^ served))
        return changed

    async def _reconcile(self, version: GroupVersion) -> None:
        name = f"{version.version}.{version.group}"
        present = self._registry.find_cached(self._api_services.group_resource, "", name)
        if self._servers[version] > 0:
            await self._attempt(name, self._register(name, version, present))
            return
        del self._servers[version]
        if present is not None and present.labels.get(AUTOMANAGED) == ALWAYS:
            await self._attempt(name, delete(self._registry, self._context("delete", name, {})))

    def _served_versions(self, stored: StoredObject) -> Iterator[GroupVersion]:
        try:
            spec = _read(stored.value).spec
        except WRONG_TYPE_ERRORS as error:
            self._registry.watch_cache.report_malformed(stored, error)
        else:
            for version in spec.versions:
                if version.served:
                    yield GroupVersion(spec.group, version.name)

    async def _register(self, name: str, version: GroupVersion, present: StoredObject | None) -> None:
        spec = {"group": version.group, "version": version.version} | PRIORITY
        if present is None:
            tree = {"metadata": {"name": name, "labels": {AUTOMANAGED: ALWAYS}}, "spec": spec}
            await create(self._registry, self._context("create", "", tree))
        elif present.labels.get(AUTOMANAGED) == ALWAYS and present.shared_tree()["spec"] != spec:
            registry, context, options = self._registry, self._context("update", name, {}), WriteOptions()

            def change(_: Write, old: Tree) -> Tree:
                return metadata.manage_change(registry, context, old | {"spec": spec}, old, options)

            await guaranteed_update(Write(registry=registry, context=context, change=change))

    async def _attempt(self, name: str, work: Awaitable[object]) -> None:
        try:
            await work
        except (ApiError, KVError) as error:
            LOG.debug("%s was not registered or removed: %s", name, error)
        except WRONG_TYPE_ERRORS:
            LOG.warning("APIService %s is invalid", name)

    def _context(self, verb: str, name: str, tree: Tree) -> RequestContext:
        body = Body(data=orjson.dumps(tree), media_type="application/json") if tree else Body(data=b"")
        return RequestContext(
            verb=verb,
            resource=self._api_services,
            name=name,
            body=body,
            user=SERVER,
            user_agent=self._user_agent,
        )


def _version_of(name: str) -> GroupVersion:
    version, _, group = name.partition(".")
    return GroupVersion(group, version)
