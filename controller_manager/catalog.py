"""Every controller and engine there is, a line each."""

from collections.abc import Mapping
from typing import Final

from controller_manager.controllers.advancedstatefulset.controller import ADVANCED_STATEFUL_SET
from controller_manager.controllers.cloneset.controller import CLONE_SET
from controller_manager.controllers.deployment.controller import DEPLOYMENT
from controller_manager.controllers.disruption.controller import DISRUPTION
from controller_manager.controllers.disruption.stale import STALE_POD_DISRUPTION
from controller_manager.controllers.endpoints.controller import SERVICE_ENDPOINTS
from controller_manager.controllers.endpointslice.controller import SERVICE_ENDPOINT_SLICES
from controller_manager.controllers.endpointslicemirroring.controller import MIRRORED_ENDPOINT_SLICES
from controller_manager.controllers.ephemeralvolume.controller import EPHEMERAL_VOLUME
from controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from controller_manager.controllers.replicaset.controller import REPLICA_SET, REPLICATION_CONTROLLER
from controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from controller_manager.controllers.statefulset.controller import STATEFUL_SET
from controller_manager.controllers.storageprotection.claims import CLAIM_PROTECTION
from controller_manager.controllers.storageprotection.volumes import VOLUME_PROTECTION
from controller_manager.controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from controller_manager.engines.garbage.collector import GARBAGE_COLLECTOR
from controller_manager.engines.namespaces.engine import NAMESPACE
from controller_manager.engines.nodelifecycle.engine import NODE_LIFECYCLE
from controller_manager.engines.podgc.engine import POD_GARBAGE_COLLECTOR
from controller_manager.engines.rootca import ROOT_CA
from controller_manager.engines.tainteviction.engine import TAINT_EVICTION
from controller_manager.runtime.controller import Controller
from controller_manager.runtime.engine import Engine
from controller_manager.simulation.nodes import SIMULATED_NODES
from controller_manager.simulation.pods import SIMULATED_PODS
from controller_manager.simulation.scheduler.engine import SCHEDULER_ENGINE
from controller_manager.simulation.storage.offered_class import OFFERED_CLASS
from controller_manager.simulation.storage.provisioner import PROVISIONER

CONTROLLERS: Final[tuple[Controller, ...]] = (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    ADVANCED_STATEFUL_SET,
    CLONE_SET,
    UNITED_DEPLOYMENT,
    DISRUPTION,
    STALE_POD_DISRUPTION,
    PERSISTENT_VOLUME_BINDER,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    EPHEMERAL_VOLUME,
    PROVISIONER,
    SERVICE_ACCOUNT,
    SERVICE_ENDPOINTS,
    SERVICE_ENDPOINT_SLICES,
    MIRRORED_ENDPOINT_SLICES,
)

ENGINES: Final[tuple[Engine, ...]] = (
    GARBAGE_COLLECTOR,
    NAMESPACE,
    NODE_LIFECYCLE,
    POD_GARBAGE_COLLECTOR,
    ROOT_CA,
    SCHEDULER_ENGINE,
    SIMULATED_NODES,
    SIMULATED_PODS,
    OFFERED_CLASS,
    TAINT_EVICTION,
)

OFF_BY_DEFAULT: Final = frozenset({OFFERED_CLASS.name})
"""Run only where `--controllers` names them."""

WITH_SIMULATED_NODES: Final = frozenset(
    {SCHEDULER_ENGINE.name, SIMULATED_NODES.name, SIMULATED_PODS.name, PROVISIONER.name}
)
"""Run by default only with `--simulate-nodes`: elsewhere others do their work."""

WORKERS: Final[Mapping[str, str]] = {
    "deployment-controller": "concurrent_deployment_syncs",
    "replicaset-controller": "concurrent_replicaset_syncs",
    "replicationcontroller-controller": "concurrent_rc_syncs",
    "statefulset-controller": "concurrent_statefulset_syncs",
    "advancedstatefulset-controller": "concurrent_advancedstatefulset_syncs",
    "cloneset-controller": "concurrent_cloneset_syncs",
    "uniteddeployment-controller": "concurrent_uniteddeployment_syncs",
    "endpoints-controller": "concurrent_endpoint_syncs",
    "endpointslice-controller": "concurrent_service_endpoint_syncs",
}
"""Which flag says how many workers a controller has."""

NAMES: Final = frozenset([*(one.name for one in CONTROLLERS), *(one.name for one in ENGINES)])
