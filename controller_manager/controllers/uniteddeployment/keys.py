"""Which UnitedDeployments a change of something else concerns."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from apimachinery import meta
from apimachinery.groups import GroupKind, GroupVersion
from controller_manager.controllers.uniteddeployment.adapters.rows import ADAPTERS
from controller_manager.controllers.uniteddeployment.views import selector_of
from controller_manager.kinds import CONTROLLER_REVISIONS, PODS, REPLICA_SETS, UNITED_DEPLOYMENTS
from controller_manager.runtime.caches import Caches, Change
from controller_manager.runtime.controller import ToKeys
from controller_manager.runtime.resource import Key, Resource, Tree
from controller_manager.workloads.claims import keys_of_owners


def of_owned(resource: Resource[Tree]) -> ToKeys:
    """For what a UnitedDeployment owns itself, or may adopt."""
    return keys_of_owners(resource, UNITED_DEPLOYMENTS, selector_of)


of_revision: Final = of_owned(CONTROLLER_REVISIONS)

_BETWEEN: Final[Mapping[GroupKind, Resource[Any]]] = {
    resource.group_kind: resource
    for resource in (REPLICA_SETS, UNITED_DEPLOYMENTS, *(one.resource for one in ADAPTERS))
}
"""What may stand between a pod and a UnitedDeployment, with itself."""


def of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    return {key for pod in change if pod is not None for key in _above(caches, PODS.tree(pod))}


def of_replica_set(caches: Caches, change: Change) -> Iterable[Key]:
    """Where it comes later into its cache than its pods into theirs, they were nobody's until now."""
    return {key for tree in change if tree is not None for key in _above(caches, tree)}


def _above(caches: Caches, obj: Tree) -> Iterable[Key]:
    """The UnitedDeployment at the end of the chain of owners, if it ends with one."""
    resource: Resource[Any] | None = None
    found: Tree | None = obj
    while found is not None and resource is not UNITED_DEPLOYMENTS:
        obj = found
        resource, found = _owner(caches, obj)
    return (Key.of(found),) if found is not None else ()


def _owner(caches: Caches, obj: Tree) -> tuple[Resource[Any] | None, Tree | None]:
    reference = meta.controller_of(obj)
    if reference is None:
        return None, None
    group = GroupVersion.parse(reference["apiVersion"]).group
    resource = _BETWEEN.get(GroupKind(group, reference["kind"]))
    owner = caches.of(resource).get(meta.namespace(obj), reference["name"]) if resource else None
    is_it = owner is not None and meta.uid(owner) == reference["uid"]
    return resource, owner if is_it else None
