"""The former names of controllers in `--controllers`, those of kube-controller-manager's `KCMControllerAliases`."""

import pytest

from mockube.controller_manager.config.selection import is_controller_enabled

SAME = [
    "cronjob",
    "daemonset",
    "deployment",
    "disruption",
    "endpointslice",
    "ephemeral-volume",
    "job",
    "namespace",
    "persistentvolume-binder",
    "persistentvolume-expander",
    "replicaset",
    "replicationcontroller",
    "resourcequota",
    "serviceaccount",
    "serviceaccount-token",
    "statefulset",
    "ttl",
    "ttl-after-finished",
    "clusterrole-aggregation",
    "cloud-node-lifecycle",
    "validatingadmissionpolicy-status",
]
"""The names that are followed by -controller today."""
OTHERS = {
    "attachdetach": "persistentvolume-attach-detach",
    "bootstrapsigner": "bootstrap-signer",
    "csrapproving": "certificatesigningrequest-approving",
    "csrcleaner": "certificatesigningrequest-cleaner",
    "csrsigning": "certificatesigningrequest-signing",
    "endpoint": "endpoints",
    "endpointslicemirroring": "endpointslice-mirroring",
    "garbagecollector": "garbage-collector",
    "horizontalpodautoscaling": "horizontal-pod-autoscaler",
    "legacy-service-account-token-cleaner": "legacy-serviceaccount-token-cleaner",
    "nodeipam": "node-ipam",
    "nodelifecycle": "node-lifecycle",
    "podgc": "pod-garbage-collector",
    "pv-protection": "persistentvolume-protection",
    "pvc-protection": "persistentvolumeclaim-protection",
    "resource-claim-controller": "resourceclaim",
    "root-ca-cert-publisher": "root-ca-certificate-publisher",
    "route": "node-route",
    "service": "service-lb",
    "storage-version-gc": "storageversion-garbage-collector",
    "svm": "storage-version-migrator",
    "tokencleaner": "token-cleaner",
}


@pytest.mark.parametrize(("alias", "name"), [*zip(SAME, SAME, strict=True), *OTHERS.items()])
def test_former_name_selects_the_controller(alias, name):
    full_name = f"{name}-controller"
    assert is_controller_enabled(full_name, [alias], by_default=False)
    assert not is_controller_enabled(full_name, ["*", f"-{alias}"], by_default=True)
