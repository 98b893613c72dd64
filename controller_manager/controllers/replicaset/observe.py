"""Read from the caches what a ReplicaSet is decided on: its pods, and those of its kin."""

from collections.abc import Iterable
from dataclasses import dataclass

from apimachinery import meta
from apimachinery.labels import Selector
from controller_manager.controllers.replicaset.family import Family
from controller_manager.indexes import BY_OWNER
from controller_manager.kinds import PODS
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.claims import Claims, claims_of
from controller_manager.workloads.podview import PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One ReplicaSet and what is there for it."""

    owner: Tree
    active: tuple[PodView, ...]
    terminating: int
    """Of its pods, how many are on their way out and have not ended yet."""

    @property
    def replicas(self) -> int:
        wanted = self.owner["spec"].get("replicas")
        return 1 if wanted is None else int(wanted)

    @property
    def min_ready_seconds(self) -> int:
        return self.owner["spec"].get("minReadySeconds") or 0

    @property
    def template(self) -> Tree:
        return self.owner["spec"].get("template") or {}


def pods_of(caches: Caches, owner: Tree, selector: Selector) -> Claims[PodView]:
    """All that are its own, but of the others only those that count as replicas: what ended is left to itself."""
    claims = claims_of(caches, PODS, owner, selector)
    return Claims(
        owned=claims.owned,
        orphans=tuple(pod for pod in claims.orphans if pod.is_active),
        strays=tuple(pod for pod in claims.strays if pod.is_active),
    )


def scene_of(owner: Tree, owned: Iterable[PodView]) -> Scene:
    pods = tuple(owned)
    return Scene(
        owner=owner,
        active=tuple(pod for pod in pods if pod.is_active),
        terminating=sum(pod.deleting and not pod.is_terminal for pod in pods),
    )


def kin_of(caches: Caches, family: Family, owner: Tree) -> list[PodView]:
    """The pods of all sets of the same owner: together they do one work, be it in two versions."""
    controller = meta.controller_of(owner)
    if controller is None:
        return []
    siblings = caches.of(family.resource).by_index(BY_OWNER, controller["uid"])
    pods = caches.of(PODS)
    return [pod for sibling in siblings for pod in pods.by_index(BY_OWNER, meta.uid(sibling))]
