"""Controllers use the service accounts that upstream binds roles to."""

import pytest

from mockube.controller_manager import catalog
from mockube.controller_manager.config.selection import PACKS

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


def _is_builtin(resource):
    return resource.group.endswith(".k8s.io")


OF_CUSTOM_KINDS = frozenset(
    one.name for one in catalog.CONTROLLERS if any(not _is_builtin(kind) for kind in one.needs)
)
"""No bootstrap role has permissions for them."""
AS_THE_PROCESS = frozenset({catalog.SERVICE_ACCOUNT_TOKENS.name})
"""As upstream: `system:kube-controller-manager` may write Secrets."""
WITHOUT_ROLE = (
    catalog.WITH_SIMULATED_NODES - {catalog.SERVICE_LOAD_BALANCERS.name} | OF_CUSTOM_KINDS | AS_THE_PROCESS
)


@pytest.mark.parametrize("one", [*catalog.CONTROLLERS, *catalog.RUNNABLES], ids=lambda one: one.name)
def test_controllers_use_service_accounts_of_bindings(one):
    assert one.service_account in ACCOUNTS or one.name in WITHOUT_ROLE


@pytest.mark.parametrize("name", sorted(WITHOUT_ROLE))
def test_simulating_controllers_have_no_service_account(name):
    (one,) = [one for one in [*catalog.CONTROLLERS, *catalog.RUNNABLES] if one.name == name]
    assert one.service_account == ""


@pytest.mark.parametrize(
    ("name", "simulates", "packs", "expected"),
    [
        ("token-cleaner-controller", True, (), False),
        ("bootstrap-signer-controller", True, (), False),
        ("kube-scheduler", True, (), True),
        ("kube-scheduler", False, (), False),
        ("legacy-serviceaccount-token-cleaner-controller", False, (), True),
        ("cloneset-controller", True, (), False),
        ("uniteddeployment-controller", True, (), False),
        ("advancedstatefulset-controller", True, ("kruise",), True),
    ],
)
def test_default_controllers(name, simulates, packs, expected):
    assert catalog.runs_by_default(name, simulates=simulates, packs=packs) is expected


def test_kinds_of_absent_packs_have_no_rows():
    assert {row.plural for row in catalog.rows_of_absent_packs(())} == {
        "clonesets",
        "statefulsets",
        "uniteddeployments",
    }
    assert {row.group for row in catalog.rows_of_absent_packs(())} == {"apps.kruise.io"}
    assert catalog.rows_of_absent_packs(("kruise",)) == frozenset()


def test_controllers_with_needs_of_other_projects_belong_to_packs():
    of_packs = {name for names in PACKS.values() for name in names}
    assert of_packs == {
        one.name
        for one in catalog.CONTROLLERS
        if any(need.group.endswith(".kruise.io") for need in one.needs)
    }
