"""The `--controllers` flag selects the enabled controllers."""

import pytest

from mockube.controller_manager.catalog import NAMES
from mockube.controller_manager.config.selection import (
    DISABLED_UPSTREAM,
    UNIMPLEMENTED,
    disabled_upstream,
    is_controller_enabled,
    suggested_name,
    unimplemented_names,
    unknown_names,
)

UPSTREAM = frozenset(
    [
        "serviceaccount-token-controller",
        "endpoints-controller",
        "endpointslice-controller",
        "endpointslice-mirroring-controller",
        "replicationcontroller-controller",
        "pod-garbage-collector-controller",
        "resourcequota-controller",
        "namespace-controller",
        "serviceaccount-controller",
        "garbage-collector-controller",
        "daemonset-controller",
        "job-controller",
        "deployment-controller",
        "replicaset-controller",
        "horizontal-pod-autoscaler-controller",
        "disruption-controller",
        "statefulset-controller",
        "cronjob-controller",
        "certificatesigningrequest-signing-controller",
        "certificatesigningrequest-approving-controller",
        "certificatesigningrequest-cleaner-controller",
        "podcertificaterequest-cleaner-controller",
        "ttl-controller",
        "bootstrap-signer-controller",
        "token-cleaner-controller",
        "node-ipam-controller",
        "node-lifecycle-controller",
        "taint-eviction-controller",
        "device-taint-eviction-controller",
        "persistentvolume-binder-controller",
        "persistentvolume-attach-detach-controller",
        "persistentvolume-expander-controller",
        "clusterrole-aggregation-controller",
        "persistentvolumeclaim-protection-controller",
        "persistentvolume-protection-controller",
        "podgroup-protection-controller",
        "ttl-after-finished-controller",
        "root-ca-certificate-publisher-controller",
        "kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "ephemeral-volume-controller",
        "storageversion-garbage-collector-controller",
        "resourceclaim-controller",
        "resourcepoolstatusrequest-controller",
        "legacy-serviceaccount-token-cleaner-controller",
        "validatingadmissionpolicy-status-controller",
        "volumeattributesclass-protection-controller",
        "service-cidr-controller",
        "storage-version-migrator-controller",
        "selinux-warning-controller",
        "service-lb-controller",
        "node-route-controller",
        "cloud-node-lifecycle-controller",
    ]
)
"""All controllers of kube-controller-manager 1.36; 1.37 does not have the last three."""
KNOWN = {"deployment-controller", "replicaset-controller", "kube-scheduler"}


@pytest.mark.parametrize(
    ("wanted", "by_default", "expected"),
    [
        pytest.param("*", True, True, id="all"),
        pytest.param("*", False, False, id="all that run by default"),
        pytest.param("*,deployment-controller", False, True, id="default ones and another"),
        pytest.param("*,-deployment-controller", True, False, id="all but one"),
        pytest.param("-deployment-controller,*", True, False, id="in another order"),
        pytest.param("deployment-controller", True, True, id="one alone"),
        pytest.param("replicaset-controller", True, False, id="another one alone"),
        pytest.param("deployment", True, True, id="by its short name"),
        pytest.param("*,-deployment", True, False, id="not by its short name"),
        pytest.param("deployment-controller,-deployment-controller", True, True, id="the first counts"),
    ],
)
def test_is_enabled_follows_controllers_flag(wanted, by_default, expected):
    found = is_controller_enabled("deployment-controller", wanted.split(","), by_default=by_default)
    assert found is expected


@pytest.mark.parametrize(
    ("minor", "expected"),
    [
        pytest.param("1.36", ["a", "b"], id="names that no minor has"),
        pytest.param(
            "1.37", ["a", "b", "cloud-node-lifecycle-controller", "node-route-controller"], id="removed"
        ),
    ],
)
def test_unknown_controller_names_are_found(minor, expected):
    wanted = ["*", "-deployment", "kube-scheduler", "-route", "cloud-node-lifecycle", "a", "-b", "svm"]
    known = {*KNOWN, "storage-version-migrator-controller"}
    assert unknown_names(wanted, known, minor) == expected


def test_requested_but_missing_controllers_are_named():
    wanted = ["*", "selinux-warning-controller", "-ttl-controller", "route", "-cloud-node-lifecycle", "job"]
    assert unimplemented_names(wanted) == ["selinux-warning-controller"]
    assert unimplemented_names(["-selinux-warning-controller"]) == []
    assert disabled_upstream(wanted) == ["node-route-controller"]


def test_every_upstream_controller_name_is_known():
    assert not (DISABLED_UPSTREAM.keys() | UNIMPLEMENTED) & NAMES
    assert len(
        DISABLED_UPSTREAM.keys() | UNIMPLEMENTED | {name for name in NAMES if name in UPSTREAM}
    ) == len(UPSTREAM)


def test_controllers_that_upstream_does_not_run_either_are_listed():
    assert disabled_upstream([*UPSTREAM]) == [
        "cloud-node-lifecycle-controller",
        "node-route-controller",
        "podgroup-protection-controller",
        "resourcepoolstatusrequest-controller",
        "storageversion-garbage-collector-controller",
    ]


def test_only_names_of_controllers_that_exist_are_suggested():
    assert suggested_name("hpa", {"deployment-controller"}) == ""
    assert suggested_name("horizontalpodautoscalin", {"deployment-controller"}) == ""
    assert suggested_name("d", {"deployment-controller"}) == "", "one letter is too little"
    assert suggested_name("de", {"deployment-controller"}) == "", "two letters, too"


@pytest.mark.parametrize(
    ("unknown", "suggestion"),
    [
        ("scheduler", "kube-scheduler"),
        ("sched", "kube-scheduler"),
        ("kubescheduler", "kube-scheduler"),
        ("kube-schedular", "kube-scheduler"),
        ("kubelet", "simulated-kubelets"),
        ("hpa", "horizontal-pod-autoscaler-controller"),
        ("gc-controller", "garbage-collector-controller"),
        ("deployments", "deployment-controller"),
        ("Deployment", "deployment-controller"),
        ("node-lifecycle", "node-lifecycle-controller"),
        ("pvc-protection-controller", "persistentvolumeclaim-protection-controller"),
        ("zzzz", ""),
        ("", ""),
    ],
)
def test_nearest_controller_is_suggested(unknown, suggestion):
    assert suggested_name(unknown, NAMES) == suggestion
