"""Which StatefulSets a change of something else concerns."""

from collections.abc import Iterable
from typing import Final

from apimachinery import labels, meta
from apimachinery.labels import Selector
from controller_manager.controllers.statefulset import storage
from controller_manager.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import ToKeys
from controller_manager.runtime.resource import Key, Tree
from controller_manager.workloads.claims import key_of, keys_of_owners


def of_set(_: Caches, change: Change) -> Iterable[Key]:
    return (key_of(change.latest),)


def _selector(owner: Tree) -> Selector:
    return labels.from_label_selector(owner["spec"].get("selector"))


of_pod: Final[ToKeys] = keys_of_owners(PODS, STATEFUL_SETS, _selector)
of_revision: Final[ToKeys] = keys_of_owners(CONTROLLER_REVISIONS, STATEFUL_SETS, _selector)


def of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    """Known by its name alone: a claim that is kept has no owner."""
    claim: Tree = change.latest
    for owner in caches.of(STATEFUL_SETS).in_namespace(meta.namespace(claim)):
        if storage.is_claim_of(owner, meta.name(claim)):
            yield key_of(owner)
