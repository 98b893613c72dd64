"""The keys of the UnitedDeployments that a change of another object affects."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches, Change
from mockube.controller_manager.client.kinds import (
    CONTROLLER_REVISIONS,
    PODS,
    REPLICA_SETS,
    UNITED_DEPLOYMENTS,
)
from mockube.controller_manager.client.resources import Key, Resource
from mockube.controller_manager.control.controller import ToKeys
from mockube.controller_manager.controllers.kruise.uniteddeployment.adapters.rows import ADAPTERS
from mockube.controller_manager.controllers.kruise.uniteddeployment.spec import selector_of
from mockube.controller_manager.workloads.ownership import keys_of_owners


def of_owned(resource: Resource[ReadOnlyTree]) -> ToKeys:
    """Map a change of an object that a UnitedDeployment owns or may adopt."""
    return keys_of_owners(resource, UNITED_DEPLOYMENTS, selector_of)


of_revision: Final = of_owned(CONTROLLER_REVISIONS)

_POSSIBLE_OWNERS: Final[Mapping[GroupKind, Resource[Any]]] = {
    resource.group_kind: resource
    for resource in (REPLICA_SETS, UNITED_DEPLOYMENTS, *(adapter.resource for adapter in ADAPTERS))
}
"""The resources in the chain of owners from a pod to a UnitedDeployment."""


def of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """Map a change of a pod."""
    return {key for pod in change if pod is not None for key in _top_owner(caches, PODS.tree(pod))}


def of_replica_set(caches: Caches, change: Change) -> Iterable[Key]:
    """Map a change of a ReplicaSet: it may enter its cache after its pods, whose keys were unknown until then."""
    return {key for tree in change if tree is not None for key in _top_owner(caches, tree)}


def _top_owner(caches: Caches, obj: ReadOnlyTree) -> Iterable[Key]:
    """Return the key of the UnitedDeployment at the end of the chain of owners; none if it ends otherwise."""
    resource: Resource[Any] | None = None
    owner: ReadOnlyTree | None = obj
    while owner is not None and resource is not UNITED_DEPLOYMENTS:
        obj = owner
        resource, owner = _owner(caches, obj)
    return (Key.of(owner),) if owner is not None else ()


def _owner(caches: Caches, obj: ReadOnlyTree) -> tuple[Resource[Any] | None, ReadOnlyTree | None]:
    reference = meta.controller_of(obj)
    if reference is None:
        return None, None
    group = GroupVersion.parse(reference["apiVersion"]).group
    resource = _POSSIBLE_OWNERS.get(GroupKind(group, reference["kind"]))
    owner = caches.of(resource).get(meta.namespace(obj), reference["name"]) if resource else None
    is_same_owner = owner is not None and meta.uid(owner) == reference["uid"]
    return resource, owner if is_same_owner else None
