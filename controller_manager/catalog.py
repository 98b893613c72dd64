"""The list of all controllers and runnables."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mockube.component_base.packs import PackError, load_pack, parts_of

from .components import KUBE_SCHEDULER, SERVICE_PUBLISHER, SIMULATED_KUBELETS, SIMULATED_NODES, SIMULATED_PODS
from .control.controller import Controller
from .control.runnable import Runnable
from .controllers.attachdetach.controller import ATTACH_DETACH
from .controllers.bootstrap.controller import BOOTSTRAP_SIGNER, TOKEN_CLEANER
from .controllers.certificates.approving import CSR_APPROVING
from .controllers.certificates.cleaner import CSR_CLEANER, POD_REQUEST_CLEANER
from .controllers.certificates.signing import CSR_SIGNING
from .controllers.clusterroleaggregation.controller import CLUSTER_ROLE_AGGREGATION
from .controllers.cronjob.controller import CRON_JOB
from .controllers.csi.attacher import ATTACHER
from .controllers.csi.provisioner import PROVISIONER, SIMULATED_STORAGE_CLASS
from .controllers.csi.resizer import NODE_RESIZER, RESIZER
from .controllers.daemonset.controller import DAEMON_SET
from .controllers.deployment.controller import DEPLOYMENT
from .controllers.devicetainteviction.rules import DEVICE_TAINT_EVICTION
from .controllers.disruption.controller import DISRUPTION
from .controllers.disruption.stale import STALE_POD_DISRUPTION
from .controllers.endpoints.controller import SERVICE_ENDPOINTS
from .controllers.endpointslice.controller import SERVICE_ENDPOINT_SLICES
from .controllers.endpointslicemirroring.controller import MIRRORED_ENDPOINT_SLICES
from .controllers.ephemeralvolume.controller import EPHEMERAL_VOLUME
from .controllers.garbagecollector.collector import GARBAGE_COLLECTOR
from .controllers.horizontalpodautoscaler.controller import HORIZONTAL_POD_AUTOSCALER
from .controllers.job.controller import JOB
from .controllers.job.orphans import JOB_ORPHAN_PODS
from .controllers.legacytokencleaner.controller import LEGACY_TOKEN_CLEANER
from .controllers.namespace.controller import NAMESPACE
from .controllers.nodeipam.controller import NODE_IPAM
from .controllers.nodelifecycle.controller import NODE_LIFECYCLE
from .controllers.nodettl.controller import NODE_TTL
from .controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from .controllers.podgc.controller import POD_GARBAGE_COLLECTOR
from .controllers.replicaset.controller import REPLICA_SET, REPLICATION_CONTROLLER
from .controllers.resourceclaim.controller import RESOURCE_CLAIM
from .controllers.resourcequota.controller import RESOURCE_QUOTA
from .controllers.rootca.controller import ROOT_CA
from .controllers.rootca.trust_bundle import TRUST_BUNDLE
from .controllers.serviceaccount.controller import SERVICE_ACCOUNT
from .controllers.serviceaccounttoken.controller import SERVICE_ACCOUNT_TOKENS
from .controllers.servicecidr.controller import SERVICE_CIDR
from .controllers.serviceloadbalancer.controller import SERVICE_LOAD_BALANCERS
from .controllers.statefulset.controller import STATEFUL_SET
from .controllers.storageprotection.controller import (
    ATTRIBUTES_CLASS_PROTECTION,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
)
from .controllers.storageversionmigrator.controller import STORAGE_VERSION_MIGRATOR
from .controllers.tainteviction.controller import TAINT_EVICTION
from .controllers.ttlafterfinished.controller import TTL_AFTER_FINISHED
from .controllers.validatingadmissionpolicystatus.controller import VALIDATING_ADMISSION_POLICY_STATUS
from .controllers.volumeexpand.controller import EXPAND

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
    SERVICE_PUBLISHER,
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
        SERVICE_PUBLISHER.name,
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
    "endpoints-controller": "concurrent_endpoint_syncs",
    "endpointslice-controller": "concurrent_service_endpoint_syncs",
}
"""The flag that sets each controller's number of workers."""

NAMES: Final = frozenset(
    [*(controller.name for controller in CONTROLLERS), *(runnable.name for runnable in RUNNABLES)]
)


KUBE_CONTROLLER_MANAGER: Final = "kube-controller-manager"


def parts_of_program(program: str) -> frozenset[str]:
    """Return the names of what a program of Kubernetes' control plane contains; the rest are programs of others, and the nodes."""
    return (
        frozenset({KUBE_SCHEDULER.name}) if program == KUBE_SCHEDULER.name else NAMES - WITH_SIMULATED_NODES
    )


class PackControllers(NamedTuple):
    """The controllers and runnables of packs."""

    controllers: tuple[Controller, ...]
    runnables: tuple[Runnable, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset({*(each.name for each in self.controllers), *(each.name for each in self.runnables)})


def names_help(packs: Iterable[str]) -> str:
    """Return the part of the help that lists the names for `--controllers`."""
    names = sorted({*NAMES, *controllers_of_packs(packs, {}).names})
    return "\n".join(("Names for --controllers:", *(f"  {name}{_when_it_runs(name)}" for name in names), ""))


def _when_it_runs(name: str) -> str:
    if name in DISABLED_BY_DEFAULT:
        return " (disabled by default)"
    return " (by default only with simulated nodes)" if name in WITH_SIMULATED_NODES else ""


def controllers_of_packs(names: Iterable[str], options: Mapping[str, Any]) -> PackControllers:
    """Return the controllers of packs; `options` are the values of their flags. Raise PackError if they are invalid."""
    controllers: list[Controller] = []
    runnables: list[Runnable] = []
    owners = dict.fromkeys(NAMES, "Kubernetes")
    for pack in names:
        for part in _parts(pack, options.get(pack)):
            if part.name in owners:
                raise PackError(
                    f'pack "{pack}": its controller {part.name} has the name of one of {owners[part.name]}'
                )
            owners[part.name] = f'pack "{pack}"'
            if isinstance(part, Controller):
                controllers.append(part)
            else:
                runnables.append(part)
    return PackControllers(tuple(controllers), tuple(runnables))


def _parts(pack: str, options: Any) -> Iterator[Controller | Runnable]:
    found = load_pack(pack)
    values = found.options() if options is None else options
    return (_checked(pack, part) for part in parts_of(pack, "controllers", found.controllers, values))


def _checked(pack: str, part: object) -> Controller | Runnable:
    if not isinstance(part, Controller | Runnable):
        raise PackError(f'pack "{pack}": {part!r} of its controllers is neither a Controller nor a Runnable')
    if part.service_account:
        raise PackError(
            f'pack "{pack}": its controller {part.name} has the service account {part.service_account}: it must be "",'
            " because the roles of a pack are those of the process"
        )
    return part


def runs_by_default(name: str, *, simulates: bool, is_installed: bool = False) -> bool:
    """Return whether `*` in `--controllers` includes a controller.

    `simulates` is whether nodes are simulated, `is_installed` whether kubeadm has made the cluster: it creates the storage class once.
    """
    if is_installed and name == SIMULATED_STORAGE_CLASS.name:
        return False
    return name not in DISABLED_BY_DEFAULT and (simulates or name not in WITH_SIMULATED_NODES)
