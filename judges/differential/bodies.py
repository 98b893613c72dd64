"""Objects of kinds for which the recordings have no accepted object."""

from mockube.component_base.clock import RealClock
from tests.support.server.pod_certificates import SIGNER, authority, spec

NETWORKING, ADMISSION = "/apis/networking.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
CERTIFICATES = "/apis/certificates.k8s.io/v1"
NAMED = frozenset({"CustomResourceDefinition", "IPAddress"})
"""Kinds whose names cannot be chosen freely."""
_SERVICE = {"group": "", "resource": "services", "namespace": "default", "name": "kubernetes"}
_MATCHED = {
    "resourceRules": [
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments"],
            "resourceNames": ["x"],
            "scope": "*",
        }
    ],
    "excludeResourceRules": [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    ],
    "matchPolicy": "Equivalent",
    "namespaceSelector": {"matchLabels": {"a": "b"}},
    "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
}
_APPLIED = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
BODIES = {
    f"{NETWORKING}/ipaddresses": [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IPAddress",
            "metadata": {"name": "192.0.2.77"},
            "spec": {"parentRef": _SERVICE},
        }
    ],
    f"{NETWORKING}/servicecidrs": [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "spec": {"cidrs": ["10.99.0.0/24", "fd00:99::/112"]},
        }
    ],
    f"{ADMISSION}/mutatingadmissionpolicies": [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicy",
            "spec": {
                "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                "matchConstraints": _MATCHED,
                "matchConditions": [{"name": "is-new", "expression": "request.operation == 'CREATE'"}],
                "variables": [{"name": "v", "expression": "object.metadata.name"}],
                "failurePolicy": "Fail",
                "reinvocationPolicy": "IfNeeded",
                "mutations": [
                    {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _APPLIED}},
                    {
                        "patchType": "JSONPatch",
                        "jsonPatch": {
                            "expression": "[JSONPatch{op: 'add', path: '/metadata/labels', value: {}}]"
                        },
                    },
                ],
            },
        }
    ],
    f"{ADMISSION}/mutatingadmissionpolicybindings": [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingAdmissionPolicyBinding",
            "spec": {
                "policyName": "p",
                "paramRef": {"name": "x", "namespace": "default", "parameterNotFoundAction": "Allow"},
                "matchResources": _MATCHED,
            },
        }
    ],
    "/apis/resource.k8s.io/v1/resourceslices": [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "d",
                        "attributes": {"a": {"string": "s"}, "b": {"int": 1}, "c": {"version": "1.2.3"}},
                        "capacity": {"memory": {"value": "1Gi"}},
                        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
                    }
                ],
            },
        }
    ],
    "/apis/resource.k8s.io/v1/devicetaintrules": [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "spec": {
                "deviceSelector": {"driver": "gpu.example.com", "pool": "p", "device": "d"},
                "taint": {"key": "k", "value": "v", "effect": "NoExecute"},
            },
        }
    ],
    f"{CERTIFICATES}/clustertrustbundles": [
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "ClusterTrustBundle",
            "spec": {"trustBundle": authority(RealClock().now())},
        },
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "ClusterTrustBundle",
            "spec": {"trustBundle": authority(RealClock().now()), "signerName": SIGNER},
        },
    ],
    f"{CERTIFICATES}/namespaces/${{ns}}/podcertificaterequests": [
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "PodCertificateRequest",
            "spec": spec(unverifiedUserAnnotations={"example.com/a": "b"}),
        }
    ],
    "/apis/storagemigration.k8s.io/v1/storageversionmigrations": [
        {
            "apiVersion": "storagemigration.k8s.io/v1",
            "kind": "StorageVersionMigration",
            "spec": {"resource": {"group": "apps", "resource": "deployments"}},
        }
    ],
    "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations": [
        {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "PriorityLevelConfiguration",
            "spec": {
                "type": "Limited",
                "limited": {
                    "nominalConcurrencyShares": 5,
                    "lendablePercent": 10,
                    "borrowingLimitPercent": 50,
                    "limitResponse": {
                        "type": "Queue",
                        "queuing": {"queues": 8, "handSize": 4, "queueLengthLimit": 10},
                    },
                },
            },
        }
    ],
}
