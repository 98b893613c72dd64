"""Validation of CSIDrivers, CSINodes, CSIStorageCapacities, VolumeAttachments and VolumeAttributesClasses."""

import pytest

from tests.support.field_rules import create_errors, update_errors

VERSION = "storage.k8s.io/v1"
DRIVER = {"name": "d", "nodeID": "n"}
ATTACHMENT = {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
INLINE = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "h"}}
CAPACITY = {"metadata": {"name": "c", "namespace": "ns"}, "storageClassName": "s"}
CLASS = {"metadata": {"name": "c"}, "driverName": "d", "parameters": {"a": "b"}}


def driver(spec):
    return {"metadata": {"name": "d"}, "spec": spec}


def csi_node(*drivers):
    return {"metadata": {"name": "n"}, "spec": {"drivers": [*drivers]}}


def node_errors(*drivers):
    return create_errors(VERSION, "CSINode", csi_node(*drivers))


def attachment(spec, status=None):
    return {"metadata": {"name": "a"}, "spec": {**ATTACHMENT, **spec}, "status": status or {}}


def inline_errors(**fields):
    texts = create_errors(
        VERSION, "VolumeAttachment", attachment({"source": {"inlineVolumeSpec": {**INLINE, **fields}}})
    )
    return [text.removeprefix("spec.source.inlineVolumeSpec.") for text in texts]


DRIVERS = [
    pytest.param({}, [], id="nothing"),
    pytest.param({"fsGroupPolicy": "File"}, [], id="policy of groups"),
    pytest.param({"fsGroupPolicy": "Always"},
        [('spec.fsGroupPolicy: Unsupported value: "Always": supported values: "File", "None", '
          '"ReadWriteOnceWithFSType"')], id="unknown policy of groups"),
    pytest.param({"volumeLifecycleModes": ["Persistent", "Ephemeral"]}, [], id="lifecycles"),
    pytest.param({"volumeLifecycleModes": ["Forever"]},
        ['spec.volumeLifecycleModes: Unsupported value: "Forever": supported values: "Persistent", "Ephemeral"'],
        id="unknown lifecycle"),
    pytest.param({"tokenRequests": [{"audience": ""}, {"audience": "a", "expirationSeconds": 600}], "serviceAccountTokenInSecrets": True},
        [], id="tokens"),
    pytest.param({"tokenRequests": [{"audience": "a"}, {"audience": "a"}]},
        ['spec.tokenRequests[1].audience: Duplicate value: "a"'], id="token twice"),
    pytest.param({"tokenRequests": [{"audience": "a", "expirationSeconds": 599}]},
        [("spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 "
          "minutes")], id="token too short"),
    pytest.param({"tokenRequests": [{"audience": "a", "expirationSeconds": 4294967296}]}, [], id="longest token"),
    pytest.param({"tokenRequests": [{"audience": "a", "expirationSeconds": 4294967297}]},
        [("spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration "
          "larger than 2^32 seconds")], id="token too long"),
    pytest.param({"serviceAccountTokenInSecrets": False},
        [("spec.serviceAccountTokenInSecrets: Invalid value: false: serviceAccountTokenInSecrets is set but no "
          "tokenRequests are specified")], id="tokens in secrets without requests"),
    pytest.param({"nodeAllocatableUpdatePeriodSeconds": 10}, [], id="shortest period of updates"),
    pytest.param({"nodeAllocatableUpdatePeriodSeconds": 9},
        [("spec.nodeAllocatableUpdatePeriodSeconds: Invalid value: 9: must be greater than or equal to 10 "
          "seconds")], id="period of updates too short"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), DRIVERS)
def test_drivers_are_validated(change, expected):
    assert create_errors(VERSION, "CSIDriver", driver(change)) == expected


def test_inline_volume_may_have_attributes_class_without_csi():
    expected = inline_errors(csi=None, hostPath={"path": "/x"})
    assert inline_errors(csi=None, hostPath={"path": "/x"}, volumeAttributesClassName="gold") == expected


DRIVER_CHANGES = [
    pytest.param({}, {"tokenRequests": [{"audience": "a"}], "requiresRepublish": True, "storageCapacity": True},
        [], id="tokens"),
    pytest.param({"attachRequired": True}, {"attachRequired": False},
        ["spec.attachedRequired: Invalid value: false: field is immutable"], id="need of attachments"),
    pytest.param({"volumeLifecycleModes": ["Persistent"]}, {"volumeLifecycleModes": ["Ephemeral"]},
        ['spec.volumeLifecycleModes: Invalid value: ["Ephemeral"]: field is immutable'], id="lifecycles"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), DRIVER_CHANGES)
