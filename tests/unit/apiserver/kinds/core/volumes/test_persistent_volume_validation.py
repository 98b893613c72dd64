"""Validation of PersistentVolumes."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors

VOLUME = {
    "metadata": {"name": "v"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "d", "volumeHandle": "h"},
    },
}
HOST = {"csi": ABSENT, "hostPath": {"path": "/a"}}
NODES = {
    "required": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
    }
}
BAD_NODES = {
    "required": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}]
    }
}


def volume(fields):
    return changed(VOLUME, {f"spec.{path}": value for path, value in fields.items()})


def errors_of(change):
    return create_errors("v1", "PersistentVolume", volume(change))


def source_errors(kind, fields):
    """Return the errors of a volume of another source, without the path of the spec."""
    return [text.removeprefix("spec.") for text in errors_of({"csi": ABSENT, kind: fields})]


def changed_errors(old, new):
    """Return the errors without the differences that follow them."""
    return [
        text.partition("\n")[0] for text in update_errors("v1", "PersistentVolume", volume(old), volume(new))
    ]


VOLUMES = [
    pytest.param({}, [], id="no change"),
    pytest.param({"accessModes": []}, ["spec.accessModes: Required value"], id="no modes"),
    pytest.param({"accessModes": ["ReadWrite"]},
        [('spec.accessModes: Unsupported value: "ReadWrite": supported values: "ReadOnlyMany", "ReadWriteMany", '
          '"ReadWriteOnce", "ReadWriteOncePod"')], id="unknown mode"),
    pytest.param({"accessModes": ["ReadWriteOncePod"]}, [], id="exclusive mode"),
    pytest.param({"accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
        ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        id="exclusive mode with another"),
    pytest.param({"capacity": ABSENT},
        ["spec.capacity: Required value",
         'spec.capacity: Unsupported value: null: supported values: "storage"'], id="no capacity"),
    pytest.param({"capacity": {"storage": "1Gi", "cpu": "1"}},
        ['spec.capacity: Unsupported value: {"storage":"1Gi","cpu":"1"}: supported values: "storage"'],
        id="other capacity"),
    pytest.param({"capacity": {"storage": "0"}},
        ['spec.capacity[storage]: Invalid value: "0": must be greater than zero'], id="capacity zero"),
    pytest.param({"capacity": {"storage": "-1"}},
        ["spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
         'spec.capacity[storage]: Invalid value: "-1": must be greater than zero'], id="negative capacity"),
    pytest.param({"capacity": {"storage": "9223372036854775808"}},
        ["spec.capacity[storage]: Invalid value: -9223372036854775808: must be a valid resource quantity"],
        id="capacity beyond 64 bits"),
    pytest.param({"capacity": {"storage": "9223372036854775807k"}},
        ["spec.capacity[storage]: Invalid value: -1000: must be a valid resource quantity"],
        id="capacity whose low 64 bits are negative"),
    pytest.param({"capacity": {"storage": "10E"}}, [], id="capacity that upstream reads as zero"),
    pytest.param({"persistentVolumeReclaimPolicy": "Keep"},
        [('spec.persistentVolumeReclaimPolicy: Unsupported value: "Keep": supported values: "Delete", '
          '"Recycle", "Retain"')], id="unknown policy"),
    pytest.param({**HOST, "hostPath": {"path": "/a/.."}, "persistentVolumeReclaimPolicy": "Recycle"},
        ["spec.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
         "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
        id="recycled root"),
    pytest.param({**HOST, "hostPath": {"path": "//"}, "persistentVolumeReclaimPolicy": "Recycle"},
        ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
        id="recycled root by its name"),
    pytest.param({**HOST, "persistentVolumeReclaimPolicy": "Recycle"}, [], id="recycled folder"),
    pytest.param({"csi": ABSENT}, ["spec: Required value: must specify a volume type"], id="no source"),
    pytest.param({"hostPath": {"path": "/a"}},
        ["spec.csi: Forbidden: may not specify more than 1 volume type"], id="two sources"),
    pytest.param({"nodeAffinity": NODES}, [], id="nodes"),
    pytest.param({"nodeAffinity": {}},
        ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
        id="nodes without requirement"),
    pytest.param({"nodeAffinity": {"required": {"nodeSelectorTerms": []}}},
        [("spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector "
          "term")], id="nodes without terms"),
    pytest.param({"nodeAffinity": BAD_NODES},
        [('spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "b c": '
          "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
          "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
          "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="invalid nodes"),
    pytest.param({"storageClassName": "A"},
        [('spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid class"),
    pytest.param({"volumeMode": "Tape"},
        ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
        id="unknown volume mode"),
    pytest.param({"volumeMode": ""},
        ['spec.volumeMode: Unsupported value: "": supported values: "Block", "Filesystem"'], id="empty volume mode"),
    pytest.param({"volumeAttributesClassName": "a"}, [], id="class of attributes"),
    pytest.param({"volumeAttributesClassName": ""},
        ["spec.volumeAttributesClassName: Required value: an empty string is disallowed"],
        id="empty class of attributes"),
    pytest.param({"volumeAttributesClassName": "A"},
        [('spec.volumeAttributesClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid class of attributes"),
    pytest.param({**HOST, "volumeAttributesClassName": "a"},
        ["spec.csi: Required value: has to be specified when using volumeAttributesClassName"],
        id="class of attributes of another source"),
    pytest.param({"csi": ABSENT, "local": {"path": "a"}, "nodeAffinity": NODES}, [], id="local volume"),
    pytest.param({"csi": ABSENT, "local": {"path": "a"}},
        ["spec.nodeAffinity: Required value: Local volume requires node affinity"], id="local volume without nodes"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), VOLUMES)
def test_volumes_are_validated(change, expected):
    assert errors_of(change) == expected


SOURCES = [
    pytest.param(("local", {}),
        ["local.path: Required value",
         "nodeAffinity: Required value: Local volume requires node affinity"], id="local without path"),
    pytest.param(("local", {"path": "../a"}),
        ["local.path: Invalid value: \"../a\": must not contain '..'",
         "nodeAffinity: Required value: Local volume requires node affinity"], id="local above"),
    pytest.param(("hostPath", {}), ["hostPath.path: Required value"], id="host without path"),
    pytest.param(("glusterfs", {"endpoints": "e", "path": "p", "endpointsNamespace": "ns"}), [], id="Gluster"),
    pytest.param(("glusterfs", {"endpoints": "e", "path": "p", "endpointsNamespace": ""}),
        [('glusterfs.endpointsNamespace: Invalid value: "": if the endpointnamespace is set, it must be a valid '
          "namespace name")], id="Gluster with empty namespace"),
    pytest.param(("glusterfs", {"endpoints": "e", "path": "p", "endpointsNamespace": "A"}),
        [('glusterfs.endpointsNamespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower '
          "case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="Gluster with invalid namespace"),
    pytest.param(("iscsi", {"targetPortal": "a", "iqn": "abc"}),
        ['iscsi.iqn: Invalid value: "abc": must be valid format'], id="iSCSI with unknown name"),
    pytest.param(("iscsi", {"targetPortal": "a", "iqn": "eui.0123456789abcdef", "secretRef": {}}),
        ["iscsi.secretRef.name: Required value"], id="iSCSI with unnamed secret"),
    pytest.param(("iscsi", {"targetPortal": "a" * 63, "iqn": "eui.0123456789abcdef", "initiatorName": "eui.0123456789abcdef"}),
        ['iscsi.targetportal: Invalid value: "' + "a" * 63 + ('": Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if '
                    "iscsi.initiatorName is specified.")], id="iSCSI with long portal"),
    pytest.param(("iscsi", {"targetPortal": "a" * 62, "iqn": "eui.0123456789abcdef", "initiatorName": "eui.0123456789abcdef"}),
        [], id="iSCSI with longest portal"),
    pytest.param(("iscsi", {"targetPortal": "a", "iqn": "eui.0123456789abcdef", "secretRef": {}, "initiatorName": "abc"}),
        ["iscsi.secretRef.name: Required value",
         'iscsi.initiatorname: Invalid value: "abc": must be valid format'],
        id="iSCSI with unnamed secret and invalid initiator"),
    pytest.param(("cinder", {"volumeID": "v", "secretRef": {}}),
        ["cinder.secretRef.name: Required value",
         "cinder.secretRef.namespace: Required value"], id="Cinder with empty secret"),
    pytest.param(("azureFile", {"secretName": "s", "shareName": "s", "secretNamespace": ""}),
        ["azureFile.secretNamespace: Required value"], id="Azure file with empty namespace"),
    pytest.param(("storageos", {"volumeName": "v", "secretRef": {}}),
        ["storageos.secretRef.name: Required value",
         "storageos.secretRef.namespace: Required value"], id="StorageOS with empty secret"),
    pytest.param(("storageos", {"volumeNamespace": "A"}),
        ["storageos.volumeName: Required value",
         ('storageos.volumeNamespace: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case '
          "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
          "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="StorageOS without name"),
    pytest.param(("csi", {}),
        ["csi.driver: Required value",
         "csi.volumeHandle: Required value"], id="CSI without fields"),
    pytest.param(("csi", {"driver": "d", "volumeHandle": "h", "controllerPublishSecretRef": {}, "controllerExpandSecretRef": {}, "nodePublishSecretRef": {}, "nodeExpandSecretRef": {}}),
        ["csi.controllerPublishSecretRef.name: Required value",
         "csi.controllerPublishSecretRef.namespace: Required value",
         "csi.controllerExpandSecretRef.name: Required value",
         "csi.controllerExpandSecretRef.namespace: Required value",
         "csi.nodePublishSecretRef.name: Required value",
         "csi.nodePublishSecretRef.namespace: Required value",
         "csi.nodeExpandSecretRef.name: Required value",
         "csi.nodeExpandSecretRef.namespace: Required value"], id="CSI with empty secrets"),
    pytest.param(("csi", {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {}, "nodePublishSecretRef": {"name": "A", "namespace": "B"}}),
        [('csi.nodePublishSecretRef.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"),
         ('csi.nodePublishSecretRef.namespace: Invalid value: "B": a lowercase RFC 1123 label must consist of '
          "lower case alphanumeric characters or '-', and must start and end with an alphanumeric character "
          "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")],
        id="CSI with invalid secret"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SOURCES)
def test_sources_of_volumes_are_validated(change, expected):
    assert source_errors(*change) == expected


CHANGES = [
    pytest.param({}, {"capacity": {"storage": "2Gi"}, "persistentVolumeReclaimPolicy": "Retain", "accessModes": ["ReadOnlyMany"]},
        [], id="capacity and policy"),
    pytest.param({}, HOST,
        ["spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"], id="source"),
    pytest.param({}, {"csi.volumeHandle": "i"},
        ["spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"], id="handle"),
    pytest.param({}, {"csi.controllerExpandSecretRef": {"name": "s", "namespace": "ns"}},
        [], id="secret for expansion is added"),
    pytest.param({"csi.controllerExpandSecretRef": {"name": "s", "namespace": "ns"}}, {"csi.controllerExpandSecretRef": {"name": "t", "namespace": "ns"}},
        ["spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"],
        id="secret for expansion changes"),
    pytest.param({"volumeMode": "Block"}, {"volumeMode": "Filesystem"},
        ['volumeMode: Invalid value: "Filesystem": field is immutable'], id="volume mode"),
    pytest.param({}, {"nodeAffinity": NODES}, [], id="nodes are added"),
    pytest.param({"nodeAffinity": NODES}, {},
        ["nodeAffinity: Invalid value: null: field is immutable"], id="nodes are removed"),
    pytest.param({"nodeAffinity": NODES}, {"nodeAffinity": BAD_NODES},
        [('spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "b c": '
          "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
          "must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', "
          "regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
         ("nodeAffinity: Invalid value: "
          '{"Required":{"NodeSelectorTerms":[{"MatchExpressions":[{"Key":"a","Operator":"In","Values":["b '
          'c"]}],"MatchFields":null}]}}: field is immutable')], id="nodes change"),
    pytest.param({"nodeAffinity": BAD_NODES}, {"nodeAffinity": BAD_NODES, "mountOptions": ["a"]},
        [], id="nodes stay invalid"),
    pytest.param({"volumeAttributesClassName": "a"}, {"volumeAttributesClassName": "b"},
        [], id="class of attributes changes"),
    pytest.param({"volumeAttributesClassName": "a"}, {},
        ["spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"],
        id="class of attributes is removed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_volumes_are_validated(old, new, expected):
    assert changed_errors(old, new) == expected
