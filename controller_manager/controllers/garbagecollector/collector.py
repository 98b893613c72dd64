"""The garbage collector: it watches every kind that can be deleted, and deletes or patches objects by the graph.

It has two queues: objects to delete if their owners are absent, and owners whose dependents are orphaned. Each write has
the version of the decision as its precondition; after a conflict the object is processed again. So the caches are
sufficient, except for an owner's absence: it is known only from the owner's deletion event or from the server.
"""

import logging
from datetime import timedelta
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import FINALIZER_FOREGROUND, FINALIZER_ORPHAN
from mockube.client.cache.store import Change
from mockube.client.discovery import discover
from mockube.client.kinds import CUSTOM_RESOURCE_DEFINITIONS
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key, Resource
from mockube.component_base.supervision import run_all
from mockube.controller_manager.control.runnable import Context, Runnable
from mockube.controller_manager.control.watched_kinds import WatchedKinds

from . import references
from .decision import Disown, Keep, OwnerState, Remove, decide, unblocked_owners
from .graph import Graph, GraphStep, Node
from .references import AbsentOwnerCache, KindMap, OwnerReference

LOG: Final = logging.getLogger(__name__)
_DISCOVERY_PERIOD: Final = timedelta(seconds=30)
"""The time between two discoveries; a new CustomResourceDefinition causes another one."""
_DISCOVERY_KEY: Final = Key("", "kinds")


