"""The list of all controllers and runnables."""

from collections.abc import Collection, Mapping
from typing import Final

from mockube.controller_manager.client.client import AnyResource
from mockube.controller_manager.config.kruise_gates import PREPARING_UPDATE_AS_UPDATE
from mockube.controller_manager.config.selection import PACKS
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.control.runnable import Runnable
from mockube.controller_manager.controllers.attachdetach.controller import ATTACH_DETACH
from mockube.controller_manager.controllers.bootstrap.controller import BOOTSTRAP_SIGNER, TOKEN_CLEANER
from mockube.controller_manager.controllers.certificates.approving import CSR_APPROVING
from mockube.controller_manager.controllers.certificates.cleaner import CSR_CLEANER, POD_REQUEST_CLEANER
from mockube.controller_manager.controllers.certificates.signing import CSR_SIGNING
from mockube.controller_manager.controllers.clusterroleaggregation.controller import CLUSTER_ROLE_AGGREGATION
from mockube.controller_manager.controllers.cronjob.controller import CRON_JOB
from mockube.controller_manager.controllers.csi.attacher import ATTACHER
from mockube.controller_manager.controllers.csi.provisioner import PROVISIONER, SIMULATED_STORAGE_CLASS
from mockube.controller_manager.controllers.csi.resizer import NODE_RESIZER, RESIZER
from mockube.controller_manager.controllers.daemonset.controller import DAEMON_SET
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.devicetainteviction.rules import DEVICE_TAINT_EVICTION
from mockube.controller_manager.controllers.disruption.controller import DISRUPTION
from mockube.controller_manager.controllers.disruption.stale import STALE_POD_DISRUPTION
from mockube.controller_manager.controllers.endpoints.controller import SERVICE_ENDPOINTS
from mockube.controller_manager.controllers.endpointslice.controller import SERVICE_ENDPOINT_SLICES
from mockube.controller_manager.controllers.endpointslicemirroring.controller import MIRRORED_ENDPOINT_SLICES
from mockube.controller_manager.controllers.ephemeralvolume.controller import EPHEMERAL_VOLUME
from mockube.controller_manager.controllers.garbagecollector.collector import GARBAGE_COLLECTOR
from mockube.controller_manager.controllers.horizontalpodautoscaler.controller import (
    HORIZONTAL_POD_AUTOSCALER,
)
from mockube.controller_manager.controllers.job.controller import JOB
from mockube.controller_manager.controllers.job.orphans import JOB_ORPHAN_PODS
from mockube.controller_manager.controllers.kruise.advancedstatefulset.controller import (
    ADVANCED_STATEFUL_SET,
    ADVANCED_STATEFUL_SET_COUNTING_PREPARED,
)
from mockube.controller_manager.controllers.kruise.cloneset.controller import (
    CLONE_SET,
    CLONE_SET_COUNTING_PREPARED,
)
from mockube.controller_manager.controllers.kruise.containerlaunchpriority.controller import (
    CONTAINER_LAUNCH_PRIORITY,
)
from mockube.controller_manager.controllers.kruise.uniteddeployment.controller import UNITED_DEPLOYMENT
from mockube.controller_manager.controllers.legacytokencleaner.controller import LEGACY_TOKEN_CLEANER
from mockube.controller_manager.controllers.namespace.controller import NAMESPACE
from mockube.controller_manager.controllers.nodeipam.controller import NODE_IPAM
from mockube.controller_manager.controllers.nodelifecycle.controller import NODE_LIFECYCLE
from mockube.controller_manager.controllers.nodettl.controller import NODE_TTL
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from mockube.controller_manager.controllers.podgc.controller import POD_GARBAGE_COLLECTOR
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET, REPLICATION_CONTROLLER
from mockube.controller_manager.controllers.resourceclaim.controller import RESOURCE_CLAIM
from mockube.controller_manager.controllers.resourcequota.controller import RESOURCE_QUOTA
from mockube.controller_manager.controllers.rootca.controller import ROOT_CA
from mockube.controller_manager.controllers.rootca.trust_bundle import TRUST_BUNDLE
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT
from mockube.controller_manager.controllers.serviceaccounttoken.controller import SERVICE_ACCOUNT_TOKENS
from mockube.controller_manager.controllers.servicecidr.controller import SERVICE_CIDR
from mockube.controller_manager.controllers.serviceloadbalancer.controller import SERVICE_LOAD_BALANCERS
from mockube.controller_manager.controllers.statefulset.controller import STATEFUL_SET
from mockube.controller_manager.controllers.storageprotection.controller import (
    ATTRIBUTES_CLASS_PROTECTION,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
)
from mockube.controller_manager.controllers.storageversionmigrator.controller import (
    STORAGE_VERSION_MIGRATOR,
)
from mockube.controller_manager.controllers.tainteviction.controller import TAINT_EVICTION
from mockube.controller_manager.controllers.ttlafterfinished.controller import TTL_AFTER_FINISHED
from mockube.controller_manager.controllers.validatingadmissionpolicystatus.controller import (
    VALIDATING_ADMISSION_POLICY_STATUS,
)
from mockube.controller_manager.controllers.volumeexpand.controller import EXPAND
from mockube.controller_manager.kubelet.kubelets import SIMULATED_KUBELETS
from mockube.controller_manager.kubelet.nodes import SIMULATED_NODES
from mockube.controller_manager.kubelet.pods import SIMULATED_PODS
from mockube.controller_manager.scheduler.scheduler import KUBE_SCHEDULER

