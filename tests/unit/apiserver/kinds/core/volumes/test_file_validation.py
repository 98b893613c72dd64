"""Validation of the volumes of pods: files from other objects, and templates of claims."""

import pytest

from tests.support.field_rules import changed, create_errors
from tests.support.valid_pods import POD

NAME = {"apiVersion": "v1", "fieldPath": "metadata.name"}
CPU = {"containerName": "c", "resource": "limits.cpu"}
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}


def source_errors(source):
    """Return the errors of a pod with one volume, without the path of the volume."""
    texts = create_errors("v1", "Pod", changed(POD, {"spec.volumes": [{"name": "v", **source}]}))
    return [text.removeprefix("spec.volumes[0].") for text in texts]


def files(*items):
    return {"configMap": {"name": "c", "items": [*items]}}


def downward(**file):
    return {"downwardAPI": {"items": [{"path": "p", **file}]}}


def projected(*sources):
    return {"projected": {"sources": [*sources]}}


def token(**values):
    return projected({"serviceAccountToken": {"path": "t", "expirationSeconds": 600, **values}})


def ephemeral(**spec):
    return {"ephemeral": {"volumeClaimTemplate": {"spec": {**CLAIM["spec"], **spec}}}}


FILES = [
    pytest.param(files({"key": "a", "path": "b/c", "mode": 0}), [], id="ConfigMap"),
    pytest.param({"configMap": {"defaultMode": 511}},
        ["configMap.name: Required value"], id="ConfigMap without name"),
    pytest.param(files({}),
        ["configMap.items[0].key: Required value",
         "configMap.items[0].path: Required value"], id="file without fields"),
    pytest.param(files({"key": "a", "path": "/b"}),
        ['configMap.items[0].path: Invalid value: "/b": must be a relative path'], id="file at an absolute path"),
    pytest.param(files({"key": "a", "path": "b/../../c"}),
        ["configMap.items[0].path: Invalid value: \"b/../../c\": must not contain '..'"], id="file above"),
    pytest.param(files({"key": "a", "path": "..b"}),
        ["configMap.items[0].path: Invalid value: \"..b\": must not start with '..'"], id="file that begins with dots"),
    pytest.param(files({"key": "a", "path": "b", "mode": 512}),
        [("configMap.items[0].mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both "
          "inclusive")], id="file with mode too high"),
    pytest.param(files({"key": "a", "path": "b", "mode": -1}),
        [("configMap.items[0].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both "
          "inclusive")], id="file with negative mode"),
    pytest.param(downward(fieldRef=NAME), [], id="field"),
    pytest.param(downward(resourceFieldRef=CPU, mode=256), [], id="resource"),
    pytest.param(downward(),
        ["downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"],
        id="neither field nor resource"),
    pytest.param(downward(fieldRef=NAME, resourceFieldRef=CPU),
        [('downwardAPI: Invalid value: "resource": fieldRef and resourceFieldRef can not be specified '
          "simultaneously")], id="field and resource"),
    pytest.param(downward(path="", fieldRef=NAME), ["downwardAPI.path: Required value"], id="field without path"),
    pytest.param(downward(fieldRef={**NAME, "fieldPath": "spec.nodeName"}),
        [('downwardAPI.fieldRef.fieldPath: Unsupported value: "spec.nodeName": supported values: '
          '"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"')],
        id="field that volumes do not have"),
    pytest.param(downward(fieldRef={**NAME, "fieldPath": "metadata.labels"}), [], id="labels"),
    pytest.param(downward(resourceFieldRef={"resource": "limits.cpu"}),
        ["downwardAPI.resourceFieldRef.containerName: Required value"], id="resource without container"),
    pytest.param(downward(resourceFieldRef={**CPU, "divisor": "2"}),
        [("downwardAPI.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 "
          "are supported with the cpu resource")], id="resource with invalid divisor"),
    pytest.param(downward(fieldRef=NAME, mode=512),
        ["downwardAPI.mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"],
        id="invalid mode of a field"),
    pytest.param({"downwardAPI": {"defaultMode": 512}},
        [("downwardAPI.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both "
          "inclusive")], id="invalid mode of all fields"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), FILES)
def test_files_of_volumes_are_validated(change, expected):
    assert source_errors(change) == expected


