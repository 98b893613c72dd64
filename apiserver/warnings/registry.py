"""The warnings of all kinds, and the question that verbs ask: what is there to say of this write?"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from apimachinery.groups import GroupKind
from apiserver.resources.spec import Resource
from apiserver.validation.rules import Tree
from apiserver.warnings import apiextensions, cluster, networking, storage, workloads
from apiserver.warnings.kind import Warnings

WARNINGS: Final[Mapping[GroupKind, Warnings]] = MappingProxyType(
    {
        **apiextensions.WARNINGS,
        **cluster.WARNINGS,
        **networking.WARNINGS,
        **storage.WARNINGS,
        **workloads.WARNINGS,
    }
)


def warn_create(resource: Resource, tree: Tree) -> Iterable[str]:
    kind = WARNINGS.get(resource.group_kind)
    return () if kind is None else kind.create(tree)


def warn_update(resource: Resource, subresource: str, new: Tree, old: Tree) -> Iterable[str]:
    kind = WARNINGS.get(resource.group_kind)
    if kind is None:
        return ()
    update = kind.subresources.get(subresource) if subresource else kind.update
    return () if update is None else update(new, old)
