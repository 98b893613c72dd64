"""The order of several errors of a new object, as kube-apiserver 1.37 reports them: those of declared rules come last."""

import pytest

from tests.support import field_rules

ORDERS = [
    pytest.param(
        "v1",
        "ReplicationController",
        {"spec": {"replicas": -1, "minReadySeconds": -1, "selector": {"a": "b"}}},
        ["spec.template", "metadata.name", "spec.replicas", "spec.minReadySeconds"],
        id="counts and name of a controller",
    ),
    pytest.param(
        "resource.k8s.io/v1",
        "DeviceClass",
        {"spec": {"selectors": [{}], "extendedResourceName": "x"}},
        ["spec.selectors[0].cel", "metadata.name", "spec.extendedResourceName"],
        id="name of a class",
    ),
    pytest.param(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        {"spec": {"type": "Other", "limited": {}}},
        ["metadata.name", "spec.type", "spec.limited", "spec.limited.limitResponse.type"],
        id="fields of a forbidden member",
    ),
    pytest.param(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        {"spec": {"limited": {"limitResponse": {"type": "Queue"}}}},
        ["metadata.name", "spec.limited", "spec.type", "spec.limited.limitResponse.queuing"],
        id="required field of a forbidden member",
    ),
]


@pytest.mark.parametrize(("api_version", "kind", "tree", "fields"), ORDERS)
def test_errors_of_declared_rules_come_last(api_version, kind, tree, fields):
    where = {"namespace": "ns"} if field_rules.is_namespaced(api_version, kind) else {}
    errors = field_rules.create_errors(api_version, kind, {"metadata": {"name": "Bad_Name", **where}} | tree)
    assert [error.partition(": ")[0] for error in errors] == fields


def test_errors_of_responders_come_after_those_of_the_kind():
    spec = {"evictionResponders": [{"name": "x", "priority": 5}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    tree = {
        "metadata": {"name": "a", "namespace": "ns"},
        "spec": {"selector": {"matchLabels": {"a": "c"}}, "template": template, "replicas": -1},
    }
    *others, last, _priority = field_rules.create_errors("apps/v1", "Deployment", tree)
    assert last.startswith("spec.template.spec.evictionResponders[0].name: ")
    assert not [error for error in others if "evictionResponders" in error]
    assert "spec.template.spec.restartPolicy" in {error.partition(": ")[0] for error in others}


def test_second_version_of_stored_name_is_missing_from_stored_versions():
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version, version]}
    tree = {"metadata": {"name": "as.example.com"}, "spec": spec, "status": {"storedVersions": ["v1"]}}
    errors = field_rules.create_errors("apiextensions.k8s.io/v1", "CustomResourceDefinition", tree)
    assert errors[-1] == 'status.storedVersions: Invalid value: ["v1"]: must have the storage version v1'


@pytest.mark.parametrize(
    ("device_request", "printed"),
    [
        (
            {"name": "r", "exactly": {"allocationMode": "All"}},
            '{"name":"r","exactly":{"deviceClassName":"","allocationMode":"All"}}',
        ),
        (
            {"firstAvailable": [{"allocationMode": "All"}]},
            '{"name":"","firstAvailable":[{"name":"","deviceClassName":"","allocationMode":"All"}]}',
        ),
    ],
)
def test_duplicate_request_is_printed_with_required_fields(device_request, printed):
    tree = {
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"devices": {"requests": [device_request, device_request]}},
    }
    errors = field_rules.create_errors("resource.k8s.io/v1", "ResourceClaim", tree)
    assert f"spec.devices.requests[1]: Duplicate value: {printed}" in errors


def test_missing_name_is_no_error_of_declared_rules():
    owner = {"apiVersion": "a/b/c", "kind": "X", "name": "p", "uid": "u"}
    tree = {"metadata": {"generateName": "", "ownerReferences": [owner]}, "spec": {}}
    found = field_rules.create_errors("resource.k8s.io/v1", "DeviceClass", tree)
    assert [error.partition(": ")[0] for error in found] == [
        "metadata.name",
        "metadata.ownerReferences[0].apiVersion",
    ]
