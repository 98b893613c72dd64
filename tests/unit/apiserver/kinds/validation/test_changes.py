"""Validation of updates: a table of changes with their errors."""

import pytest

from tests.support import field_rules

NOT_GIVEN = '{"Driver":"d.example.com","Pool":"p","Device":"a","ShareID":""}'


def update_errors(group, kind, old, new, subresource="", name="a"):
    api_version = f"{group}/v1".lstrip("/")
    where = {"namespace": "ns"} if field_rules.is_namespaced(api_version, kind) else {}
    metadata = {"metadata": {"name": name, "uid": "1", **where}}
    errors = field_rules.update_errors(api_version, kind, metadata | old, metadata | new, subresource)
    return list(dict.fromkeys(errors))


CSI = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "csi": {"driver": "d", "volumeHandle": "h"},
}
SECRET = {"controllerExpandSecretRef": {"name": "s", "namespace": "ns"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "volumeName": "v"}
SMALLER = {**CLAIM, "resources": {"requests": {"storage": "1Gi"}}}
BOUND = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
TAKEN = "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
SHOWN_ROLE = '{"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"s"}'
SEALED = "field is immutable when `immutable` is set"
FIXED = "field is immutable"
TAINT = {"key": "k", "effect": "NoSchedule"}
SHOWN_TAINT = '{"Key":"k","Value":"","Effect":"NoSchedule","TimeAdded":null}'
APPROVED = {"type": "Approved", "status": "True"}
REQUEST = {"signerName": "example.com/s", "usages": ["any"]}
NOT_SIGNED = "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST"
EVENT = {
    "eventTime": "2030-01-01T00:00:00.000000Z", "regarding": {"namespace": "ns"}, "reportingController": "c",
    "reportingInstance": "i", "action": "a", "reason": "r", "note": "a", "type": "Normal",
}  # fmt: skip
MOVED = """\
spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation
@@ -22,7 +22,7 @@
  "StorageOS": null,
  "CSI": {
   "Driver": "d",
-  "VolumeHandle": "h",
+  "VolumeHandle": "i",
   "ReadOnly": false,
   "FSType": "",
   "VolumeAttributes": null,
"""
REPLACED = """\
spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
@@ -9,7 +9,7 @@
    "storage": "2Gi"
   }
  },
- "VolumeName": "v",
+ "VolumeName": "w",
  "StorageClassName": null,
  "VolumeMode": null,
  "DataSource": null,
"""
OTHER_CLASS = """\
spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
@@ -10,7 +10,7 @@
   }
  },
  "VolumeName": "w",
- "StorageClassName": "a",
+ "StorageClassName": "b",
  "VolumeMode": null,
  "DataSource": null,
  "DataSourceRef": null,
"""
OTHER_ATTRIBUTES = """\
spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
@@ -14,5 +14,5 @@
  "VolumeMode": null,
  "DataSource": null,
  "DataSourceRef": null,
- "VolumeAttributesClassName": null
+ "VolumeAttributesClassName": "v"
 }
"""
ONE_FAMILY = (
    'spec.cidrs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one IP for each IP family, '
    "i.e 192.168.0.0/24 and 2001:db8::/64"
)

CHANGES = [
    pytest.param("", "ConfigMap", {"immutable": True, "data": {"a": "1"}}, {"data": {"a": "2"}},
                 [f"immutable: Forbidden: {SEALED}", f"data: Forbidden: {SEALED}"], id="immutable ConfigMap is changed"),
    pytest.param("", "ConfigMap", {"data": {"a": "1"}}, {"immutable": True, "data": {"a": "2"}}, [],
                 id="ConfigMap becomes immutable with a change"),
    pytest.param("", "Secret", {"type": "a"}, {"type": "b"}, [f'type: Invalid value: "b": {FIXED}'],
                 id="type of a Secret is changed"),
    pytest.param("", "Node", {"spec": {"podCIDRs": ["10.0.0.0/24"]}}, {"spec": {"podCIDRs": ["10.0.1.0/24"]}},
                 ['spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid'],
                 id="pod CIDR of a Node is changed"),
    pytest.param("", "Node", {}, {"spec": {"podCIDRs": ["10.0.1.0/24"], "providerID": "p"}}, [],
                 id="pod CIDR of a Node is set"),
    pytest.param("", "Node", {}, {"spec": {"taints": [TAINT, TAINT]}},
                 [f"metadata.taints[1]: Duplicate value: {SHOWN_TAINT}: taints must be unique by key and effect pair"],
                 id="duplicate taint of a Node"),
    pytest.param("", "ResourceQuota", {"spec": {"scopes": ["BestEffort"]}}, {"spec": {}},
                 [f"spec.scopes: Invalid value: null: {FIXED}"], id="scopes of a quota are changed"),
    pytest.param("", "PersistentVolume", {"spec": CSI}, {"spec": {**CSI, "csi": {**CSI["csi"], **SECRET}}}, [],
                 id="expand secret of a volume is added"),
    pytest.param("", "PersistentVolume", {"spec": CSI}, {"spec": {**CSI, "csi": {**CSI["csi"], "volumeHandle": "i"}}},
                 [MOVED],
                 id="source of a volume is changed"),
    pytest.param("", "PersistentVolumeClaim", {"spec": CLAIM, "status": BOUND}, {"spec": SMALLER, "status": BOUND},
                 [TAKEN], id="claim shrinks below its capacity"),
    pytest.param("", "PersistentVolumeClaim", {"spec": SMALLER, "status": BOUND}, {"spec": CLAIM, "status": BOUND},
                 [], id="a claim grows"),
    pytest.param("", "PersistentVolumeClaim", {"spec": CLAIM},
                 {"spec": {**CLAIM, "resources": {"requests": {"storage": "2147483648"}}}}, [],
                 id="claim size in another notation"),
    pytest.param("", "PersistentVolumeClaim", {"spec": {**CLAIM, "volumeName": ""}}, {"spec": CLAIM}, [],
                 id="a claim is bound"),
    pytest.param("", "PersistentVolumeClaim", {"spec": CLAIM}, {"spec": {**CLAIM, "volumeName": "w"}}, [REPLACED],
                 id="volume of a bound claim is changed"),
    pytest.param("", "PersistentVolumeClaim", {"spec": {**CLAIM, "volumeName": "", "storageClassName": "a"}},
                 {"spec": {**CLAIM, "volumeName": "w", "storageClassName": "b"}}, [OTHER_CLASS],
                 id="a claim is bound and gets another class"),
    pytest.param("", "PersistentVolumeClaim", {"spec": CLAIM}, {"spec": {**CLAIM, "volumeAttributesClassName": "v"}},
                 [OTHER_ATTRIBUTES], id="a claim that is not bound gets another class of attributes"),
    pytest.param("", "PersistentVolumeClaim", {"spec": CLAIM, "status": BOUND},
                 {"spec": {**CLAIM, "volumeAttributesClassName": "v"}, "status": BOUND}, [],
                 id="a bound claim gets another class of attributes"),
    pytest.param("events.k8s.io", "Event", EVENT, {**EVENT, "note": "b", "series": {"count": 1}},
                 ['series.count: Invalid value: "": should be at least 2',
                  "series.lastObservedTime: Required value", f'message: Invalid value: "b": {FIXED}'],
                 id="note of an event is changed"),
    pytest.param("storage.k8s.io", "StorageClass", {"provisioner": "p", "volumeBindingMode": "Immediate"},
                 {"provisioner": "q", "volumeBindingMode": "Immediate"},
                 [f"provisioner: Invalid value: null: {FIXED}"], id="provisioner of a class is changed"),
    pytest.param("rbac.authorization.k8s.io", "RoleBinding", {"roleRef": ROLE}, {"roleRef": {**ROLE, "name": "s"}},
                 [f"roleRef: Invalid value: {SHOWN_ROLE}: field is immutable"], id="roleRef of a binding is changed"),
    pytest.param("scheduling.k8s.io", "PriorityClass", {"value": 1}, {"value": 2},
                 ["value: Forbidden: may not be changed in an update."], id="value of a priority class is changed"),
    pytest.param("networking.k8s.io", "NetworkPolicy",
                 {"spec": {"ingress": [{"from": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}]}},
                 {"spec": {"egress": [{"to": [{"ipBlock": {"cidr": "010.0.0.0/8"}}]}]}}, [],
                 id="unchanged non-canonical network"),
    pytest.param("discovery.k8s.io", "EndpointSlice",
                 {"addressType": "IPv6", "endpoints": [{"addresses": ["2001:db8::1"]}]},
                 {"addressType": "IPv4", "endpoints": [{"addresses": ["2001:db8::1"]}]},
                 ["addressType: Invalid value: null: field is immutable"], id="unchanged endpoints are not validated"),
    pytest.param("discovery.k8s.io", "EndpointSlice", {"addressType": "IPv4"}, {"addressType": "IPv6"},
                 [f"addressType: Invalid value: null: {FIXED}"], id="address type of a slice is changed"),
    pytest.param("networking.k8s.io", "ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24"]}}, {"spec": {}},
                 ["spec.cidrs: Invalid value: null: field is immutable"], id="CIDRs of a ServiceCIDR are removed"),
    pytest.param("networking.k8s.io", "ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24"]}},
                 {"spec": {"cidrs": ["10.0.0.0/24", "fd00::/64"]}}, [], id="CIDR of a second family is added"),
    pytest.param("networking.k8s.io", "ServiceCIDR", {"spec": {"cidrs": ["10.0.0.0/24"]}},
                 {"spec": {"cidrs": ["10.0.0.0/24", "10.0.1.0/24"]}},
                 [ONE_FAMILY], id="CIDR of the same family is added"),
    pytest.param("node.k8s.io", "RuntimeClass", {"handler": "a"}, {"handler": "b"},
                 [f"handler: Invalid value: null: {FIXED}"], id="handler of a runtime class is changed"),
    pytest.param("certificates.k8s.io", "CertificateSigningRequest", {"spec": REQUEST},
                 {"spec": REQUEST, "status": {"conditions": [APPROVED]}},
                 [NOT_SIGNED, 'status.conditions: Forbidden: updates may not add a condition of type "Approved"'],
                 id="CSR approved by main update"),
]  # fmt: skip


