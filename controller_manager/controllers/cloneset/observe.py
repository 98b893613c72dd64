"""Read from the caches what a CloneSet is decided on: its pods, its claims, its history, its nodes."""

from collections.abc import Iterable
from dataclasses import replace

from apimachinery import meta
from controller_manager import kinds
from controller_manager.controllers.cloneset import storage
from controller_manager.controllers.cloneset.setview import SetView
from controller_manager.indexes import BY_OWNER
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.workloads.claims import Claims, claims_of
from controller_manager.workloads.podview import PodView
from controller_manager.workloads.revisions import in_order


def pods(caches: Caches, owner: SetView) -> Claims[PodView]:
    """It lets go of pods that it no longer selects, but takes in none: a pod without its ids is none of its own."""
    found = claims_of(caches, kinds.PODS, owner.object, owner.selector)
    return replace(found, orphans=(), strays=tuple(pod for pod in found.strays if pod.is_active))


def history(caches: Caches, owner: SetView) -> list[Tree]:
    return in_order(caches.of(kinds.CONTROLLER_REVISIONS).by_index(BY_OWNER, owner.uid))


def claims(caches: Caches, owner: SetView) -> tuple[Tree, ...]:
    found = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS).by_index(BY_OWNER, owner.uid)
    return tuple(claim for claim in found if not meta.is_deleting(claim))


def in_use(claims_: Iterable[Tree], pods_: Iterable[PodView]) -> tuple[Tree, ...]:
    """Those of pods that count as replicas."""
    instances = {storage.instance_of(pod.object) for pod in pods_ if pod.is_active}
    return tuple(claim for claim in claims_ if storage.instance_of(claim) in instances)


def node_labels(caches: Caches, name: str) -> Tree:
    node = caches.of(kinds.NODES).get("", name)
    return {} if node is None else meta.labels(node)
