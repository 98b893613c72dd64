"""The resources that the scheduler watches besides pods, and their listers."""

from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client import kinds
from mockube.controller_manager.client.resources import Resource

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
    (resource, *volumes.INDEXES[name])
    for name, resource in (
        ("volumes", kinds.PERSISTENT_VOLUMES),
        ("csi_nodes", kinds.CSI_NODES),
        ("attachments", kinds.VOLUME_ATTACHMENTS),
    )
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
