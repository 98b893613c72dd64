"""Printer columns of the smaller groups: for each kind an object and its cells."""

import pytest

from tests.support.server.printed_columns import printed_cells, time_ago

STORAGE = "storage.k8s.io"
RBAC = "rbac.authorization.k8s.io"
CERTIFICATES = "certificates.k8s.io"
ADMISSION = "admissionregistration.k8s.io"
RESOURCE = "resource.k8s.io"
FLOWCONTROL = "flowcontrol.apiserver.k8s.io"
APIREGISTRATION = "apiregistration.k8s.io"


@pytest.mark.parametrize(
    ("kind", "tree", "expected"),
    [
        pytest.param(
            "StorageClass", {}, ["x", "", "Delete", "Immediate", False, "5m"], id="empty storage class"
        ),
        pytest.param(
            "StorageClass",
            {
                "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "p",
                "reclaimPolicy": "Retain",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowVolumeExpansion": True,
            },
            ["x", "p", "Retain", "WaitForFirstConsumer", True, "5m"],
            id="default class",
        ),
        pytest.param(
            "StorageClass",
            {"metadata": {"annotations": {"storageclass.beta.kubernetes.io/is-default-class": "true"}}},
            ["x", "", "Delete", "Immediate", False, "5m"],
            id="default class of old",
        ),
        pytest.param("VolumeAttributesClass", {"driverName": "d"}, ["x", "d", "5m"]),
        pytest.param(
            "VolumeAttachment",
            {
                "spec": {"attacher": "a", "source": {"persistentVolumeName": "pv"}, "nodeName": "n"},
                "status": {"attached": True},
            },
            ["x", "a", "pv", "n", True, "5m"],
        ),
        pytest.param("VolumeAttachment", {}, ["x", "", "", "", False, "5m"], id="empty volume attachment"),
        pytest.param(
            "CSIDriver", {}, ["x", True, False, False, "<unset>", False, "<none>", "5m"], id="plain driver"
        ),
        pytest.param(
            "CSIDriver",
            {
                "spec": {
                    "attachRequired": False,
                    "podInfoOnMount": True,
                    "storageCapacity": True,
                    "tokenRequests": [{"audience": "a"}, {"audience": ""}],
                    "requiresRepublish": True,
                    "volumeLifecycleModes": ["Persistent", "Ephemeral"],
                }
            },
            ["x", False, True, True, "a,", True, "Persistent,Ephemeral", "5m"],
            id="driver with everything",
        ),
        pytest.param("CSINode", {"spec": {"drivers": [{}, {}]}}, ["x", 2, "5m"]),
    ],
)
def test_storage_columns(kind, tree, expected):
    assert list(printed_cells(STORAGE, kind, tree).values()) == expected


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_role_binding_columns(kind):
    tree = {
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "User", "name": "alice"},
            {"kind": "ServiceAccount", "namespace": "ns", "name": "bot"},
            {"kind": "Group", "name": "devs"},
            {"kind": "User", "name": "bob"},
            {"kind": "Robot", "name": "r2"},
        ],
    }
    cells = ["x", "ClusterRole/view", "5m", "alice, bob", "devs", "ns/bot"]
    assert list(printed_cells(RBAC, kind, tree).values()) == cells


@pytest.mark.parametrize(
    ("types", "certificate", "expected"),
    [
        ((), "", "Pending"),
        (("Approved",), "", "Approved"),
        (("Approved",), "MQ==", "Approved,Issued"),
        (("Approved", "Denied"), "", "Denied"),
        (("Approved", "Failed"), "", "Approved,Failed"),
    ],
)
def test_certificate_signing_request_condition_column(types, certificate, expected):
    status = {"conditions": [{"type": each} for each in types], "certificate": certificate}
    assert (
        printed_cells(CERTIFICATES, "CertificateSigningRequest", {"status": status})["Condition"] == expected
    )


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("CertificateSigningRequest", {}, ["x", "5m", "<none>", "", "<none>", "Pending"]),
        (
            "CertificateSigningRequest",
            {"signerName": "s", "username": "u", "expirationSeconds": 86400},
            ["x", "5m", "s", "u", "24h", "Pending"],
        ),
    ],
)
def test_certificate_columns(kind, spec, expected):
    assert list(printed_cells(CERTIFICATES, kind, {"spec": spec}).values()) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (None, "<unset>"),
        ({}, "<unset>"),
        ({"namespace": "ns", "name": "p"}, "ns/p"),
        ({"name": "p"}, "*/p"),
        (
            {"selector": {}},
            "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}",
        ),
        (
            {
                "selector": {
                    "matchLabels": {"b": "2", "a": "1"},
                    "matchExpressions": [{"key": "c", "operator": "In", "values": ["3", "4"]}],
                }
            },
            (
                "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:"
                "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:c,Operator:In,Values:[3 4],},},}"
            ),
        ),
    ],
)
@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"])
def test_policy_binding_columns(kind, reference, expected):
    tree = {"spec": {"policyName": "p", "paramRef": reference}}
    assert list(printed_cells(ADMISSION, kind, tree).values()) == ["x", "p", expected, "5m"]


