"""The caches of the stored resources: those that the server has at its start, and those of custom resources as they appear."""

from collections.abc import Mapping
from functools import partial

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.watch_stream import end_watches
from mockube.apiserver.storage.resource_cache import ResourceCache


class ResourceCaches:
    """`resources` are the cached resources by the prefix of their keys."""

    def __init__(self, registry: Registry, catalog: Catalog) -> None:
        self._registry, self._catalog = registry, catalog
        self.resources: dict[bytes, GroupResource] = {}
        for name in registry.rows:
            self._add(name)
        catalog.on_resource += (self._add, partial(end_watches, registry))

    def _add(self, name: GroupResource) -> None:
        row = self._registry.rows.get(name)
        if row is None or row.virtual:
            return
        prefix, watch_cache = self._registry.layout.prefix(row), self._registry.watch_cache
        watch_cache.expect_kind(prefix, row.kind, self._catalog.api_versions(name))
        if prefix not in self.resources:
            watch_cache.resource_cache(prefix)
            self.resources[prefix] = name

    def of(self, group: str, resource: str) -> ResourceCache:
        row = self._registry.rows[GroupResource(group, resource)]
        return self._registry.watch_cache.resource_cache(self._registry.layout.prefix(row))

    def counts(self) -> Mapping[GroupResource, int]:
        """Return the number of objects of each resource that can be watched."""
        counts = {
            self.resources[cache.prefix]: len(cache)
            for cache in self._registry.watch_cache.folders.caches()
            if cache.prefix in self.resources
        }
        rows = self._registry.rows
        return {name: count for name, count in counts.items() if name in rows and "watch" in rows[name].verbs}
