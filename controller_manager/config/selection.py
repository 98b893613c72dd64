"""Which controllers run: `--controllers` as upstream reads it, by names and by the shorter names they had before."""

from collections.abc import Collection, Sequence
from typing import Final


def _gate(name: str) -> str:
    return f"the feature gate {name} is off"


_SHORT: Final = {
    "attachdetach": "persistentvolume-attach-detach-controller",
    "bootstrapsigner": "bootstrap-signer-controller",
    "cloud-node-lifecycle": "cloud-node-lifecycle-controller",
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "cronjob": "cronjob-controller",
    "csrapproving": "certificatesigningrequest-approving-controller",
    "csrcleaner": "certificatesigningrequest-cleaner-controller",
    "csrsigning": "certificatesigningrequest-signing-controller",
    "daemonset": "daemonset-controller",
    "deployment": "deployment-controller",
    "disruption": "disruption-controller",
    "endpoint": "endpoints-controller",
    "endpointslice": "endpointslice-controller",
    "endpointslicemirroring": "endpointslice-mirroring-controller",
    "ephemeral-volume": "ephemeral-volume-controller",
    "garbagecollector": "garbage-collector-controller",
    "horizontalpodautoscaling": "horizontal-pod-autoscaler-controller",
    "job": "job-controller",
    "legacy-service-account-token-cleaner": "legacy-serviceaccount-token-cleaner-controller",
    "namespace": "namespace-controller",
    "nodeipam": "node-ipam-controller",
    "nodelifecycle": "node-lifecycle-controller",
    "persistentvolume-binder": "persistentvolume-binder-controller",
    "persistentvolume-expander": "persistentvolume-expander-controller",
    "podgc": "pod-garbage-collector-controller",
    "pv-protection": "persistentvolume-protection-controller",
    "pvc-protection": "persistentvolumeclaim-protection-controller",
    "replicaset": "replicaset-controller",
    "replicationcontroller": "replicationcontroller-controller",
    "resource-claim-controller": "resourceclaim-controller",
    "resourcequota": "resourcequota-controller",
    "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
    "route": "node-route-controller",
    "service": "service-lb-controller",
    "serviceaccount": "serviceaccount-controller",
    "serviceaccount-token": "serviceaccount-token-controller",
    "statefulset": "statefulset-controller",
    "storage-version-gc": "storageversion-garbage-collector-controller",
    "tokencleaner": "token-cleaner-controller",
    "ttl": "ttl-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
    "validatingadmissionpolicy-status": "validatingadmissionpolicy-status-controller",
}

OFF: Final = {
    "cloud-node-lifecycle-controller": "it needs a cloud",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": _gate("ClusterTrustBundle"),
    "node-route-controller": "it needs a cloud",
    "podcertificaterequest-cleaner-controller": _gate("PodCertificateRequest"),
    "podgroup-protection-controller": _gate("GenericWorkload"),
    "resourcepoolstatusrequest-controller": _gate("DRAResourcePoolStatus"),
    "storage-version-migrator-controller": _gate("StorageVersionMigrator"),
    "storageversion-garbage-collector-controller": _gate("StorageVersionAPI"),
}
"""Controllers of kube-controller-manager 1.36 that upstream does not run either, even if named, and why."""

MISSING: Final = frozenset({"selinux-warning-controller"})
"""Those that upstream runs and that are not here."""

ALL_CONTROLLERS: Final = "*"


def unknown_names(selection: Sequence[str], controller_names: Collection[str]) -> Sequence[str]:
    """Names that no controller has, neither here nor upstream."""
    names = {_full_name(word.removeprefix("-")) for word in selection} - {ALL_CONTROLLERS}
    return sorted(names - OFF.keys() - MISSING - set(controller_names))


def missing_names(selection: Sequence[str]) -> Sequence[str]:
    """Controllers that are named, and are not implemented though upstream runs them."""
    return sorted(MISSING & {*selection})


def controllers_run_nowhere(selection: Sequence[str]) -> Sequence[str]:
    """Controllers that are named, and run neither here nor upstream."""
    return sorted({_full_name(word) for word in selection} & OFF.keys())


def is_wanted(name: str, selection: Sequence[str], *, by_default: bool) -> bool:
    """The first that names it decides; only where none does, the star."""
    for word in selection:
        if _full_name(word.removeprefix("-")) == name:
            return not word.startswith("-")
    return by_default and ALL_CONTROLLERS in selection


def _full_name(name: str) -> str:
    return _SHORT.get(name, name)
