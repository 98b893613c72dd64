"""Which UnitedDeployments a change of something else concerns."""

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
    """For what a UnitedDeployment owns itself, or may adopt."""
    return keys_of_owners(resource, UNITED_DEPLOYMENTS, selector_of)


of_revision: Final = of_owned(CONTROLLER_REVISIONS)

_BETWEEN: Final[Mapping[GroupKind, Resource[Any]]] = {
    resource.group_kind: resource
    for resource in (REPLICA_SETS, UNITED_DEPLOYMENTS, *(adapter.resource for adapter in ADAPTERS))
}
"""The workloads that may own a pod, and are owned by a UnitedDeployment."""


def of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    return {key for pod in change if pod is not None for key in _top_owner(caches, PODS.tree(pod))}


def of_replica_set(caches: Caches, change: Change) -> Iterable[Key]:
    """A set that enters its cache after its pods: their keys were unknown until now."""
    return {key for tree in change if tree is not None for key in _top_owner(caches, tree)}


def _top_owner(caches: Caches, obj: ReadOnlyTree) -> Iterable[Key]:
    """The UnitedDeployment at the end of the chain of owners, if it ends with one."""
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
    resource = _BETWEEN.get(GroupKind(group, reference["kind"]))
    owner = caches.of(resource).get(meta.namespace(obj), reference["name"]) if resource else None
    is_it = owner is not None and meta.uid(owner) == reference["uid"]
    return resource, owner if is_it else None
