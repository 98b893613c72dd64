"""Which controllers run: `--controllers` as upstream reads it, by names and by the shorter names they had before."""

from collections.abc import Collection, Sequence
from typing import Final

_SHORT: Final = {
    "attachdetach": "persistentvolume-attach-detach-controller",
    "bootstrapsigner": "bootstrap-signer-controller",
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

UPSTREAM: Final = frozenset(_SHORT.values()) | {
    "cloud-node-lifecycle-controller",
    "device-taint-eviction-controller",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "node-route-controller",
    "podcertificaterequest-cleaner-controller",
    "selinux-warning-controller",
    "service-cidr-controller",
    "storage-version-migrator-controller",
    "taint-eviction-controller",
    "volumeattributesclass-protection-controller",
}
"""The controllers of kube-controller-manager 1.36."""

EVERY: Final = "*"


def unknown(wanted: Sequence[str], known: Collection[str]) -> Sequence[str]:
    """Names that no controller has, neither here nor upstream."""
    names = {_full(word.removeprefix("-")) for word in wanted} - {EVERY}
    return sorted(names - UPSTREAM - set(known))


def missing(wanted: Sequence[str], known: Collection[str]) -> Sequence[str]:
    """Controllers of upstream that are asked for by name and are not here."""
    return sorted({_full(word) for word in wanted} & (UPSTREAM - set(known)))


def is_wanted(name: str, wanted: Sequence[str], *, by_default: bool) -> bool:
    """The first that names it decides; only where none does, the star."""
    for word in wanted:
        if _full(word.removeprefix("-")) == name:
            return not word.startswith("-")
    return by_default and EVERY in wanted


def _full(name: str) -> str:
    return _SHORT.get(name, name)