@pytest.mark.parametrize(
    ("kind", "tree", "expected"),
    [
        ("MutatingWebhookConfiguration", {"webhooks": [{}, {}]}, ["x", 2, "5m"]),
        ("ValidatingWebhookConfiguration", {}, ["x", 0, "5m"]),
        ("ValidatingAdmissionPolicy", {"spec": {"validations": [{}]}}, ["x", 1, "<unset>", "5m"]),
        (
            "MutatingAdmissionPolicy",
            {"spec": {"mutations": [{}, {}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}},
            ["x", 2, "v1/ConfigMap", "5m"],
        ),
    ],
)
def test_admission_columns(kind, tree, expected):
    assert list(printed_cells(ADMISSION, kind, tree).values()) == expected


@pytest.mark.parametrize(
    ("status", "deleting", "expected"),
    [
        ({}, False, "pending"),
        ({}, True, "deleted"),
        ({"allocation": {}}, False, "allocated"),
        ({"allocation": {}, "reservedFor": [{}]}, False, "allocated,reserved"),
        ({"allocation": {}, "reservedFor": [{}]}, True, "deleted,allocated,reserved"),
    ],
)
def test_resource_claim_state_column(status, deleting, expected):
    metadata = {"deletionTimestamp": time_ago(seconds=1)} if deleting else {}
    assert (
        printed_cells(RESOURCE, "ResourceClaim", {"metadata": metadata, "status": status})["State"]
        == expected
    )


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("DeviceClass", {}, ["x", "5m"]),
        ("ResourceClaimTemplate", {}, ["x", "5m"]),
        (
            "ResourceSlice",
            {"allNodes": True, "driver": "d", "pool": {"name": "p"}},
            ["x", "", "d", "p", "5m"],
        ),
        (
            "ResourceSlice",
            {"nodeName": "n", "driver": "d", "pool": {"name": "p"}},
            ["x", "n", "d", "p", "5m"],
        ),
    ],
)
def test_resource_columns(kind, spec, expected):
    assert list(printed_cells(RESOURCE, kind, {"spec": spec}).values()) == expected


@pytest.mark.parametrize(
    ("kind", "tree", "expected"),
    [
        pytest.param("FlowSchema", {}, ["x", "", 0, "<none>", "5m", "?"], id="empty flow schema"),
        pytest.param(
            "FlowSchema",
            {
                "spec": {
                    "priorityLevelConfiguration": {"name": "global-default"},
                    "matchingPrecedence": 9900,
                    "distinguisherMethod": {"type": "ByUser"},
                },
                "status": {"conditions": [{"type": "Dangling", "status": "False"}]},
            },
            ["x", "global-default", 9900, "ByUser", "5m", "False"],
        ),
        pytest.param(
            "PriorityLevelConfiguration",
            {"spec": {"type": "Exempt"}},
            ["x", "Exempt", "<none>", "<none>", "<none>", "<none>", "5m"],
            id="exempt",
        ),
        pytest.param(
            "PriorityLevelConfiguration",
            {"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 20, "limitResponse": {}}}},
            ["x", "Limited", 20, "<none>", "<none>", "<none>", "5m"],
            id="rejecting",
        ),
        pytest.param(
            "PriorityLevelConfiguration",
            {
                "spec": {
                    "type": "Limited",
                    "limited": {
                        "nominalConcurrencyShares": 0,
                        "limitResponse": {"queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}},
                    },
                }
            },
            ["x", "Limited", 0, 128, 6, 50, "5m"],
            id="queuing",
        ),
    ],
)
def test_flowcontrol_columns(kind, tree, expected):
    assert list(printed_cells(FLOWCONTROL, kind, tree).values()) == expected


@pytest.mark.parametrize(
    ("spec", "conditions", "expected"),
    [
        pytest.param({}, [], ["Local", "Unknown"], id="local"),
        pytest.param(
            {},
            [{"type": "Available", "status": "True", "reason": "Local"}],
            ["Local", "True"],
            id="available",
        ),
        pytest.param(
            {"service": {"namespace": "ns", "name": "s"}},
            [{"type": "Available", "status": "False", "reason": "MissingEndpoints"}],
            ["ns/s", "False (MissingEndpoints)"],
            id="not available",
        ),
        pytest.param({}, [{"type": "Available", "status": "Unknown"}], ["Local", "Unknown"], id="no reason"),
    ],
)
def test_api_service_columns(spec, conditions, expected):
    cells = printed_cells(APIREGISTRATION, "APIService", {"spec": spec, "status": {"conditions": conditions}})
    assert list(cells.values()) == ["x", *expected, "5m"]


@pytest.mark.parametrize(
    ("group", "kind", "tree", "expected"),
    [
        ("coordination.k8s.io", "Lease", {"spec": {"holderIdentity": "me"}}, ["x", "me", "5m"]),
        ("coordination.k8s.io", "Lease", {}, ["x", "", "5m"]),
        ("node.k8s.io", "RuntimeClass", {"handler": "runc"}, ["x", "runc", "5m"]),
        (
            "scheduling.k8s.io",
            "PriorityClass",
            {"value": -1, "globalDefault": True, "preemptionPolicy": "Never"},
            ["x", -1, True, "5m", "Never"],
        ),
        ("scheduling.k8s.io", "PriorityClass", {}, ["x", 0, False, "5m", ""]),
    ],
)
def test_columns_of_groups_with_one_kind(group, kind, tree, expected):
    assert list(printed_cells(group, kind, tree).values()) == expected