CONTROLLERS: Final[tuple[Controller, ...]] = (
    DEPLOYMENT,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    CRON_JOB,
    DAEMON_SET,
    JOB,
    JOB_ORPHAN_PODS,
    TTL_AFTER_FINISHED,
    ADVANCED_STATEFUL_SET,
    CLONE_SET,
    UNITED_DEPLOYMENT,
    CONTAINER_LAUNCH_PRIORITY,
    DISRUPTION,
    STALE_POD_DISRUPTION,
    PERSISTENT_VOLUME_BINDER,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    ATTRIBUTES_CLASS_PROTECTION,
    EPHEMERAL_VOLUME,
    ATTACH_DETACH,
    ATTACHER,
    EXPAND,
    NODE_TTL,
    PROVISIONER,
    RESIZER,
    NODE_RESIZER,
    SERVICE_ACCOUNT,
    CLUSTER_ROLE_AGGREGATION,
    SERVICE_CIDR,
    SERVICE_ENDPOINTS,
    SERVICE_ENDPOINT_SLICES,
    MIRRORED_ENDPOINT_SLICES,
    BOOTSTRAP_SIGNER,
    TOKEN_CLEANER,
)

RUNNABLES: Final[tuple[Runnable, ...]] = (
    CSR_APPROVING,
    CSR_CLEANER,
    CSR_SIGNING,
    DEVICE_TAINT_EVICTION,
    GARBAGE_COLLECTOR,
    HORIZONTAL_POD_AUTOSCALER,
    LEGACY_TOKEN_CLEANER,
    NAMESPACE,
    NODE_IPAM,
    NODE_LIFECYCLE,
    POD_GARBAGE_COLLECTOR,
    POD_REQUEST_CLEANER,
    ROOT_CA,
    TRUST_BUNDLE,
    STORAGE_VERSION_MIGRATOR,
    SERVICE_ACCOUNT_TOKENS,
    RESOURCE_CLAIM,
    RESOURCE_QUOTA,
    KUBE_SCHEDULER,
    SIMULATED_NODES,
    SIMULATED_PODS,
    SIMULATED_KUBELETS,
    SIMULATED_STORAGE_CLASS,
    SERVICE_LOAD_BALANCERS,
    TAINT_EVICTION,
    VALIDATING_ADMISSION_POLICY_STATUS,
)

WITH_SIMULATED_NODES: Final = frozenset(
    {
        KUBE_SCHEDULER.name,
        SIMULATED_NODES.name,
        SIMULATED_PODS.name,
        SIMULATED_KUBELETS.name,
        PROVISIONER.name,
        ATTACHER.name,
        RESIZER.name,
        NODE_RESIZER.name,
        SIMULATED_STORAGE_CLASS.name,
        SERVICE_LOAD_BALANCERS.name,
    }
)
"""Controllers and runnables that run by default only with `--simulate-nodes`: other clusters have components for this."""

DISABLED_BY_DEFAULT: Final = frozenset({BOOTSTRAP_SIGNER.name, TOKEN_CLEANER.name})
"""Controllers that run only if `--controllers` names them, as upstream."""

_COUNTING_PREPARED: Final = (ADVANCED_STATEFUL_SET_COUNTING_PREPARED, CLONE_SET_COUNTING_PREPARED)
GATED: Final[Mapping[str, Mapping[str, Controller]]] = {
    PREPARING_UPDATE_AS_UPDATE: {controller.name: controller for controller in _COUNTING_PREPARED}
}
"""The controllers that OpenKruise's feature gates replace, by gate and name."""

WORKERS: Final[Mapping[str, str]] = {
    "deployment-controller": "concurrent_deployment_syncs",
    "replicaset-controller": "concurrent_replicaset_syncs",
    "replicationcontroller-controller": "concurrent_rc_syncs",
    "statefulset-controller": "concurrent_statefulset_syncs",
    "daemonset-controller": "concurrent_daemonset_syncs",
    "cronjob-controller": "concurrent_cron_job_syncs",
    "job-controller": "concurrent_job_syncs",
    "disruption-controller": "concurrent_disruption_syncs",
    "ttl-after-finished-controller": "concurrent_ttl_after_finished_syncs",
    "advancedstatefulset-controller": "concurrent_advancedstatefulset_syncs",
    "cloneset-controller": "concurrent_cloneset_syncs",
    "uniteddeployment-controller": "concurrent_uniteddeployment_syncs",
    "endpoints-controller": "concurrent_endpoint_syncs",
    "endpointslice-controller": "concurrent_service_endpoint_syncs",
}
"""The flag that sets each controller's number of workers."""

NAMES: Final = frozenset(
    [*(controller.name for controller in CONTROLLERS), *(runnable.name for runnable in RUNNABLES)]
)


def with_gates(controller: Controller, gates: Collection[str]) -> Controller:
    """Return the controller, or the one that replaces it if these feature gates are on."""
    for gate in gates:
        controller = GATED.get(gate, {}).get(controller.name, controller)
    return controller


def runs_by_default(name: str, *, simulates: bool, packs: Collection[str]) -> bool:
    """Return whether `*` in `--controllers` includes a controller; `simulates` is whether nodes are simulated."""
    if name in DISABLED_BY_DEFAULT or (name in WITH_SIMULATED_NODES and not simulates):
        return False
    return not any(name in names for pack, names in PACKS.items() if pack not in packs)


def rows_of_absent_packs(packs: Collection[str]) -> frozenset[AnyResource]:
    """Return the rows of kinds whose pack is off."""
    absent = {name for pack, names in PACKS.items() if pack not in packs for name in names}
    return frozenset(
        row for controller in CONTROLLERS if controller.name in absent for row in controller.needs
    )