@pytest.mark.parametrize(("group", "kind", "old", "new", "expected"), CHANGES)
def test_invalid_update_is_refused(group, kind, old, new, expected):
    assert update_errors(group, kind, old, new) == expected


def test_csr_approval_needs_approval_subresource():
    old, new = {"spec": REQUEST}, {"spec": REQUEST, "status": {"conditions": [APPROVED]}}
    assert update_errors("certificates.k8s.io", "CertificateSigningRequest", old, new, "approval") == [
        NOT_SIGNED
    ]


def test_csr_with_both_decisions_is_invalid_at_its_conditions():
    denied = {"type": "Denied", "status": "True"}
    old = {"spec": REQUEST, "status": {"conditions": [APPROVED]}}
    new = {"spec": REQUEST, "status": {"conditions": [APPROVED, denied]}}
    assert update_errors("certificates.k8s.io", "CertificateSigningRequest", old, new, "approval") == [
        NOT_SIGNED,
        'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
    ]


GIVEN = {"driver": "d.example.com", "pool": "p", "device": "a"}
ASKED = {
    "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}}]}
}
USER = {"resource": "pods", "name": "p", "uid": "1"}
NO_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({"allocation": {"devices": {"results": [{"request": "r", **GIVEN}]}}}, [], id="requested device is allocated"),
        pytest.param({"allocation": {"devices": {"results": [{"request": "s", **GIVEN}]}}},
                     [f'status.allocation.devices.results[0].request: Invalid value: "s": {NO_REQUEST}'],
                     id="device allocated without request"),
        pytest.param({"reservedFor": [USER]},
                     ["status.reservedFor: Forbidden: may not be specified when `allocated` is not set"],
                     id="reserved without allocation"),
        pytest.param({"devices": [GIVEN]},
                     [f"status.devices[0]: Invalid value: {NOT_GIVEN}: must be an allocated device in the claim"],
                     id="status of an unallocated device"),
    ],
)  # fmt: skip
def test_resource_claim_status_is_validated(status, expected):
    old, new = {"spec": ASKED}, {"spec": ASKED, "status": status}
    assert update_errors("resource.k8s.io", "ResourceClaim", old, new, "status") == expected


@pytest.mark.parametrize(
    ("phase", "deleted", "expected"),
    [
        ("Active", False, []),
        ("Terminating", True, []),
        ("Terminating", False, ["may only be 'Active' if `deletionTimestamp` is empty"]),
        ("Active", True, ["may only be 'Terminating' if `deletionTimestamp` is not empty"]),
    ],
)
def test_deleted_namespace_must_be_terminating(phase, deleted, expected):
    metadata = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleted else {}
    tree = {"metadata": {"name": "a", "uid": "1", **metadata}, "status": {"phase": phase}}
    found = update_errors("", "Namespace", tree, tree, "status")
    assert [text.partition(f'"{phase}": ')[2] for text in found] == expected


def test_flow_schema_condition_needs_type():
    old, new = {"spec": {}}, {"spec": {}, "status": {"conditions": [{}]}}
    group = "flowcontrol.apiserver.k8s.io"
    assert update_errors(group, "FlowSchema", old, new, "status") == [
        "status.conditions[0].type: Required value"
    ]
