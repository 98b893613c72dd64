"""Read from the caches what a StatefulSet is decided on: its pods, claims and history, and who is to be one of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apimachinery import meta
from controller_manager import indexes, kinds
from controller_manager.controllers.statefulset import identity, storage
from controller_manager.controllers.statefulset.setview import SetView
from controller_manager.runtime.caches import Caches
from controller_manager.runtime.resource import Tree
from controller_manager.workloads import revisions
from controller_manager.workloads.podview import PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Belongings:
    """Pods of one set: those it has, those it takes in, those it lets go."""

    owned: tuple[PodView, ...]
    orphans: tuple[PodView, ...]
    strays: tuple[PodView, ...]


def pods(caches: Caches, owner: SetView) -> Belongings:
    lister = caches.of(kinds.PODS)
    controlled = lister.by_index(indexes.BY_OWNER, owner.uid)
    unowned = lister.by_index(indexes.BY_OWNER, indexes.orphans_of(owner.key.namespace))
    orphans = [pod for pod in unowned if not pod.deleting and _fits(owner, pod)]
    return Belongings(
        owned=tuple(pod for pod in controlled if _fits(owner, pod)),
        orphans=() if owner.deleting else tuple(orphans),
        strays=() if owner.deleting else tuple(pod for pod in controlled if not _fits(owner, pod)),
    )


def _fits(owner: SetView, pod: PodView) -> bool:
    return owner.selector.matches(pod.labels) and identity.ordinal_in(owner, pod.key.name) is not None


def claims(caches: Caches, owner: SetView, ordinals: Iterable[int]) -> storage.Claims:
    lister = caches.of(kinds.PERSISTENT_VOLUME_CLAIMS)
    names = (name for ordinal in ordinals for name in storage.claim_names(owner, ordinal))
    found = ((name, lister.get(owner.key.namespace, name)) for name in names)
    return {name: claim for name, claim in found if claim is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The ControllerRevisions of one set, the oldest first; orphans among them are to be adopted."""

    revisions: Sequence[Tree]
    orphans: Sequence[Tree]


def history(caches: Caches, owner: SetView) -> History:
    lister = caches.of(kinds.CONTROLLER_REVISIONS)
    unowned = lister.by_index(indexes.BY_OWNER, indexes.orphans_of(owner.key.namespace))
    orphans = [it for it in unowned if owner.selector.matches(meta.labels(it)) and not meta.is_deleting(it)]
    owned = lister.by_index(indexes.BY_OWNER, owner.uid)
    return History(revisions=revisions.in_order([*owned, *orphans]), orphans=orphans)
