"""Which sets a change of something else concerns."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from apimachinery import labels, meta
from apimachinery.labels import Selector
from controller_manager.kinds import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import ToKeys, Watch
from controller_manager.runtime.resource import Key, Resource, Tree
from controller_manager.workloads import primary
from controller_manager.workloads.claims import keys_of_owners
from controller_manager.workloads.stateful import storage

_PATIENCE: Final = timedelta(milliseconds=50)
"""Its status tells of nothing but pods, whose own changes are looked at at once."""


def watches_of(resource: Resource[Tree]) -> tuple[Watch, ...]:
    """What the controller of such sets watches."""
    return (
        *primary.watches_of(resource, patience=_PATIENCE),
        Watch(resource=PODS, keys=keys_of_owners(PODS, resource, _selector)),
        Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=_of_claims(resource)),
        Watch(resource=CONTROLLER_REVISIONS, keys=keys_of_owners(CONTROLLER_REVISIONS, resource, _selector)),
    )


def _selector(owner: Tree) -> Selector:
    return labels.from_label_selector(owner["spec"].get("selector"))


def _of_claims(resource: Resource[Tree]) -> ToKeys:
    """Known by its name alone: a claim that is kept has no owner."""

    def keys(caches: Caches, change: Change) -> Iterable[Key]:
        claim: Tree = change.latest
        for owner in caches.of(resource).in_namespace(meta.namespace(claim)):
            if storage.is_claim_of(owner, meta.name(claim)):
                yield Key.of(owner)

    return keys