def test_changes_of_drivers_are_validated(old, new, expected):
    assert update_errors(VERSION, "CSIDriver", driver(old), driver(new)) == expected


NODES = [
    pytest.param([{**DRIVER, "topologyKeys": ["zone"], "allocatable": {"count": 0}}], [], id="driver"),
    pytest.param([{}],
        ["spec.drivers[0].name: Required value",
         "spec.drivers[0].nodeID: Required value"], id="empty driver"),
    pytest.param([{**DRIVER, "name": "d" * 64}],
        ["spec.drivers[0].name: Too long: may not be more than 63 bytes"], id="long name"),
    pytest.param([{**DRIVER, "nodeID": "n" * 256}], [], id="node of 256 characters"),
    pytest.param([{**DRIVER, "nodeID": "n" * 257}],
        ['spec.drivers[0].nodeID: Invalid value: "' + "n" * 257 + '": must be 256 characters or less'],
        id="node of 257 characters"),
    pytest.param([{**DRIVER, "allocatable": {"count": -1}}],
        ["spec.drivers[0].allocatable.count: Invalid value: -1: must be greater than or equal to 0"],
        id="negative number of volumes"),
    pytest.param([DRIVER, DRIVER], ['spec.drivers[1].name: Duplicate value: "d"'], id="driver twice"),
    pytest.param([{**DRIVER, "topologyKeys": [""]}],
        ["spec.drivers[0]: Required value",
         'spec.drivers[0]: Invalid value: "": name part must be non-empty',
         ("spec.drivers[0]: Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or "
          "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="empty key of topology"),
    pytest.param([{**DRIVER, "topologyKeys": ["a", "a"]}],
        ['spec.drivers[0]: Duplicate value: "a"'], id="key of topology twice"),
    pytest.param([{**DRIVER, "topologyKeys": ["a b"]}],
        [("spec.drivers[0]: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' "
          "or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid key of topology"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), NODES)
def test_nodes_are_validated(change, expected):
    assert node_errors(*change) == expected


NODE_CHANGES = [
    pytest.param(DRIVER, {**DRIVER, "name": "e"}, [], id="other driver"),
    pytest.param(DRIVER, {**DRIVER, "allocatable": {"count": 1}}, [], id="number of volumes"),
    pytest.param(DRIVER, {**DRIVER, "nodeID": "m"},
        [('spec.drivers: Invalid value: {"Name":"d","NodeID":"m","TopologyKeys":null,"Allocatable":null}: field '
          "is immutable")], id="node"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), NODE_CHANGES)
def test_changes_of_nodes_are_validated(old, new, expected):
    assert update_errors(VERSION, "CSINode", csi_node(old), csi_node(new)) == expected


ATTACHMENTS = [
    pytest.param(({},), [], id="volume"),
    pytest.param(({"attacher": ""},), ["spec.attacher: Required value"], id="no attacher"),
    pytest.param(({"attacher": "a_b"},),
        [('spec.attacher: Invalid value: "a_b": an RFC 1123 subdomain must consist of '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'Example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid attacher"),
    pytest.param(({"nodeName": ""},),
        [('spec.nodeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="no node"),
    pytest.param(({"source": {}},),
        ["spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
        id="no source"),
    pytest.param(({"source": {"persistentVolumeName": "v", "inlineVolumeSpec": INLINE}},),
        ["spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
        id="two sources"),
    pytest.param(({"source": {"persistentVolumeName": ""}},),
        ["spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName",
         ('spec.source.persistentVolumeName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="empty name of a volume"),
    pytest.param(({"source": {"persistentVolumeName": "V"}},),
        [('spec.source.persistentVolumeName: Invalid value: "V": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid name of a volume"),
    pytest.param(({}, {"attachError": {"message": "m" * 1024}, "detachError": {"errorCode": 0}}),
        [], id="large message of an error"),
    pytest.param(({}, {"attachError": {"message": "m" * 1025}}),
        ["status.attachError.message: Too long: may not be more than 1024 bytes"], id="larger message of an error"),
    pytest.param(({}, {"detachError": {"errorCode": -1}}),
        ["status.detachError.errorCode: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
        id="negative code of an error"),
    pytest.param(({}, {"attachmentMetadata": {"a": "b" * (256 * 1024)}}),
        ["status.attachmentMetadata: Too long: may not be more than 262144 bytes"], id="large metadata"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), ATTACHMENTS)
def test_attachments_are_validated(change, expected):
    assert create_errors(VERSION, "VolumeAttachment", attachment(*change)) == expected


INLINE_VOLUMES = [
    pytest.param({"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}, [], id="volume"),
    pytest.param({"claimRef": {}},
        ["claimRef: Forbidden: may not be specified in the context of inline volumes"], id="claim"),
    pytest.param({"capacity": {"storage": "1Gi"}},
        ["capacity: Forbidden: may not be specified in the context of inline volumes"], id="capacity"),
    pytest.param({"accessModes": []}, ["accessModes: Required value"], id="no modes"),
    pytest.param({"persistentVolumeReclaimPolicy": "Delete"},
        ["persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes"], id="policy"),
    pytest.param({"nodeAffinity": {}},
        ["nodeAffinity: Forbidden: may not be specified in the context of inline volumes"], id="nodes"),
    pytest.param({"storageClassName": "a"},
        ["storageClassName: Forbidden: may not be specified in the context of inline volumes"], id="class"),
    pytest.param({"volumeMode": "Block"},
        [("volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline "
          "volumes")], id="block"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), INLINE_VOLUMES)
def test_inline_volumes_are_validated(change, expected):
    assert inline_errors(**change) == expected


ATTACHMENT_CHANGES = [
    pytest.param({}, {}, [], id="nothing"),
    pytest.param({}, {"nodeName": "m"},
        ["spec: Invalid value: null: field is immutable"], id="node"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), ATTACHMENT_CHANGES)
def test_changes_of_attachments_are_validated(old, new, expected):
    assert update_errors(VERSION, "VolumeAttachment", attachment(old), attachment(new)) == expected


CAPACITIES = [
    pytest.param({"capacity": "0", "nodeTopology": {}}, [], id="capacity"),
    pytest.param({"capacity": "-1"},
        ['capacity: Invalid value: "-1": must be greater than or equal to 0'], id="negative capacity"),
    pytest.param({"storageClassName": ""},
        [('storageClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="no class"),
    pytest.param({"nodeTopology": {"matchLabels": {"a": "b c"}}},
        [('nodeTopology.matchLabels: Invalid value: "b c": a valid label must be an empty string or consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid topology"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CAPACITIES)
def test_capacities_are_validated(change, expected):
    assert create_errors(VERSION, "CSIStorageCapacity", {**CAPACITY, **change}) == expected


CAPACITY_CHANGES = [
    pytest.param({"capacity": "1"}, {"capacity": "2", "maximumVolumeSize": "1"}, [], id="capacity"),
    pytest.param({}, {"storageClassName": "t"},
        ['storageClassName: Invalid value: "t": field is immutable'], id="class"),
    pytest.param({}, {"nodeTopology": {}},
        ["nodeTopology: Invalid value: {}: field is immutable"], id="topology appears"),
    pytest.param({"nodeTopology": {}}, {"nodeTopology": {"matchLabels": {"a": "b"}}},
        ['nodeTopology: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable'], id="topology changes"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CAPACITY_CHANGES)
def test_changes_of_capacities_are_validated(old, new, expected):
    assert update_errors(VERSION, "CSIStorageCapacity", {**CAPACITY, **old}, {**CAPACITY, **new}) == expected


CLASSES = [
    pytest.param({}, [], id="no change"),
    pytest.param({"driverName": ""}, ["driverName: Required value"], id="no driver"),
    pytest.param({"driverName": "a_b"}, [], id="driver with underscore"),
    pytest.param({"driverName": "a b"},
        [("driverName: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or "
          "'.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="invalid driver"),
    pytest.param({"parameters": {}},
        ["parameters: Required value: must contain at least one key/value pair"], id="no parameters"),
    pytest.param({"parameters": {"": "a"}},
        ['parameters: Invalid value: "": field can not be empty.'], id="parameter without name"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLASSES)
def test_attributes_classes_are_validated(change, expected):
    assert create_errors(VERSION, "VolumeAttributesClass", {**CLASS, **change}) == expected


CLASS_CHANGES = [
    pytest.param({"driverName": "e"}, ["driverName: Forbidden: updates to driverName are forbidden."], id="driver"),
    pytest.param({"parameters": {"a": "c"}},
        ["parameters: Forbidden: updates to parameters are forbidden."], id="parameters"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLASS_CHANGES)
def test_changes_of_attributes_classes_are_validated(change, expected):
    assert update_errors(VERSION, "VolumeAttributesClass", CLASS, {**CLASS, **change}) == expected
