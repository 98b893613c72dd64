"""Validation of PersistentVolumeClaims and StorageClasses."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors

CLAIM = {
    "metadata": {"name": "c", "namespace": "ns"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
SOURCE = {"kind": "PersistentVolumeClaim", "name": "a"}
CLASS = {"metadata": {"name": "c"}, "provisioner": "example.com/p", "volumeBindingMode": "Immediate"}
BETA = "volume.beta.kubernetes.io/storage-class"
BOUND = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}


def claim(fields):
    paths = {
        path if path.startswith(("status", "metadata")) else f"spec.{path}": value
        for path, value in fields.items()
    }
    return changed(CLAIM, paths)


def changed_errors(old, new):
    """Return the errors without the differences that follow them."""
    return [
        text.partition("\n")[0]
        for text in update_errors("v1", "PersistentVolumeClaim", claim(old), claim(new))
    ]


def status_errors(status):
    return update_errors("v1", "PersistentVolumeClaim", CLAIM, {**CLAIM, "status": status}, "status")


def source(**fields):
    return {"dataSource": {**SOURCE, **fields}, "dataSourceRef": {**SOURCE, **fields}}


def topology(*expressions):
    return {"allowedTopologies": [{"matchLabelExpressions": [*expressions]}]}


CLAIMS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"accessModes": []},
        ["spec.accessModes: Required value: at least 1 access mode is required"], id="no modes"),
    pytest.param({"accessModes": ["ReadWrite"]},
        [('spec.accessModes: Unsupported value: "ReadWrite": supported values: "ReadOnlyMany", "ReadWriteMany", '
          '"ReadWriteOnce", "ReadWriteOncePod"')], id="unknown mode"),
    pytest.param({"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"]},
        ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        id="exclusive mode with another"),
    pytest.param({"resources": {}}, ["spec.resources[storage]: Required value"], id="no request"),
    pytest.param({"resources": {"requests": {"storage": "0"}}},
        ['spec.resources[storage]: Invalid value: "0": must be greater than zero'], id="request zero"),
    pytest.param({"resources": {"requests": {"storage": "-1"}}},
        ['spec.resources[storage]: Invalid value: "-1": must be greater than zero'], id="negative request"),
    pytest.param({"resources": {"requests": {"storage": "1500m"}}}, [], id="request of a part of a byte"),
    pytest.param({"selector": {"matchLabels": {"a": "b c"}}},
        [('spec.selector.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid selector"),
    pytest.param({"storageClassName": "A"},
        [('spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid class"),
    pytest.param({"storageClassName": ""}, [], id="empty class"),
    pytest.param({"volumeMode": "Tape"},
        ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
        id="unknown volume mode"),
    pytest.param(source(), [], id="source"),
    pytest.param(source(name=""),
        ["spec.dataSource.name: Required value",
         "spec.dataSourceRef.name: Required value"], id="source without name"),
    pytest.param(source(kind=""),
        ["spec.dataSource.kind: Required value",
         ("spec.dataSource: Invalid value: \"\": must be 'PersistentVolumeClaim' when referencing the default "
          "apiGroup"),
         "spec.dataSourceRef.kind: Required value",
         ("spec.dataSourceRef: Invalid value: \"\": must be 'PersistentVolumeClaim' when referencing the "
          "default apiGroup")], id="source without kind"),
    pytest.param(source(kind="A"),
        [("spec.dataSource: Invalid value: \"A\": must be 'PersistentVolumeClaim' when referencing the default "
          "apiGroup"),
         ("spec.dataSourceRef: Invalid value: \"A\": must be 'PersistentVolumeClaim' when referencing the "
          "default apiGroup")], id="source of another kind without group"),
    pytest.param(source(kind="A", apiGroup="example.com"), [], id="source of another group"),
    pytest.param(source(kind="A", apiGroup="A_"),
        [('spec.dataSource.apiGroup: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"),
         ('spec.dataSourceRef.apiGroup: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="source of an invalid group"),
    pytest.param({**source(), "dataSourceRef": {**SOURCE, "name": "b"}},
        ["spec: Invalid value: {}: must match dataSourceRef"], id="sources that differ"),
    pytest.param({"dataSourceRef": {**SOURCE, "namespace": "b"}}, [], id="source in another namespace"),
    pytest.param({"dataSourceRef": {**SOURCE, "namespace": "B"}},
        [('spec.dataSourceRef.namespace: Invalid value: "B": a lowercase RFC 1123 label must consist of lower '
          "case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="source in an invalid namespace"),
    pytest.param({"dataSource": SOURCE, "dataSourceRef": {**SOURCE, "namespace": "b"}},
        ["spec: Invalid value: {}: may not be specified when dataSourceRef.namespace is specified"],
        id="source in two ways with a namespace"),
    pytest.param({"volumeAttributesClassName": "A"},
        [('spec.volumeAttributesClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid class of attributes"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLAIMS)
def test_claims_are_validated(change, expected):
    assert create_errors("v1", "PersistentVolumeClaim", claim(change)) == expected


CHANGES = [
    pytest.param({}, {}, [], id="nothing"),
    pytest.param({}, {"volumeName": "v"}, [], id="volume of a claim without one"),
    pytest.param({"volumeName": "v"}, {"volumeName": "w"},
        [("spec: Forbidden: spec is immutable after creation except resources.requests and "
          "volumeAttributesClassName for bound claims")], id="other volume"),
    pytest.param({}, {"resources.requests.storage": "2Gi"},
        [("spec: Forbidden: spec is immutable after creation except resources.requests and "
          "volumeAttributesClassName for bound claims")], id="request of a pending claim"),
    pytest.param(BOUND, {**BOUND, "resources.requests.storage": "2Gi"}, [], id="request of a bound claim"),
    pytest.param({**BOUND, "resources.requests.storage": "3Gi"}, {**BOUND, "resources.requests.storage": "2Gi"},
        [], id="lower request above the capacity"),
    pytest.param({**BOUND, "resources.requests.storage": "3Gi"}, {**BOUND, "resources.requests.storage": "1Gi"},
        ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
        id="lower request at the capacity"),
    pytest.param(BOUND, {**BOUND, "accessModes": ["ReadOnlyMany"]},
        [("spec: Forbidden: spec is immutable after creation except resources.requests and "
          "volumeAttributesClassName for bound claims")], id="modes"),
    pytest.param({"volumeMode": "Block"}, {"volumeMode": "Filesystem"},
        [("spec: Forbidden: spec is immutable after creation except resources.requests and "
          "volumeAttributesClassName for bound claims"),
         'volumeMode: Invalid value: "Filesystem": field is immutable'], id="volume mode"),
    pytest.param({}, {"storageClassName": "a"}, [], id="first class"),
    pytest.param({"storageClassName": "a"}, {"storageClassName": "b"},
        [("spec: Forbidden: spec is immutable after creation except resources.requests and "
          "volumeAttributesClassName for bound claims")], id="other class"),
    pytest.param({"metadata.annotations": {BETA: "a"}}, {"storageClassName": "a"},
        [], id="class moves from the annotation"),
    pytest.param({"metadata.annotations": {BETA: "a"}}, {"storageClassName": "b"},
        ['metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: "": field is immutable',
         ("spec: Forbidden: spec is immutable after creation except resources.requests and "
          "volumeAttributesClassName for bound claims")], id="class moves from the annotation and changes"),
    pytest.param({"metadata.annotations": {BETA: "a"}}, {"metadata.annotations": {BETA: "b"}},
        ['metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: "b": field is immutable'],
        id="annotation changes"),
    pytest.param(BOUND, {**BOUND, "volumeAttributesClassName": "a"}, [], id="class of attributes of a bound claim"),
    pytest.param({}, {"volumeAttributesClassName": "a"},
        [("spec: Forbidden: spec is immutable after creation except resources.requests and "
          "volumeAttributesClassName for bound claims")], id="class of attributes of a pending claim"),
    pytest.param({**BOUND, "volumeAttributesClassName": "a", "status.currentVolumeAttributesClassName": "a"}, BOUND,
        ["spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"],
        id="class of attributes is removed"),
    pytest.param({**BOUND, "volumeAttributesClassName": "a", "status.currentVolumeAttributesClassName": "a"}, {**BOUND, "volumeAttributesClassName": ""},
        ["spec.volumeAttributesClassName: Forbidden: update from non-nil value to an empty string is forbidden"],
        id="class of attributes is emptied"),
    pytest.param({**BOUND, "volumeAttributesClassName": "a"}, BOUND,
        [], id="class of attributes is removed before it is used"),
    pytest.param({"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}}, {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}, "volumeName": "v"},
        [], id="selector stays invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_claims_are_validated(old, new, expected):
    assert changed_errors(old, new) == expected


STATUS = [
    pytest.param({"capacity": {"storage": "1Gi"}, "allocatedResources": {"storage": "1Gi"}, "allocatedResourceStatuses": {"storage": "NodeResizePending"}},
        [], id="status"),
    pytest.param({"capacity": {"storage": "-1"}},
        ["status.capacity[storage]: Invalid value: -1: must be a valid resource quantity"], id="negative capacity"),
    pytest.param({"allocatedResources": {"storage": "-1"}},
        ["status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity"],
        id="negative allocation"),
    pytest.param({"allocatedResources": {"cpu": "1"}, "allocatedResourceStatuses": {"cpu": "NodeResizePending"}},
        ['status.allocatedResourceStatuses: Unsupported value: "cpu": supported values: "storage"',
         'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"'],
        id="unknown allocated resource"),
    pytest.param({"allocatedResources": {"example.com/a": "1"}}, [], id="allocated resource of another domain"),
    pytest.param({"allocatedResourceStatuses": {"storage": "Resizing"}},
        [('status.allocatedResourceStatuses: Unsupported value: "storage": supported values: '
          '"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", '
          '"NodeResizeInfeasible", "NodeResizePending"')], id="unknown state of a resize"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), STATUS)
def test_status_of_claims_is_validated(change, expected):
    assert status_errors(change) == expected


CLASSES = [
    pytest.param({}, [], id="no change"),
    pytest.param({"provisioner": ""}, ["provisioner: Required value"], id="no provisioner"),
    pytest.param({"provisioner": "EXAMPLE.com/p"}, [], id="provisioner in capitals"),
    pytest.param({"provisioner": "a b"},
        [("provisioner: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or "
          "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid provisioner"),
    pytest.param({"reclaimPolicy": "Recycle"},
        ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'], id="unknown policy"),
    pytest.param({"volumeBindingMode": ABSENT},
        ['volumeBindingMode: Unsupported value: "": supported values: "Immediate", "WaitForFirstConsumer"'],
        id="no binding mode"),
    pytest.param({"volumeBindingMode": "Late"},
        ['volumeBindingMode: Unsupported value: "Late": supported values: "Immediate", "WaitForFirstConsumer"'],
        id="unknown binding mode"),
    pytest.param({"parameters": {"": "a"}},
        ['parameters: Invalid value: "": field can not be empty.'], id="parameter without name"),
    pytest.param({"parameters": {str(number): "a" for number in range(512)}}, [], id="512 parameters"),
    pytest.param({"parameters": {str(number): "a" for number in range(513)}},
        ["parameters: Too long: may not be more than 512 bytes"], id="513 parameters"),
    pytest.param({"parameters": {"a": "b" * (256 * 1024 - 1)}}, [], id="parameters of 256 KiB"),
    pytest.param({"parameters": {"a": "b" * 256 * 1024}},
        ["parameters: Too long: may not be more than 262144 bytes"], id="larger parameters"),
    pytest.param(topology({"key": "zone", "values": ["a", "b"]}), [], id="topology"),
    pytest.param(topology({"key": "zone"}),
        ["allowedTopologies[0].matchLabelExpressions[0].values: Required value"], id="topology without values"),
    pytest.param(topology({"values": ["a"]}),
        ['allowedTopologies[0].matchLabelExpressions[0].key: Invalid value: "": name part must be non-empty',
         ('allowedTopologies[0].matchLabelExpressions[0].key: Invalid value: "": name part must consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="topology without key"),
    pytest.param(topology({"key": "zone", "values": ["a", "a"]}),
        ['allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"'],
        id="topology with a value twice"),
    pytest.param(topology({"key": "zone", "values": ["a"]}, {"key": "zone", "values": ["b"]}),
        ['allowedTopologies[0].matchLabelExpressions[1].key: Duplicate value: "zone"'], id="topology with a key twice"),
    pytest.param({"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}] * 2},
        ['allowedTopologies[1].matchLabelExpressions: Duplicate value: ""'], id="topology twice"),
    pytest.param(topology(),
        ['allowedTopologies[0].matchLabelExpressions: Duplicate value: ""'], id="empty topology"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLASSES)
def test_storage_classes_are_validated(change, expected):
    assert create_errors("storage.k8s.io/v1", "StorageClass", changed(CLASS, change)) == expected


CLASS_CHANGES = [
    pytest.param({}, {"allowVolumeExpansion": True, "mountOptions": ["a"]}, [], id="expansion and topologies"),
    pytest.param({}, {"parameters": {"a": "b"}},
        ["parameters: Invalid value: null: field is immutable"], id="parameters"),
    pytest.param({}, {"provisioner": "q"}, ["provisioner: Invalid value: null: field is immutable"], id="provisioner"),
    pytest.param({"reclaimPolicy": "Delete"}, {"reclaimPolicy": "Retain"},
        ["reclaimPolicy: Invalid value: null: field is immutable"], id="policy"),
    pytest.param({}, {"volumeBindingMode": "WaitForFirstConsumer"},
        ["volumeBindingMode: Invalid value: null: field is immutable"], id="binding mode"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CLASS_CHANGES)
def test_changes_of_storage_classes_are_validated(old, new, expected):
    assert (
        update_errors("storage.k8s.io/v1", "StorageClass", changed(CLASS, old), changed(CLASS, new))
        == expected
    )
