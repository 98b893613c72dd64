"""Defaults of groups that have few of them."""

import pytest

RBAC = "rbac.authorization.k8s.io"
FLOW = "flowcontrol.apiserver.k8s.io/v1"


def scheme(*path, value):
    for step in reversed(path):
        value = [value] if step == "[]" else {step: value}
    return value


def value_at(tree, path):
    for step in path:
        tree = tree[0] if step == "[]" else tree[step]
    return tree


@pytest.mark.parametrize(
    ("api_version", "kind", "where", "given", "expected"),
    [
        pytest.param(
            "apiregistration.k8s.io/v1", "APIService", "spec service", {"name": "s"}, {"name": "s", "port": 443},
            id="where an APIService is served",
        ),
        pytest.param(
            "authentication.k8s.io/v1", "TokenRequest", "spec", {},
            {"audiences": None, "expirationSeconds": 3600, "boundObjectRef": None},
            id="a token's life",
        ),
        pytest.param(
            "discovery.k8s.io/v1", "EndpointSlice", "ports []", {"port": 80},
            {"name": "", "port": 80, "protocol": "TCP"},
            id="a port of a slice",
        ),
        pytest.param(FLOW, "FlowSchema", "spec matchingPrecedence", 0, 1000, id="a flow's precedence"),
        pytest.param(
            FLOW, "PriorityLevelConfiguration", "spec exempt", {}, {"nominalConcurrencyShares": 0, "lendablePercent": 0},
            id="shares of the exempt",
        ),
        pytest.param(
            FLOW, "PriorityLevelConfiguration", "spec limited", {"limitResponse": {"type": "Queue", "queuing": {}}},
            {
                "nominalConcurrencyShares": 30,
                "limitResponse": {
                    "type": "Queue", "queuing": {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
                },
                "lendablePercent": 0,
            },
            id="shares and queues of the limited",
        ),
        pytest.param(
            FLOW, "PriorityLevelConfiguration", "spec limited nominalConcurrencyShares", 0, 0, id="no share at all"
        ),
        pytest.param(
            "networking.k8s.io/v1", "NetworkPolicy", "spec policyTypes", None, ["Ingress"], id="ingress only"
        ),
        pytest.param(
            "networking.k8s.io/v1", "NetworkPolicy", "spec", {"podSelector": {}, "egress": [{}]},
            {"podSelector": {}, "egress": [{}], "policyTypes": ["Ingress", "Egress"]},
            id="ingress and egress",
        ),
        pytest.param(
            "networking.k8s.io/v1", "NetworkPolicy", "spec policyTypes", ["Egress"], ["Egress"], id="its own types"
        ),
        pytest.param(
            "networking.k8s.io/v1", "NetworkPolicy", "spec ingress [] ports []", {"port": 80},
            {"protocol": "TCP", "port": 80},
            id="a policy's port",
        ),
        pytest.param(
            "networking.k8s.io/v1", "IngressClass", "spec parameters", {"kind": "K", "name": "n"},
            {"kind": "K", "name": "n", "scope": "Cluster"},
            id="parameters of a class",
        ),
        pytest.param(
            f"{RBAC}/v1", "RoleBinding", "roleRef", {"kind": "Role", "name": "r"},
            {"apiGroup": RBAC, "kind": "Role", "name": "r"},
            id="a role",
        ),
        pytest.param(
            f"{RBAC}/v1", "ClusterRoleBinding", "subjects []", {"kind": "User", "name": "u"},
            {"kind": "User", "apiGroup": RBAC, "name": "u"},
            id="a user",
        ),
        pytest.param(
            f"{RBAC}/v1", "RoleBinding", "subjects []", {"kind": "Group", "name": "g"},
            {"kind": "Group", "apiGroup": RBAC, "name": "g"},
            id="a group",
        ),
        pytest.param(
            f"{RBAC}/v1", "RoleBinding", "subjects []", {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
            id="a service account",
        ),
        pytest.param(
            "scheduling.k8s.io/v1", "PriorityClass", "preemptionPolicy", None, "PreemptLowerPriority",
            id="preemption policy",
        ),
        pytest.param("storage.k8s.io/v1", "StorageClass", "reclaimPolicy", None, "Delete", id="volumes of a class"),
        pytest.param(
            "storage.k8s.io/v1", "StorageClass", "volumeBindingMode", None, "Immediate", id="when they are bound"
        ),
        pytest.param(
            "storage.k8s.io/v1", "CSIDriver", "spec", {"podInfoOnMount": True},
            {
                "attachRequired": True, "podInfoOnMount": True, "volumeLifecycleModes": ["Persistent"],
                "storageCapacity": False, "fsGroupPolicy": "ReadWriteOnceWithFSType", "requiresRepublish": False,
                "seLinuxMount": False, "preventPodSchedulingIfMissing": False,
            },
            id="a driver",
        ),
    ],
)  # fmt: skip
def test_fields_are_defaulted(with_defaults, api_version, kind, where, given, expected):
    path = where.split()
    assert value_at(with_defaults(api_version, kind, scheme(*path, value=given)), path) == expected
