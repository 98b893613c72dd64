"""The resources that the scheduler watches besides pods, and their listers."""

from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Caches
from mockube.controller_manager.client.kinds import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from mockube.controller_manager.client.resources import Resource
from mockube.controller_manager.scheduler.volumes import AssumedBindings, Storage
from mockube.controller_manager.scheduler.workload_selector import SpreadControllers, Workloads

STORAGE: Final[tuple[Resource[ReadOnlyTree], ...]] = (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
"""The resources for which pods with volumes may wait."""
_CONTROLLERS: Final = (REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS)
"""The controllers whose pods are spread."""
WATCHED: Final[tuple[Resource[ReadOnlyTree], ...]] = (
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    *_CONTROLLERS,
    *STORAGE,
)


def storage_of(caches: Caches, assumed: AssumedBindings) -> Storage:
    return Storage(
        claims=caches.of(PERSISTENT_VOLUME_CLAIMS),
        volumes=caches.of(PERSISTENT_VOLUMES),
        classes=caches.of(STORAGE_CLASSES),
        csi_nodes=caches.of(CSI_NODES),
        drivers=caches.of(CSI_DRIVERS),
        capacities=caches.of(CSI_STORAGE_CAPACITIES),
        attachments=caches.of(VOLUME_ATTACHMENTS),
        assumed=assumed,
    )


def workloads_of(caches: Caches) -> Workloads:
    return Workloads(
        services=caches.of(SERVICES),
        controllers={
            (row.api_version, row.kind): SpreadControllers(
                caches.of(row), has_plain_selector=row is REPLICATION_CONTROLLERS
            )
            for row in _CONTROLLERS
        },
    )
