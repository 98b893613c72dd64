"""How claims and volumes that may belong together are found without looking at all of them."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from controller_manager.controllers.persistentvolume.binding import is_completed
from controller_manager.indexes import BY_CLAIM, claims_of_pod
from controller_manager.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from controller_manager.runtime.caches import Caches, Indexer
from controller_manager.runtime.resource import Key, Resource, Tree
from controller_manager.storage.classes import class_name

_NAMED: Final = "named"
_FREE: Final = "free"
_UNBOUND: Final = "unbound"


def volumes_naming(caches: Caches, claim: Tree) -> Iterable[Tree]:
    return caches.of(PERSISTENT_VOLUMES).by_index(_NAMED, str(Key.of(claim)))


def free_volumes(caches: Caches, name: str) -> Iterable[Tree]:
    """Of a class, those that name no claim."""
    return caches.of(PERSISTENT_VOLUMES).by_index(_FREE, name)


def unbound_claims(caches: Caches, name: str) -> Iterable[Tree]:
    """Of a class, those that have no volume yet."""
    return caches.of(PERSISTENT_VOLUME_CLAIMS).by_index(_UNBOUND, name)


def unscheduled_consumers(caches: Caches, claim: Tree) -> list[str]:
    """The names of the pods that wait for it, and have no node yet."""
    pods = caches.of(PODS).by_index(BY_CLAIM, str(Key.of(claim)))
    return sorted(pod.key.name for pod in pods if not pod.node and not pod.is_terminal)


def _claim_named_by(volume: Tree) -> Iterable[str]:
    ref = volume["spec"].get("claimRef")
    return () if ref is None else (f"{ref['namespace']}/{ref['name']}",)


def _class_if_free(volume: Tree) -> Iterable[str]:
    return (class_name(volume),) if volume["spec"].get("claimRef") is None else ()


def _class_if_unbound(claim: Tree) -> Iterable[str]:
    return () if is_completed(claim) else (class_name(claim),)


INDEXES: Final[Mapping[Resource[Any], Mapping[str, Indexer]]] = {
    PERSISTENT_VOLUME_CLAIMS: {_UNBOUND: _class_if_unbound},
    PERSISTENT_VOLUMES: {_NAMED: _claim_named_by, _FREE: _class_if_free},
    PODS: {BY_CLAIM: claims_of_pod},
}
