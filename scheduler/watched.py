"""The resources that the scheduler watches besides pods, and their listers."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kinds
from mockube.client.cache.store import Caches, Change
from mockube.client.resources import Key, Resource

from . import volumes
from .volumes import AssumedBindings, Storage
from .workload_selector import SpreadControllers, Workloads

STORAGE: Final[tuple[Resource[ReadOnlyTree], ...]] = (
    kinds.CSI_DRIVERS,
    kinds.CSI_NODES,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.STORAGE_CLASSES,
    kinds.VOLUME_ATTACHMENTS,
)
"""The resources for which pods with volumes may wait."""
INDEXES: Final = tuple(
    (resource, *index)
    for name, resource in (
        ("volumes", kinds.PERSISTENT_VOLUMES),
        ("csi_nodes", kinds.CSI_NODES),
        ("attachments", kinds.VOLUME_ATTACHMENTS),
    )
    for index in volumes.INDEXES[name]
)
"""The indexes that the scheduler reads: the resource, the name and the function of each."""
_CONTROLLERS: Final = (kinds.REPLICA_SETS, kinds.REPLICATION_CONTROLLERS, kinds.STATEFUL_SETS)
"""The controllers whose pods are spread."""
WATCHED: Final[tuple[Resource[ReadOnlyTree], ...]] = (
    kinds.NAMESPACES,
    kinds.NODES,
    kinds.POD_DISRUPTION_BUDGETS,
    kinds.SERVICES,
    *_CONTROLLERS,
    *STORAGE,
)


UsersOf = Callable[[Key], Collection[str]]
"""Returns the names of the nodes with pods that use a claim."""


def _nodes_of_volume(volume: ReadOnlyTree, storage: Storage, users_of: UsersOf) -> Iterator[str]:
    yield from storage.nodes_of_volume(meta.name(volume))
    reference = volume["spec"].get("claimRef") or {}
    yield from users_of(Key(reference.get("namespace", ""), reference.get("name", "")))


_NODES_OF: Final[
    Mapping[Resource[ReadOnlyTree], Callable[[ReadOnlyTree, Storage, UsersOf], Iterable[str]]]
] = {
    kinds.CSI_NODES: lambda csi_node, _, __: (meta.name(csi_node),),
    kinds.VOLUME_ATTACHMENTS: lambda attachment, _, __: (attachment["spec"].get("nodeName") or "",),
    kinds.PERSISTENT_VOLUME_CLAIMS: lambda claim, _, users_of: users_of(Key.of(claim)),
    kinds.PERSISTENT_VOLUMES: _nodes_of_volume,
}
"""The nodes on which an object may change how many volumes can be attached."""


def nodes_of_change(
    change: Change, resource: Resource[ReadOnlyTree], storage: Storage, users_of: UsersOf
) -> Collection[str]:
    """Return the names of the nodes of which a change of storage may change how many volumes they can attach."""
    nodes_of = _NODES_OF.get(resource)
    if nodes_of is None:
        return ()
    objects = [obj for obj in (change.old, change.new) if obj is not None]
    return dict.fromkeys(name for obj in objects for name in nodes_of(obj, storage, users_of))


def storage_of(caches: Caches, assumed: AssumedBindings) -> Storage:
    return Storage(
        claims=caches.of(kinds.PERSISTENT_VOLUME_CLAIMS),
        volumes=caches.of(kinds.PERSISTENT_VOLUMES),
        classes=caches.of(kinds.STORAGE_CLASSES),
        csi_nodes=caches.of(kinds.CSI_NODES),
        drivers=caches.of(kinds.CSI_DRIVERS),
        capacities=caches.of(kinds.CSI_STORAGE_CAPACITIES),
        attachments=caches.of(kinds.VOLUME_ATTACHMENTS),
        assumed=assumed,
    )


def workloads_of(caches: Caches) -> Workloads:
    return Workloads(
        services=caches.of(kinds.SERVICES),
        controllers={
            (row.api_version, row.kind): SpreadControllers(
                caches.of(row), has_plain_selector=row is kinds.REPLICATION_CONTROLLERS
            )
            for row in _CONTROLLERS
        },
    )