PROJECTED = [
    pytest.param({"projected": {}}, [], id="nothing"),
    pytest.param({"projected": {"defaultMode": 512}},
        [("projected.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both "
          "inclusive")], id="invalid mode"),
    pytest.param(projected({"secret": {"name": "s"}}, {"configMap": {"name": "c"}}, {"downwardAPI": {"items": [{"path": "p", "fieldRef": NAME}]}}),
        [], id="all sources"),
    pytest.param(projected({"secret": {"name": "s"}, "configMap": {"name": "c"}}),
        ["projected.sources[0]: Forbidden: may not specify more than 1 volume type per source"],
        id="two types in one source"),
    pytest.param(projected({"secret": {}}, {"configMap": {}}),
        ["projected.sources[0].secret.name: Required value",
         "projected.sources[1].configMap.name: Required value"], id="sources without names"),
    pytest.param(projected({"secret": {"name": "s", "items": [{}]}}, {"downwardAPI": {"items": [{}]}}),
        ["projected.sources[0].secret.items[0].key: Required value",
         "projected.sources[0].secret.items[0].path: Required value",
         "projected.sources[1].downwardAPI.path: Required value",
         "projected.sources[1].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"],
        id="invalid items"),
    pytest.param(projected({"secret": {"name": "s", "items": [{"key": "a", "path": "p"}]}}, {"configMap": {"name": "c", "items": [{"key": "a", "path": "p"}]}}),
        ['projected: Invalid value: "c": conflicting duplicate paths'], id="same path in two sources"),
    pytest.param(projected({"secret": {"name": "s", "items": [{"key": "a", "path": "p"}]}}, {"downwardAPI": {"items": [{"path": "p", "fieldRef": NAME}]}}),
        ['projected: Invalid value: "p": conflicting duplicate paths'], id="same path of a field"),
    pytest.param(token(), [], id="shortest token"),
    pytest.param(token(expirationSeconds=599),
        [("projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a "
          "duration less than 10 minutes")], id="token too short"),
    pytest.param(token(expirationSeconds=4294967296), [], id="longest token"),
    pytest.param(token(expirationSeconds=4294967297),
        [("projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not "
          "specify a duration larger than 2^32 seconds")], id="token too long"),
    pytest.param(token(path=""), ["projected.path: Required value"], id="token without path"),
    pytest.param(token(path="../t"),
        ["projected.path: Invalid value: \"../t\": must not contain '..'"], id="token above"),
    pytest.param(token(path="..t"),
        ["projected.path: Invalid value: \"..t\": must not start with '..'"], id="token at a path that begins with dots"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), PROJECTED)
def test_projected_volumes_are_validated(change, expected):
    assert source_errors(change) == expected


EPHEMERAL = [
    pytest.param({"ephemeral": {}}, ["ephemeral.volumeClaimTemplate: Required value"], id="no template"),
    pytest.param(ephemeral(), [], id="template"),
    pytest.param({"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "a", "labels": {"a": "b"}}, **CLAIM}}},
        ["ephemeral.volumeClaimTemplate.metadata.name: Forbidden: cannot be set"], id="template with name"),
    pytest.param({"ephemeral": {"volumeClaimTemplate": {"metadata": {"finalizers": ["a/b"], "ownerReferences": [], "deletionGracePeriodSeconds": 0}, **CLAIM}}},
        ["ephemeral.volumeClaimTemplate.metadata.deletionGracePeriodSeconds: Forbidden: cannot be set",
         "ephemeral.volumeClaimTemplate.metadata.ownerReferences: Forbidden: cannot be set",
         "ephemeral.volumeClaimTemplate.metadata.finalizers: Forbidden: cannot be set"],
        id="template with finalizers and owners"),
    pytest.param({"ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a b": "c d"}, "annotations": {"a b": "c"}}, **CLAIM}}},
        [('ephemeral.volumeClaimTemplate.metadata.annotations: Invalid value: "a b": name part must consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: "a b": name part must consist of '
          "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
          "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('ephemeral.volumeClaimTemplate.metadata.labels: Invalid value: "c d": a valid label must be an empty '
          "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
          "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
          "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")], id="template with invalid labels"),
    pytest.param({"ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}}}},
        ["ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required",
         "ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"], id="template without spec"),
    pytest.param(ephemeral(accessModes=[]),
        ["ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required"],
        id="template without modes"),
    pytest.param(ephemeral(accessModes=["ReadWrite"]),
        [('ephemeral.volumeClaimTemplate.spec.accessModes: Unsupported value: "ReadWrite": supported values: '
          '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"')], id="template with unknown mode"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), EPHEMERAL)
def test_templates_of_claims_are_validated(change, expected):
    assert source_errors(change) == expected
