"""The catalog has every controller, with the service account that upstream binds a role to."""

import importlib
import pkgutil

import pytest

from mockube.controller_manager import catalog, components, controllers
from mockube.controller_manager.config.settings import Controllers
from mockube.controller_manager.control.controller import Controller
from mockube.controller_manager.control.runnable import Runnable

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


SIMULATING = frozenset(
    {
        "kube-scheduler",
        "service-lb-controller",
        "service-publisher",
        "simulated-kubelets",
        "simulated-nodes",
        "simulated-pods",
        "simulated-attacher",
        "simulated-provisioner",
        "simulated-resizer",
        "simulated-file-system-resizer",
        "simulated-storage-class",
    }
)
"""What stands for programs that another cluster has."""
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


OF_RUNNABLES = frozenset(
    {
        "concurrent_device_taint_eviction_syncs",
        "concurrent_gc_syncs",
        "concurrent_horizontal_pod_autoscaler_syncs",
        "concurrent_namespace_syncs",
        "concurrent_resource_quota_syncs",
        "concurrent_resourceclaim_syncs",
        "concurrent_validating_admission_policy_status_syncs",
    }
)
"""The flags that a runnable reads itself."""


def test_catalog_has_every_controller_of_its_folder():
    names = (each.name for each in pkgutil.walk_packages(controllers.__path__, f"{controllers.__name__}."))
    modules = [components, *map(importlib.import_module, names)]
    found = {
        part.name
        for module in modules
        for part in vars(module).values()
        if isinstance(part, Controller | Runnable)
    }
    assert {part.name for part in (*catalog.CONTROLLERS, *catalog.RUNNABLES)} == found


def test_each_flag_of_concurrent_syncs_sets_the_workers_of_a_controller():
    flags = {name for name in Controllers.__struct_fields__ if name.startswith("concurrent_")}
    of_runnables = {name for name in flags if name not in catalog.WORKERS.values()}
    assert of_runnables == OF_RUNNABLES
    assert catalog.WORKERS.keys() <= {controller.name for controller in catalog.CONTROLLERS}


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


def test_controllers_that_simulate_run_by_default_only_with_simulated_nodes():
    names = {name for name in catalog.NAMES if not catalog.runs_by_default(name, simulates=False)}
    assert names == SIMULATING | {"bootstrap-signer-controller", "token-cleaner-controller"}
    help_lines = catalog.names_help(()).splitlines()
    simulated = {
        line.split()[0] for line in help_lines if line.endswith("(by default only with simulated nodes)")
    }
    disabled = {line.split()[0] for line in help_lines if line.endswith("(disabled by default)")}
    assert (simulated, disabled) == (SIMULATING, names - SIMULATING)


@pytest.mark.parametrize("program", ["kube-scheduler", "kube-controller-manager"])
def test_each_program_has_its_own_parts(program):
    parts = catalog.parts_of_program(program)
    assert ("kube-scheduler" in parts) is (program == "kube-scheduler")
    assert ("deployment-controller" in parts) is (program == "kube-controller-manager")
    assert not parts & (SIMULATING - {"kube-scheduler"})


def test_storage_class_is_not_created_where_kubeadm_has_made_the_cluster():
    name = catalog.SIMULATED_STORAGE_CLASS.name
    assert catalog.runs_by_default(name, simulates=True)
    assert not catalog.runs_by_default(name, simulates=True, is_installed=True)


def test_controllers_need_only_kinds_of_kubernetes():
    """Controllers of other kinds belong to packs."""
    needs = [need for controller in catalog.CONTROLLERS for need in controller.needs]
    assert [need for need in needs if not need.group.endswith(".k8s.io")] == []


def test_events_are_of_the_component_or_of_the_account():
    assert (catalog.DAEMON_SET.service_account, catalog.DAEMON_SET.event_source) == (
        "daemon-set-controller",
        "daemonset-controller",
    )
    assert catalog.DEPLOYMENT.event_source == "deployment-controller"
