"""The objects that each node needs, according to the watch cache.

The graph is empty until the first request of a node user. From then on changes are queued, and applied at the next request.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson

from mockube.apiserver.authz.chain import PreparationNeeded
from mockube.apiserver.storage.recent_changes import Change
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.component_base.loop import yield_to_loop

from . import references
from .references import Reference

GROUPS: Final = {
    references.POD: "",
    references.VOLUME: "",
    references.ATTACHMENT: "storage.k8s.io",
    references.SLICE: "resource.k8s.io",
    references.CERTIFICATE_REQUEST: "certificates.k8s.io",
}
"""The API groups of the resources that are watched."""
MAX_SYNCHRONOUS_CHANGES: Final = 500
"""The number of changes that are applied at once while a request waits; more are applied in batches between requests."""
MAX_QUEUED_CHANGES: Final = 20_000
"""The number of changes that are queued between requests, beyond the number of objects; with more, the graph is reset."""

Caches = Callable[[str], ResourceCache]


class NodeGraph:
    def __init__(self, resources: Iterable[str] = GROUPS) -> None:
        """`resources` are those of `GROUPS` that the server stores."""
        self.resources = tuple(resources)
        self._caches: Caches | None = None
        self._watchers: list[_Watcher] = []
        """Empty until the first request of a node user."""
        self._max_queued = 0
        self._noted: dict[tuple[str, bytes], None] = {}
        self._objects: dict[tuple[str, bytes], _Links] = {}
        """The references of each object."""
        self._nodes: dict[Reference, dict[str, int]] = {}
        """The number of each node's objects that refer to an object."""
        self._volumes_of: dict[Reference, set[Reference]] = {}
        """The volumes that refer to each Secret."""
        self._claims: dict[Reference, Reference] = {}
        """The claim that each volume is bound to."""

    def watch(self, caches: Caches) -> None:
        """Use these caches from now on."""
        self._caches = caches

    def reset(self) -> None:
        """Clear the graph until the next request of a node user."""
        assert self._caches is not None
        for watcher in self._watchers:
            self._caches(watcher.resource).watchers.remove(watcher)
        for collection in (
            self._watchers,
            self._noted,
            self._objects,
            self._nodes,
            self._volumes_of,
            self._claims,
        ):
            collection.clear()

    def has_path(self, node: str, reference: Reference) -> bool:
        """Return whether a node needs an object. Raise PreparationNeeded if too many changes are queued to apply now."""
        self._start_watching()
        if len(self._noted) > MAX_SYNCHRONOUS_CHANGES:
            raise PreparationNeeded(self.catch_up, self._apply_all_changes)
        self._apply_all_changes()
        return any(node in self._nodes.get(referrer, ()) for referrer in self._reachable(reference))

    def _reachable(self, reference: Reference) -> Iterable[Reference]:
        yield reference
        volumes = {reference} if reference in self._claims else self._volumes_of.get(reference, ())
        yield from (self._claims[volume] for volume in volumes)

    async def catch_up(self) -> None:
        """Apply the queued changes, while other requests are served."""
        while self._noted:
            self._apply_changes(MAX_SYNCHRONOUS_CHANGES)
            await yield_to_loop()

    # --- watching

    def _start_watching(self) -> None:
        if self._watchers or self._caches is None:
            return
        for resource in self.resources:
            cache = self._caches(resource)
            watcher = _Watcher(self, resource, cache.prefix)
            cache.watchers.add(watcher)
            self._watchers.append(watcher)
            self._noted |= dict.fromkeys((resource, stored.key) for stored in cache)
        self._max_queued = len(self._noted) + MAX_QUEUED_CHANGES

    def note(self, resource: str, key: bytes) -> None:
        self._noted[resource, key] = None
        if len(self._noted) > self._max_queued:
            self.reset()

    def _apply_all_changes(self) -> None:
        self._apply_changes(len(self._noted))

    def _apply_changes(self, count: int) -> None:
        assert self._caches is not None
        for _ in range(min(count, len(self._noted))):
            resource, key = next(iter(self._noted))
            del self._noted[resource, key]
            self._replace(resource, key, self._caches(resource).get(key))

    def _replace(self, resource: str, key: bytes, stored: StoredObject | None) -> None:
        before = self._objects.pop((resource, key), None)
        if before is not None:
            before.remove(self._nodes, self._volumes_of, self._claims)
        if stored is None:
            return
        links = _Links(resource, orjson.loads(stored.value))
        self._objects[resource, key] = links
        links.add(self._nodes, self._volumes_of, self._claims)


class _Links:
    """The references of one object: those that its node needs, or those of a volume."""

    __slots__ = ("claim", "node", "references", "secrets", "volume")

    def __init__(self, resource: str, tree: Mapping[str, Any]) -> None:
        spec, name = tree.get("spec") or {}, tree["metadata"]["name"]
        self.claim: Reference | None = None
        self.volume: Reference = (references.VOLUME, "", name)
        self.secrets: frozenset[Reference] = frozenset()
        self.node: str = spec.get("nodeName") or ""
        self.references: frozenset[Reference] = frozenset()
        if resource == references.VOLUME:
            self.claim = references.claim_of(tree)
            self.secrets = (
                frozenset() if self.claim is None else frozenset(references.secrets_of_volume(tree))
            )
        elif self.node:
            namespace = tree["metadata"].get("namespace") or ""
            own = [(resource, namespace, name)]
            self.references = frozenset(references.of_pod(tree) if resource == references.POD else own)

    def add(
        self,
        nodes: dict[Reference, dict[str, int]],
        volumes: dict[Reference, set[Reference]],
        claims: dict[Reference, Reference],
    ) -> None:
        for reference in self.references:
            counts = nodes.setdefault(reference, {})
            counts[self.node] = counts.get(self.node, 0) + 1
        for secret in self.secrets:
            volumes.setdefault(secret, set()).add(self.volume)
        if self.claim is not None:
            claims[self.volume] = self.claim

    def remove(
        self,
        nodes: dict[Reference, dict[str, int]],
        volumes: dict[Reference, set[Reference]],
        claims: dict[Reference, Reference],
    ) -> None:
        for reference in self.references:
            counts = nodes[reference]
            counts[self.node] -= 1
            if not counts[self.node]:
                del counts[self.node]
            if not counts:
                del nodes[reference]
        for secret in self.secrets:
            volumes[secret].discard(self.volume)
            if not volumes[secret]:
                del volumes[secret]
        claims.pop(self.volume, None)


class _Watcher:
    """Watches the cache of one resource."""

    def __init__(self, graph: NodeGraph, resource: str, prefix: bytes) -> None:
        self.prefix = prefix
        self.resource = resource
        self._graph = graph

    def handle_change(self, change: Change) -> None:
        self._graph.note(self.resource, change.after.key)

    def handle_missed_change(self) -> None:
        """Do nothing: `handle_change` does not read objects, so it cannot fail."""
