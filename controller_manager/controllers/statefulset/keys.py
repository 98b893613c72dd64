"""Which StatefulSets a change of something else concerns."""

from collections.abc import Iterable

from apimachinery import labels, meta
from controller_manager.controllers.statefulset import storage
from controller_manager.controllers.statefulset.setview import SetView
from controller_manager.kinds import STATEFUL_SETS
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.resource import Key, Tree
from controller_manager.workloads.podview import PodView


def of_set(_: Caches, change: Change) -> Iterable[Key]:
    return (_key(change.latest),)


def of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """The set that has it, the one that had it, and those that may adopt it."""
    seen: list[PodView] = [view for view in change if view is not None]
    owned = {key for pod in seen for key in _of_controller(caches, pod.object)}
    pod = change.new
    if pod is None or pod.owner_uid or pod.deleting:
        return owned
    return owned | set(_of_orphan(caches, pod.object))


def of_revision(caches: Caches, change: Change) -> Iterable[Key]:
    seen: list[Tree] = [view for view in change if view is not None]
    owned = {key for revision in seen for key in _of_controller(caches, revision)}
    if change.new is None or meta.controller_of(change.new) is not None:
        return owned
    return owned | set(_of_orphan(caches, change.new))


def of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    """Known by its name alone: a claim that is kept has no owner."""
    claim: Tree = change.latest
    for owner in caches.of(STATEFUL_SETS).in_namespace(meta.namespace(claim)):
        if storage.is_claim_of(SetView.of(owner), meta.name(claim)):
            yield _key(owner)


def _of_controller(caches: Caches, obj: Tree) -> Iterable[Key]:
    ref = meta.controller_of(obj)
    if ref is None or ref["kind"] != STATEFUL_SETS.kind:
        return ()
    owner = caches.of(STATEFUL_SETS).get(meta.namespace(obj), ref["name"])
    return () if owner is None or meta.uid(owner) != ref["uid"] else (_key(owner),)


def _of_orphan(caches: Caches, obj: Tree) -> Iterable[Key]:
    carried = meta.labels(obj)
    for owner in caches.of(STATEFUL_SETS).in_namespace(meta.namespace(obj)):
        if labels.from_label_selector(owner["spec"].get("selector")).matches(carried):
            yield _key(owner)


def _key(owner: Tree) -> Key:
    return Key(meta.namespace(owner), meta.name(owner))