class GarbageCollector:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._informers = context.informers
        self._recorder = context.recorder.of("garbage-collector-controller")
        self._graph = Graph()
        self._kinds = KindMap()
        self._watched = WatchedKinds(
            self._informers, verbs=("delete", "list", "watch"), ignored=references.IGNORED_RESOURCES
        )
        self._absent_owners = AbsentOwnerCache()
        workers = context.options.controllers.concurrent_gc_syncs
        loop = partial(ReconcileLoop, workers=workers, clock=context.clock, metrics=context.metrics)
        self._deletions = loop("garbage_collector_attempt_to_delete", self._attempt_to_delete)
        self._orphans = loop("garbage_collector_attempt_to_orphan", self._attempt_to_orphan)
        # One key, which is requeued periodically.
        self._discovery = ReconcileLoop(
            "garbage_collector_discovery",
            self._discover,
            workers=1,
            clock=context.clock,
            metrics=context.metrics,
            requeue_clock=context.clock.routine,
        )

    async def run(self) -> None:
        self._discovery.add(_DISCOVERY_KEY)
        await run_all(
            discovery=self._discovery.run(), deletions=self._deletions.run(), orphans=self._orphans.run()
        )

    # --- watches

    async def _discover(self, _: Key) -> timedelta:
        discovery = await discover(self._client)
        self._kinds.update(discovery)
        for resource in self._watched.update(discovery):
            informer = self._informers.of(resource)
            informer.add_handler(partial(self._on_change, resource))
            if resource is CUSTOM_RESOURCE_DEFINITIONS:
                informer.add_handler(lambda _: self._discovery.add(_DISCOVERY_KEY))
        return _DISCOVERY_PERIOD

    def _on_change(self, resource: Resource[Any], change: Change) -> None:
        """Update the graph, and queue the nodes that the change affects."""
        latest = resource.tree(change.last_known)
        if change.new is None:
            self._on_delete(meta.uid(latest))
            return
        if change.old is not None and meta.uid(resource.tree(change.old)) != meta.uid(latest):
            self._on_delete(meta.uid(resource.tree(change.old)))
        self._absent_owners.discard(meta.uid(latest))
        self._enqueue(self._graph.observe(resource, latest))

    def _on_delete(self, uid: str) -> None:
        step = self._graph.remove(uid)
        if step.delete:
            self._absent_owners.add(uid, self._graph.newest)
        self._enqueue(step)

    def _enqueue(self, step: GraphStep) -> None:
        for node in step.delete:
            self._deletions.add(Key("", node.uid))
        for node in step.orphan:
            self._orphans.add(Key("", node.uid))

    # --- deleting objects

    async def _attempt_to_delete(self, key: Key) -> timedelta | None:
        node = self._graph.node(key.name)
        if node is None or (node.is_deleting and not node.waits_for_dependents):
            return None
        resource = self._kinds.resource(node.identity.api_version, node.identity.kind)
        if resource is None:
            LOG.warning("%s has an owner of a kind that the server does not serve", node.identity)
            return _DISCOVERY_PERIOD
        latest = await self._read_latest(resource, node.identity.key, node.uid)
        if latest is None:
            self._on_delete(node.uid)
        elif node.waits_for_dependents:
            await self._finish_foreground_deletion(resource, node, latest)
        elif meta.owner_references(latest):
            await self._process_owners(resource, node, latest)
        return None

    async def _read_latest(self, resource: Resource[ReadOnlyTree], key: Key, uid: str) -> ReadOnlyTree | None:
        """Read the object from the cache or the server; None if it is deleted, or another one has its name."""
        object_key = key if resource.namespaced else Key("", key.name)
        cached = self._find_cached(resource, object_key)
        if cached is not None and meta.uid(cached) == uid:
            return cached
        try:
            latest = await self._client.get(resource, object_key)
        except NotFound:
            return None
        return latest if meta.uid(latest) == uid else None

    def _find_cached(self, resource: Resource[ReadOnlyTree], key: Key) -> ReadOnlyTree | None:
        watched = self._watched.row(resource.group_resource)
        informer = None if watched is None else self._informers.find(watched)
        if watched is None or informer is None:
            return None
        view = informer.lister.get(*key)
        return None if view is None else watched.tree(view)

    async def _finish_foreground_deletion(
        self, resource: Resource[ReadOnlyTree], node: Node, latest: ReadOnlyTree
    ) -> None:
        """Remove the finalizer of a foreground deletion, or queue the dependents that block it."""
        blocking = node.blocking_dependents
        if not blocking:
            patch = references.without_finalizer_patch(latest, FINALIZER_FOREGROUND)
            await self._patch(resource, latest, patch)
        for dependent in blocking:
            if not dependent.waits_for_dependents:
                self._deletions.add(Key("", dependent.uid))

    async def _process_owners(
        self, resource: Resource[ReadOnlyTree], node: Node, latest: ReadOnlyTree
    ) -> None:
        owner_states = [
            await self._state_of_owner(latest, owner, node.number) for owner in references.owners_of(latest)
        ]
        decision = decide(
            latest,
            owner_states,
            has_dependents=bool(node.dependents),
            is_in_cycle=any(dependent.waits_for_dependents for dependent in node.dependents.values()),
        )
        match decision:
            case Keep():
                return
            case Disown(patch):
                await self._patch(resource, latest, patch)
            case Remove():
                await self._remove(resource, latest, decision)

    async def _state_of_owner(
        self, dependent: ReadOnlyTree, owner: OwnerReference, number: int
    ) -> OwnerState:
        if self._absent_owners.is_absent(owner.uid, number):
            return OwnerState.DANGLING
        resource = self._kinds.resource(owner.api_version, owner.kind)
        namespace = meta.namespace(dependent)
        if resource is None or (resource.namespaced and not namespace):
            self._warn_about_invalid_reference(dependent, owner)
            return OwnerState.SOLID  # unknown, so the object is not deleted
        owner_object = await self._read_latest(resource, Key(namespace, owner.name), owner.uid)
        if owner_object is None:
            self._warn_if_in_other_namespace(dependent, owner)
            self._absent_owners.add(owner.uid, self._graph.newest)
            return OwnerState.DANGLING
        return OwnerState.WAITING if references.waits_for_dependents(owner_object) else OwnerState.SOLID

    def _warn_if_in_other_namespace(self, dependent: ReadOnlyTree, owner: OwnerReference) -> None:
        node = self._graph.node(owner.uid)
        if (
            node is not None
            and not node.is_virtual
            and node.identity.key.namespace != meta.namespace(dependent)
        ):
            self._warn_about_invalid_reference(dependent, owner)

    def _warn_about_invalid_reference(self, dependent: ReadOnlyTree, owner: OwnerReference) -> None:
        namespace = meta.namespace(dependent)
        message = f'ownerRef {owner.describe(namespace)} does not exist in namespace "{namespace}"'
        self._recorder.record(dependent, "Warning", "OwnerRefInvalidNamespace", message)

    async def _remove(self, resource: Resource[ReadOnlyTree], latest: ReadOnlyTree, decision: Remove) -> None:
        version = meta.resource_version(latest)
        if decision.unblock:
            patched = await self._patch(
                resource, latest, references.with_owners_patch(latest, unblocked_owners(latest))
            )
            version = meta.resource_version(patched or latest)
        try:
            # With the version of the decision as precondition: a change in between is a conflict, and a retry.
            await self._client.delete(
                resource,
                Key.of(latest),
                uid=meta.uid(latest),
                resource_version=version,
                propagation=decision.propagation,
            )
        except NotFound:
            return

    async def _patch(
        self, resource: Resource[ReadOnlyTree], obj: ReadOnlyTree, patch: ReadOnlyTree
    ) -> ReadOnlyTree | None:
        """Patch an object; return None if it is deleted."""
        try:
            return await self._client.patch(resource, Key.of(obj), patch)
        except NotFound:
            return None

    # --- orphaning dependents

    async def _attempt_to_orphan(self, key: Key) -> None:
        node = self._graph.node(key.name)
        if node is None:
            return
        for dependent in [*node.dependents.values()]:
            await self._orphan(dependent, node.uid)
        resource = self._kinds.resource(node.identity.api_version, node.identity.kind)
        latest = await self._read_latest(resource, node.identity.key, node.uid) if resource else None
        if resource is not None and latest is not None and FINALIZER_ORPHAN in meta.finalizers(latest):
            await self._patch(resource, latest, references.without_finalizer_patch(latest, FINALIZER_ORPHAN))

    async def _orphan(self, dependent: Node, owner_uid: str) -> None:
        resource = self._kinds.resource(dependent.identity.api_version, dependent.identity.kind)
        latest = (
            await self._read_latest(resource, dependent.identity.key, dependent.uid) if resource else None
        )
        if resource is None or latest is None:
            return
        other_owners = [
            reference for reference in meta.owner_references(latest) if reference.get("uid") != owner_uid
        ]
        if len(other_owners) < len(meta.owner_references(latest)):
            await self._patch(resource, latest, references.with_owners_patch(latest, other_owners))


GARBAGE_COLLECTOR: Final = Runnable(
    name="garbage-collector-controller", service_account="generic-garbage-collector", build=GarbageCollector
)
