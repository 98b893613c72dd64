"""Controllers use the service accounts that upstream binds roles to."""

import pytest

from mockube.controller_manager import catalog

ACCOUNTS = frozenset(
    {
        "attachdetach-controller",
        "bootstrap-signer",
        "certificate-controller",
        "clusterrole-aggregation-controller",
        "deployment-controller",
        "device-taint-eviction-controller",
        "disruption-controller",
        "endpoint-controller",
        "endpointslice-controller",
        "endpointslicemirroring-controller",
        "ephemeral-volume-controller",
        "expand-controller",
        "generic-garbage-collector",
        "kube-apiserver-serving-clustertrustbundle-publisher",
        "namespace-controller",
        "node-controller",
        "persistent-volume-binder",
        "pod-garbage-collector",
        "podcertificaterequestcleaner",
        "pv-protection-controller",
        "pvc-protection-controller",
        "replicaset-controller",
        "replication-controller",
        "resource-claim-controller",
        "resourcequota-controller",
        "root-ca-cert-publisher",
        "service-account-controller",
        "statefulset-controller",
        "storage-version-migrator-controller",
        "job-controller",
        "legacy-service-account-token-cleaner",
        "ttl-after-finished-controller",
        "cronjob-controller",
        "daemon-set-controller",
        "horizontal-pod-autoscaler",
        "service-cidrs-controller",
        "service-controller",
        "token-cleaner",
        "ttl-controller",
        "validatingadmissionpolicy-status-controller",
        "volumeattributesclass-protection-controller",
    }
)
"""Service accounts that kube-apiserver's bootstrap binds a role to, `system:controller:NAME`."""


AS_THE_PROCESS = frozenset({catalog.SERVICE_ACCOUNT_TOKENS.name})
"""As upstream: `system:kube-controller-manager` may write Secrets."""
WITHOUT_ROLE = catalog.WITH_SIMULATED_NODES - {catalog.SERVICE_LOAD_BALANCERS.name} | AS_THE_PROCESS


@pytest.mark.parametrize("one", [*catalog.CONTROLLERS, *catalog.RUNNABLES], ids=lambda one: one.name)
def test_controllers_use_service_accounts_of_bindings(one):
    assert one.service_account in ACCOUNTS or one.name in WITHOUT_ROLE


@pytest.mark.parametrize("name", sorted(WITHOUT_ROLE))
def test_simulating_controllers_have_no_service_account(name):
    (one,) = [one for one in [*catalog.CONTROLLERS, *catalog.RUNNABLES] if one.name == name]
    assert one.service_account == ""


@pytest.mark.parametrize(
    ("name", "simulates", "expected"),
    [
        ("token-cleaner-controller", True, False),
        ("bootstrap-signer-controller", True, False),
        ("kube-scheduler", True, True),
        ("kube-scheduler", False, False),
        ("legacy-serviceaccount-token-cleaner-controller", False, True),
    ],
)
def test_default_controllers(name, simulates, expected):
    assert catalog.runs_by_default(name, simulates=simulates) is expected


def test_storage_class_is_not_created_where_kubeadm_has_made_the_cluster():
    name = catalog.SIMULATED_STORAGE_CLASS.name
    assert catalog.runs_by_default(name, simulates=True)
    assert not catalog.runs_by_default(name, simulates=True, is_installed=True)


def test_controllers_need_only_kinds_of_kubernetes():
    """Controllers of other kinds belong to packs."""
    needs = [need for controller in catalog.CONTROLLERS for need in controller.needs]
    assert [need for need in needs if not need.group.endswith(".k8s.io")] == []
