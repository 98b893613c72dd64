"""Select the controllers to run by `--controllers`: upstream's rules, names, and aliases from before the names changed."""

from collections.abc import Collection, Sequence
from typing import Final

from mockube.apimachinery.schema import minors
from mockube.component_base.suggestions import nearest


def _gate(name: str) -> str:
    return f"the feature gate {name} is off"


_ALIASES: Final = {
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
    "svm": "storage-version-migrator-controller",
    "tokencleaner": "token-cleaner-controller",
    "ttl": "ttl-controller",
    "ttl-after-finished": "ttl-after-finished-controller",
    "validatingadmissionpolicy-status": "validatingadmissionpolicy-status-controller",
}
"""The names by former name, upstream's `KCMControllerAliases`."""

DISABLED_UPSTREAM: Final = {
    "cloud-node-lifecycle-controller": "it needs a cloud",
    "node-route-controller": "it needs a cloud",
    "podgroup-protection-controller": _gate("GenericWorkload"),
    "resourcepoolstatusrequest-controller": _gate("DRAResourcePoolStatus"),
    "storageversion-garbage-collector-controller": _gate("StorageVersionAPI"),
}
"""Why kube-controller-manager does not run these controllers either, even if `--controllers` names them."""

_REMOVED_IN: Final = "1.37"
_REMOVED: Final = frozenset({"cloud-node-lifecycle-controller", "node-route-controller"})
"""Controllers that did nothing and that newer minors do not know. Theirs for load balancers is simulated here."""

UNIMPLEMENTED: Final = frozenset({"selinux-warning-controller"})
"""Controllers that upstream runs if `--controllers` names them, and mockube does not implement."""

ALL_CONTROLLERS: Final = "*"
_SUFFIX: Final = "-controller"
_MIN_PREFIX: Final = 3
"""The length from which the beginning of a word in a name suggests the name."""


def unknown_names(selection: Sequence[str], controller_names: Collection[str], minor: str) -> Sequence[str]:
    """Return the selected names that are no controllers, neither here nor upstream in the minor release."""
    names = {_full_name(entry.removeprefix("-")) for entry in selection} - {ALL_CONTROLLERS}
    removed = _REMOVED if not minors.is_before(minor, _REMOVED_IN) else frozenset()
    return sorted(names - (DISABLED_UPSTREAM.keys() - removed) - UNIMPLEMENTED - set(controller_names))


def suggested_name(unknown: str, controller_names: Collection[str]) -> str:
    """Return the controller that an unknown name most likely stands for; "" if none is similar.

    `hpa` stands for horizontal-pod-autoscaler, `scheduler` and `sched` for kube-scheduler, `deployments` for deployment.
    """
    word = unknown.lower().removesuffix(_SUFFIX)
    by_short_name = {name.removesuffix(_SUFFIX): name for name in controller_names}
    by_short_name |= {alias: name for alias, name in _ALIASES.items() if name in controller_names}
    by_initials = {_initials(short): name for short, name in by_short_name.items() if "-" in short}
    beginnings = {
        name
        for short, name in by_short_name.items()
        if len(word) >= _MIN_PREFIX and any(part.startswith(word) for part in short.split("-"))
    }
    if word in by_initials:
        return by_initials[word]
    return beginnings.pop() if len(beginnings) == 1 else by_short_name.get(nearest(word, by_short_name), "")


def _initials(name: str) -> str:
    return "".join(part[:1] for part in name.split("-"))


def unimplemented_names(selection: Sequence[str]) -> Sequence[str]:
    """Return the selected controllers that upstream runs and mockube does not implement."""
    return sorted(UNIMPLEMENTED & {*selection})


def disabled_upstream(selection: Sequence[str]) -> Sequence[str]:
    """Return the selected controllers that upstream does not run either."""
    return sorted({_full_name(entry) for entry in selection} & DISABLED_UPSTREAM.keys())


def is_controller_enabled(name: str, selection: Sequence[str], *, by_default: bool) -> bool:
    """Return whether a controller runs: the first entry with its name decides, then the entry `*` and `by_default`."""
    for entry in selection:
        if _full_name(entry.removeprefix("-")) == name:
            return not entry.startswith("-")
    return by_default and ALL_CONTROLLERS in selection


def _full_name(name: str) -> str:
    return _ALIASES.get(name, name)
