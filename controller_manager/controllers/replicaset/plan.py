"""Plan a ReplicaSet or ReplicationController: read its pods from the caches, and decide which to create or delete.

`Family` holds what differs between the two kinds.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    REASON_FAILED_CREATE,
    REASON_FAILED_DELETE,
    REASON_SUCCESSFUL_CREATE,
    REASON_SUCCESSFUL_DELETE,
)
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Resource
from mockube.controller_manager.control.actions import Action, Create, Delete, EventTemplate, ObjectRef
from mockube.controller_manager.workloads.ownership import BY_OWNER, OwnedObjects, owned_objects
from mockube.controller_manager.workloads.ranking import first_to_go
from mockube.controller_manager.workloads.templates import pod_of


class Family(Struct, frozen=True, kw_only=True):
    resource: Resource[ReadOnlyTree]
    selector: Callable[[ReadOnlyTree], Selector]
    """Of an object; it may raise `SelectorError`."""
    counts_terminating: bool
    """Its status has `terminatingReplicas`."""


def _label_selector(replica_set: ReadOnlyTree) -> Selector:
    return labels.from_label_selector(replica_set["spec"].get("selector"))


def _label_set(controller: ReadOnlyTree) -> Selector:
    chosen = controller["spec"].get("selector")
    return labels.from_set(chosen) if chosen else labels.NOTHING


REPLICA_SET_FAMILY: Final = Family(resource=REPLICA_SETS, selector=_label_selector, counts_terminating=True)
REPLICATION_CONTROLLER_FAMILY: Final = Family(
    resource=REPLICATION_CONTROLLERS, selector=_label_set, counts_terminating=False
)


class ReplicaSetState(Struct, frozen=True, kw_only=True):
    """One ReplicaSet and what is there for it."""

    owner: ReadOnlyTree
    active: tuple[PodView, ...]
    terminating: int
    """Of its pods, how many are on their way out and have not ended yet."""

    @property
    def replicas(self) -> int:
        replicas = self.owner["spec"].get("replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def min_ready_seconds(self) -> int:
        return self.owner["spec"].get("minReadySeconds") or 0

    @property
    def template(self) -> ReadOnlyTree:
        return self.owner["spec"].get("template") or {}


def pods_of(caches: Caches, owner: ReadOnlyTree, selector: Selector) -> OwnedObjects[PodView]:
    """Return all pods that it owns, but only active orphans and strays: an ended pod is neither adopted nor released."""
    claims = owned_objects(caches, PODS, owner, selector)
    return OwnedObjects(
        owned=claims.owned,
        orphans=tuple(pod for pod in claims.orphans if pod.is_active),
        strays=tuple(pod for pod in claims.strays if pod.is_active),
    )


def state_of(owner: ReadOnlyTree, owned: Iterable[PodView]) -> ReplicaSetState:
    pods = tuple(owned)
    return ReplicaSetState(
        owner=owner,
        active=tuple(pod for pod in pods if pod.is_active),
        terminating=sum(pod.deleting and not pod.is_terminal for pod in pods),
    )


def kin_of(caches: Caches, family: Family, owner: ReadOnlyTree) -> list[PodView]:
    """The pods of all sets of the same owner: together they do one work, be it in two versions."""
    controller = meta.controller_of(owner)
    if controller is None:
        return []
    siblings = caches.of(family.resource).by_index(BY_OWNER, controller["uid"])
    pods = caches.of(PODS)
    return [pod for sibling in siblings for pod in pods.by_index(BY_OWNER, meta.uid(sibling))]


BURST_REPLICAS: Final = 500
"""The limit of pods that one plan creates or deletes; the next plan continues when the cache shows these."""


def plan(state: ReplicaSetState, kin: Callable[[], Iterable[PodView]], now: datetime) -> tuple[Action, ...]:
    """`kin` is called only if there is a choice of pods to delete."""
    surplus = len(state.active) - state.replicas
    if surplus < 0:
        return (_creation(state, min(-surplus, BURST_REPLICAS)),)
    if surplus > 0:
        return (_deletion(state, first_to_go(state.active, min(surplus, BURST_REPLICAS), kin(), now)),)
    return ()


def _creation(state: ReplicaSetState, count: int) -> Create:
    event = EventTemplate(
        about=state.owner,
        done=(REASON_SUCCESSFUL_CREATE, "Created pod: {name}"),
        failed=(REASON_FAILED_CREATE, "Error creating: {error}"),
    )
    return Create(resource=PODS, bodies=(pod_of(state.template, state.owner),) * count, event=event)


def _deletion(state: ReplicaSetState, pods: Iterable[PodView]) -> Delete:
    event = EventTemplate(
        about=state.owner,
        done=(REASON_SUCCESSFUL_DELETE, "Deleted pod: {name}"),
        failed=(REASON_FAILED_DELETE, "Error deleting: {error}"),
    )
    return Delete(resource=PODS, objects=tuple(ObjectRef(pod.key, pod.uid) for pod in pods), event=event)
