"""Validation of containers: names, ports, variables, mounts and devices."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors
from tests.support.valid_pods import POD


def errors_of(change):
    """Return the errors of a pod whose container has other fields, without the path of the container."""
    texts = create_errors(
        "v1", "Pod", changed(POD, {f"spec.containers.0.{path}": value for path, value in change.items()})
    )
    return [text.removeprefix("spec.containers[0].") for text in texts]


MOUNT = {"name": "empty", "mountPath": "/a"}


def port(**fields):
    return {"containerPort": 80, "protocol": "TCP", **fields}


def source(value_from):
    return [{"name": "A", "valueFrom": value_from}]


def field(path):
    return source({"fieldRef": {"apiVersion": "v1", "fieldPath": path}})


def key(kind, **fields):
    return source({kind: fields})


FIELDS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"name": ""}, ["name: Required value"], id="empty name"),
    pytest.param({"name": "C"},
        [('name: Invalid value: "C": a lowercase RFC 1123 label must consist of lower case alphanumeric '
          "characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or "
          "'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')")], id="name with capitals"),
    pytest.param({"name": "c" * 63}, [], id="name of 63 characters"),
    pytest.param({"name": "c" * 64},
        [('name: Invalid value: "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc": must be no '
          "more than 63 characters")], id="name of 64 characters"),
    pytest.param({"image": ABSENT}, ["image: Required value"], id="absent image"),
    pytest.param({"image": " "},
        ['image: Invalid value: " ": must not have leading or trailing whitespace'], id="blank image"),
    pytest.param({"image": "a "},
        ['image: Invalid value: "a ": must not have leading or trailing whitespace'], id="image with trailing space"),
    pytest.param({"imagePullPolicy": ABSENT}, ["imagePullPolicy: Required value"], id="absent pull policy"),
    pytest.param({"imagePullPolicy": "Sometimes"},
        ['imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"'],
        id="unknown pull policy"),
    pytest.param({"terminationMessagePolicy": ABSENT},
        ["terminationMessagePolicy: Required value"], id="absent message policy"),
    pytest.param({"terminationMessagePolicy": "Nowhere"},
        [('terminationMessagePolicy: Unsupported value: "Nowhere": supported values: "File", '
          '"FallbackToLogsOnError"')], id="unknown message policy"),
    pytest.param({"terminationMessagePolicy": "FallbackToLogsOnError"}, [], id="message from the logs"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), FIELDS)
def test_container_fields_are_validated(change, expected):
    assert errors_of(change) == expected


PORTS = [
    pytest.param([port(containerPort=1)], [], id="lowest port"),
    pytest.param([port(containerPort=0)], ["ports[0].containerPort: Required value"], id="port zero"),
    pytest.param([{"protocol": "TCP"}], ["ports[0].containerPort: Required value"], id="absent port"),
    pytest.param([port(containerPort=-1)],
        ["ports[0].containerPort: Invalid value: -1: must be between 1 and 65535, inclusive"], id="negative port"),
    pytest.param([port(containerPort=65535)], [], id="highest port"),
    pytest.param([port(containerPort=65536)],
        ["ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive"], id="port too high"),
    pytest.param([port(hostPort=0)], [], id="host port zero is none"),
    pytest.param([port(hostPort=-1)],
        ["ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive"], id="negative host port"),
    pytest.param([port(hostPort=65536)],
        ["ports[0].hostPort: Invalid value: 65536: must be between 1 and 65535, inclusive"], id="host port too high"),
    pytest.param([port(protocol="SCTP")], [], id="protocol SCTP"),
    pytest.param([port(protocol="")], ["ports[0].protocol: Required value"], id="empty protocol"),
    pytest.param([port(protocol="tcp")],
        ['ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"'],
        id="protocol in lower case"),
    pytest.param([port(name="a" * 15)], [], id="name of 15 characters"),
    pytest.param([port(name="a" * 16)],
        ['ports[0].name: Invalid value: "aaaaaaaaaaaaaaaa": must be no more than 15 characters'],
        id="name of 16 characters"),
    pytest.param([port(name="80")],
        ['ports[0].name: Invalid value: "80": must contain at least one letter (a-z)'], id="name without letter"),
    pytest.param([port(name="a--b")],
        ['ports[0].name: Invalid value: "a--b": must not contain consecutive hyphens'], id="name with two hyphens"),
    pytest.param([port(name="-a")],
        ['ports[0].name: Invalid value: "-a": must not begin or end with a hyphen'], id="name begins with hyphen"),
    pytest.param([port(name="A")],
        [('ports[0].name: Invalid value: "A": must contain only alpha-numeric characters (a-z, 0-9), and '
          "hyphens (-)"),
         'ports[0].name: Invalid value: "A": must contain at least one letter (a-z)'], id="name in capitals"),
    pytest.param([port(name="a"), port(name="a", containerPort=81)],
        ['ports[1].name: Duplicate value: "a"'], id="duplicate name"),
    pytest.param([port(), port()], [], id="same port twice without host port"),
    pytest.param([port(hostPort=80), port(hostPort=80)],
        ['ports[1].hostPort: Duplicate value: "TCP//80"'], id="same host port twice"),
    pytest.param([port(hostPort=80, hostIP="10.0.0.1"), port(hostPort=80, hostIP="10.0.0.2")],
        [], id="same host port at two addresses"),
    pytest.param([port(hostPort=80), port(hostPort=80, protocol="UDP")], [], id="same host port by two protocols"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PORTS)
def test_ports_are_validated(change, expected):
    assert errors_of({"ports": change}) == expected


VARIABLES = [
    pytest.param([{"name": "A"}], [], id="empty value"),
    pytest.param([{"name": ""}], ["env[0].name: Required value"], id="empty name"),
    pytest.param([{"name": "a=b"}],
        [('env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable '
          "ASCII characters other than '='")], id="name with equals sign"),
    pytest.param([{"name": "a .b"}], [], id="name with a space and a dot"),
    pytest.param([{"name": "a\tb"}],
        [('env[0].name: Invalid value: "a\\tb": a valid environment variable name must consist only of '
          "printable ASCII characters other than '='")], id="name with a control character"),
    pytest.param([{"name": "ä"}],
        [('env[0].name: Invalid value: "ä": a valid environment variable name must consist only of printable '
          "ASCII characters other than '='")], id="name outside ASCII"),
    pytest.param([{"name": "A"}, {"name": "A"}], [], id="same name twice"),
    pytest.param(source({}),
        [('env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
          "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")], id="no source"),
    pytest.param([{"name": "A", "value": "b", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        ['env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
        id="value beside a source"),
    pytest.param(source({"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": {"name": "s", "key": "k"}}),
        ['env[0].valueFrom: Invalid value: "": may not have more than one field specified at a time'], id="two sources"),
    pytest.param(key("secretKeyRef", key="k"),
        [('env[0].valueFrom.secretKeyRef.name: Invalid value: "": a lowercase RFC 1123 subdomain must consist '
          "of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="Secret without name"),
    pytest.param(key("secretKeyRef", name="s_", key="k"),
        [('env[0].valueFrom.secretKeyRef.name: Invalid value: "s_": a lowercase RFC 1123 subdomain must consist '
          "of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="Secret with invalid name"),
    pytest.param(key("secretKeyRef", name="s"),
        ["env[0].valueFrom.secretKeyRef.key: Required value"], id="Secret without key"),
    pytest.param(key("configMapKeyRef", name="s", key="a/b"),
        [('env[0].valueFrom.configMapKeyRef.key: Invalid value: "a/b": a valid config key must consist of '
          "alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex "
          "used for validation is '[-._a-zA-Z0-9]+')")], id="ConfigMap with invalid key"),
    pytest.param(key("configMapKeyRef", name="s", key="k" * 253), [], id="ConfigMap key of 253 characters"),
    pytest.param(key("configMapKeyRef", name="s", key="k" * 254),
        [("env[0].valueFrom.configMapKeyRef.key: Invalid value: "
          '"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk": '
          "must be no more than 253 characters")], id="ConfigMap key of 254 characters"),
    pytest.param(key("configMapKeyRef", name="s", key=".."),
        ["env[0].valueFrom.configMapKeyRef.key: Invalid value: \"..\": must not be '..'"],
        id="ConfigMap key of two dots"),
    pytest.param(field("status.podIP"), [], id="field"),
    pytest.param(source({"fieldRef": {"fieldPath": "status.podIP"}}),
        ["env[0].valueFrom.fieldRef.apiVersion: Required value"], id="field without version"),
    pytest.param(source({"fieldRef": {"apiVersion": "v2", "fieldPath": "status.podIP"}}),
        [('env[0].valueFrom.fieldRef.fieldPath: Invalid value: "status.podIP": error converting fieldPath: '
          "unsupported pod version: v2")], id="field of another version"),
    pytest.param(source({"fieldRef": {"apiVersion": "v1"}}),
        ["env[0].valueFrom.fieldRef.fieldPath: Required value"], id="field without path"),
    pytest.param(field("spec.host"), [], id="field by its former name"),
    pytest.param(field("spec.image"),
        [('env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.image": error converting fieldPath: field '
          "label not supported: spec.image")], id="field that is unknown"),
    pytest.param(field("metadata.labels"),
        [('env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.labels": supported values: '
          '"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", '
          '"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"')], id="field that variables do not have"),
    pytest.param(field("metadata.labels['a/B']"), [], id="label"),
    pytest.param(field("metadata.labels['a b']"),
        [('env[0].valueFrom.fieldRef: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="label with invalid key"),
    pytest.param(field("metadata.annotations['EXAMPLE.com/a']"), [], id="annotation in capitals"),
    pytest.param(field("metadata.name['a']"),
        [("env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting "
          "fieldPath: field label does not support subscript: metadata.name['a']")], id="subscript of another field"),
    pytest.param(source({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}), [], id="resource"),
    pytest.param(source({"resourceFieldRef": {"containerName": "c"}}),
        ["env[0].valueFrom.resourceFieldRef.resource: Required value"], id="resource without name"),
    pytest.param(source({"resourceFieldRef": {"resource": "limits.gpu"}}),
        [('env[0].valueFrom.resourceFieldRef.resource: Unsupported value: "limits.gpu": supported values: '
          '"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", '
          '"requests.ephemeral-storage", "requests.memory"')], id="resource that is unknown"),
    pytest.param(source({"resourceFieldRef": {"resource": "requests.cpu", "divisor": "10m"}}),
        [("env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"requests.cpu\": only divisor's values 1m "
          "and 1 are supported with the cpu resource")], id="CPU with wrong divisor"),
    pytest.param(source({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1m"}}),
        [("env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"requests.memory\": only divisor's values "
          "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the memory resource")],
        id="memory with wrong divisor"),
    pytest.param(source({"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}),
        [], id="memory in Mi"),
    pytest.param(source({"resourceFieldRef": {"resource": "limits.ephemeral-storage", "divisor": "2"}}),
        [('env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.ephemeral-storage": only '
          "divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "
          "local ephemeral storage resource")], id="ephemeral storage with wrong divisor"),
    pytest.param(source({"resourceFieldRef": {"resource": "limits.hugepages-2Mi", "divisor": "2"}}),
        [("env[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.hugepages-2Mi\": only divisor's "
          "values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the hugepages "
          "resource")], id="huge pages with wrong divisor"),
    pytest.param(source({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}),
        [], id="divisor zero is the default"),
    pytest.param(source({"fileKeyRef": {"key": "K", "volumeName": "empty", "path": "a/b"}}), [], id="file"),
    pytest.param(source({"fileKeyRef": {}}),
        ["env[0].valueFrom.fileKeyRef.key: Required value",
         "env[0].valueFrom.fileKeyRef.volumeName: Required value",
         "env[0].valueFrom.fileKeyRef.path: Required value",
         'env[0].valueFrom.fileKeyRef.volumeName: Not found: ""'], id="file without fields"),
    pytest.param(source({"fileKeyRef": {"key": "K", "volumeName": "empty", "path": "../b"}}),
        ["env[0].valueFrom.fileKeyRef.path: Invalid value: \"../b\": must not contain '..'"],
        id="file outside the volume"),
    pytest.param(source({"fileKeyRef": {"key": "K", "volumeName": "empty", "path": "/b"}}),
        [], id="file at an absolute path"),
    pytest.param(source({"fileKeyRef": {"key": "K", "volumeName": "empty", "path": "..b"}}),
        [], id="file whose name begins with dots"),
    pytest.param(source({"fileKeyRef": {"key": "K", "volumeName": "none", "path": "b"}}),
        ['env[0].valueFrom.fileKeyRef.volumeName: Not found: "none"'], id="file of an unknown volume"),
    pytest.param(source({"fileKeyRef": {"key": "K", "volumeName": "claim", "path": "b"}}),
        [('env[0].valueFrom.fileKeyRef.volumeName: Invalid value: "claim": referenced volume must be of type '
          "emptyDir")], id="file of a claim"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), VARIABLES)
def test_variables_are_validated(change, expected):
    assert errors_of({"env": change}) == expected


SOURCES = [
    pytest.param([{"prefix": "a_", "configMapRef": {"name": "c"}}], [], id="ConfigMap with prefix"),
    pytest.param([{"secretRef": {"name": "s"}}], [], id="Secret"),
    pytest.param([{}],
        ['envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`'], id="no reference"),
    pytest.param([{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}],
        ['envFrom: Invalid value: "": may not have more than one field specified at a time'], id="two references"),
    pytest.param([{"configMapRef": {}}],
        ["envFrom[0].configMapRef.name: Required value"], id="reference without name"),
    pytest.param([{"secretRef": {"name": "_"}}],
        [('envFrom[0].secretRef.name: Invalid value: "_": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="reference with invalid name"),
    pytest.param([{"prefix": "=", "secretRef": {"name": "s"}}],
        [('envFrom[0].prefix: Invalid value: "=": a valid environment variable name must consist only of '
          "printable ASCII characters other than '='")], id="prefix with equals sign"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), SOURCES)
def test_sources_of_variables_are_validated(change, expected):
    assert errors_of({"envFrom": change}) == expected


MOUNTS = [
    pytest.param([{"name": "empty", "mountPath": "/a"}], [], id="mount"),
    pytest.param([{"name": "empty", "mountPath": "a"}], [], id="relative path"),
    pytest.param([{"name": "", "mountPath": "/a"}],
        ["volumeMounts[0].name: Required value",
         'volumeMounts[0].name: Not found: ""'], id="empty name"),
    pytest.param([{"name": "none", "mountPath": "/a"}],
        ['volumeMounts[0].name: Not found: "none"'], id="unknown volume"),
    pytest.param([{"name": "empty", "mountPath": ""}],
        ["volumeMounts[0].mountPath: Required value"], id="empty path"),
    pytest.param([{"name": "empty", "mountPath": "/a"}, {"name": "empty", "mountPath": "/b"}],
        [], id="same volume at two paths"),
    pytest.param([{"name": "empty", "mountPath": "/a"}, {"name": "claim", "mountPath": "/a"}],
        ['volumeMounts[1].mountPath: Invalid value: "/a": must be unique'], id="same path twice"),
    pytest.param([{**MOUNT, "subPath": "a..b/c"}], [], id="part of a volume"),
    pytest.param([{**MOUNT, "subPath": "/b"}],
        ['volumeMounts.subPath: Invalid value: "/b": must be a relative path'], id="absolute part of a volume"),
    pytest.param([{**MOUNT, "subPath": "b/../.."}],
        ["volumeMounts.subPath: Invalid value: \"b/../..\": must not contain '..'"], id="part outside a volume"),
    pytest.param([{**MOUNT, "subPathExpr": "$(A)/b"}], [], id="computed part"),
    pytest.param([{**MOUNT, "subPathExpr": "../b"}],
        ["volumeMounts.subPathExpr: Invalid value: \"../b\": must not contain '..'"],
        id="computed part outside a volume"),
    pytest.param([{**MOUNT, "subPathExpr": "/b"}],
        ['volumeMounts.subPathExpr: Invalid value: "/b": must be a relative path'], id="absolute computed part"),
    pytest.param([{**MOUNT, "subPath": "b", "subPathExpr": "b"}],
        ['volumeMounts[0].subPathExpr: Invalid value: "b": subPathExpr and subPath are mutually exclusive'],
        id="constant and computed part"),
    pytest.param([{**MOUNT, "mountPropagation": "HostToContainer"}], [], id="propagation from the host"),
    pytest.param([{**MOUNT, "mountPropagation": "Both"}],
        [('volumeMounts.mountPropagation: Unsupported value: "Both": supported values: "Bidirectional", '
          '"HostToContainer", "None"')], id="unknown propagation"),
    pytest.param([{**MOUNT, "mountPropagation": ""}],
        [('volumeMounts.mountPropagation: Unsupported value: "": supported values: "Bidirectional", '
          '"HostToContainer", "None"')], id="empty propagation"),
    pytest.param([{**MOUNT, "mountPropagation": "Bidirectional"}],
        [("volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only to "
          "privileged containers")], id="propagation in both directions without privileges"),
    pytest.param([{**MOUNT, "readOnly": True, "recursiveReadOnly": "Enabled", "mountPropagation": "None"}],
        [], id="recursively read-only"),
    pytest.param([{**MOUNT, "recursiveReadOnly": "IfPossible"}],
        ["volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
        id="recursively read-only of a writable mount"),
    pytest.param([{**MOUNT, "readOnly": True, "recursiveReadOnly": "Enabled", "mountPropagation": "HostToContainer"}],
        [("volumeMounts.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or "
          "not specified")], id="recursively read-only with propagation"),
    pytest.param([{**MOUNT, "recursiveReadOnly": "Disabled"}], [], id="not recursively read-only"),
    pytest.param([{**MOUNT, "recursiveReadOnly": "Yes"}],
        [('volumeMounts.recursiveReadOnly: Unsupported value: "Yes": supported values: "Disabled", "Enabled", '
          '"IfPossible"')], id="unknown recursion"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), MOUNTS)
def test_mounts_are_validated(change, expected):
    assert errors_of({"volumeMounts": change}) == expected


DEVICES = [
    pytest.param([{"name": "claim", "devicePath": "/dev/a"}], [], id="device of a claim"),
    pytest.param([{"devicePath": "/dev/a"}],
        ["volumeDevices[0].name: Required value",
         'volumeDevices[0].name: Not found: ""'], id="empty name"),
    pytest.param([{"name": "none", "devicePath": "/dev/a"}],
        ['volumeDevices[0].name: Not found: "none"'], id="unknown volume"),
    pytest.param([{"name": "empty", "devicePath": "/dev/a"}],
        [('volumeDevices[0].name: Invalid value: "empty": can only use volume source type of '
          "PersistentVolumeClaim or Ephemeral for block mode")], id="device of an empty directory"),
    pytest.param([{"name": "claim", "devicePath": ""}],
        ["volumeDevices[0].devicePath: Required value"], id="empty path"),
    pytest.param([{"name": "claim", "devicePath": "/dev/a"}, {"name": "claim", "devicePath": "/dev/b"}],
        ['volumeDevices[1].name: Invalid value: "claim": must be unique'], id="same volume twice"),
    pytest.param([{"name": "claim", "devicePath": "/dev/a"}, {"name": "other", "devicePath": "/dev/a"}],
        ['volumeDevices[1].devicePath: Invalid value: "/dev/a": must be unique'], id="same path twice"),
    pytest.param([{"name": "claim", "devicePath": "/dev/../a"}],
        ["volumeDevices[0].devicePath: Invalid value: \"/dev/../a\": can not contain backsteps ('..')"],
        id="path with backsteps"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), DEVICES)
def test_devices_are_validated(change, expected):
    assert errors_of({"volumeDevices": change}) == expected


CONTAINERS = [
    pytest.param({"volumeDevices": [{"name": "claim", "devicePath": "/dev/a"}], "volumeMounts": [{"name": "claim", "mountPath": "/a"}]},
        ['volumeMounts[0].name: Invalid value: "claim": must not already exist in volumeDevices',
         'volumeDevices[0].name: Invalid value: "claim": must not already exist in volumeMounts'], id="same volume"),
    pytest.param({"volumeDevices": [{"name": "claim", "devicePath": "/a"}], "volumeMounts": [{"name": "other", "mountPath": "/a"}]},
        ['volumeMounts[0].mountPath: Invalid value: "/a": must not already exist as a path in volumeDevices',
         'volumeDevices[0].devicePath: Invalid value: "/a": must not already exist as a path in volumeMounts'],
        id="same path"),
    pytest.param({"volumeDevices": [{"name": "claim", "devicePath": "/b"}], "volumeMounts": [{"name": "other", "mountPath": "/a"}]},
        [], id="other volume and path"),
    pytest.param({"volumeMounts": [{**MOUNT, "mountPropagation": "Bidirectional"}], "securityContext": {"privileged": True}},
        [], id="privileged container propagates in both directions"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CONTAINERS)
def test_device_and_mount_exclude_each_other(change, expected):
    assert errors_of(change) == expected
