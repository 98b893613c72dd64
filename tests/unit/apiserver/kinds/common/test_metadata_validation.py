"""Validation of metadata, which is the same for all kinds."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors

CONFIG_MAP = {"metadata": {"name": "a", "namespace": "ns"}}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "1"}
ENTRY = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
DELETED = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


def tree(fields):
    return changed(CONFIG_MAP, {f"metadata.{name}": value for name, value in fields.items()})


def errors_of(change):
    return create_errors("v1", "ConfigMap", tree(change))


def distinct_errors(old, new):
    """Return the errors of an update once each; updates check some metadata twice."""
    return [*dict.fromkeys(update_errors("v1", "ConfigMap", tree(old), tree(new)))]


def node_errors(metadata):
    return create_errors("v1", "Node", {"metadata": metadata})


def service_errors(name):
    tree = {
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"type": "ExternalName", "externalName": "a", "sessionAffinity": "None"},
    }
    return create_errors("v1", "Service", tree)


def role_errors(name):
    return create_errors(
        "rbac.authorization.k8s.io/v1", "Role", {"metadata": {"name": name, "namespace": "ns"}}
    )


METADATA = [
    pytest.param({"name": ""}, ["metadata.name: Required value: name or generateName is required"], id="no name"),
    pytest.param({"name": "a" * 253}, [], id="name of 253 characters"),
    pytest.param({"name": "a" * 254},
        ['metadata.name: Invalid value: "' + "a" * 254 + '": must be no more than 253 characters'],
        id="name of 254 characters"),
    pytest.param({"name": "A"},
        [('metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid name"),
    pytest.param({"generateName": "a-"}, [], id="beginning of a name"),
    pytest.param({"generateName": "AB-"},
        [('metadata.generateName: Invalid value: "AB-": a lowercase RFC 1123 subdomain must consist of lower '
          "case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
          "(e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid beginning of a name"),
    pytest.param({"generateName": "A-"}, [], id="beginning of a name whose end is masked"),
    pytest.param({"namespace": ABSENT}, ["metadata.namespace: Required value"], id="no namespace"),
    pytest.param({"namespace": "a.b"},
        ['metadata.namespace: Invalid value: "a.b": must not contain dots'], id="invalid namespace"),
    pytest.param({"generation": -1},
        ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"], id="negative generation"),
    pytest.param({"labels": {"example.com/a": "b", "c": ""}}, [], id="labels"),
    pytest.param({"labels": {"a" * 63: "b" * 63}}, [], id="label of 63 characters"),
    pytest.param({"labels": {"a" * 64: "b" * 64}},
        ['metadata.labels: Invalid value: "' + "a" * 64 + '": name part must be no more than 63 bytes',
         'metadata.labels: Invalid value: "' + "b" * 64 + '": must be no more than 63 bytes'],
        id="label of 64 characters"),
    pytest.param({"labels": {"A_/a": "b"}},
        [('metadata.labels: Invalid value: "A_/a": prefix part a lowercase RFC 1123 subdomain must consist of '
          "lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
          "character (e.g. 'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="invalid domain of a label"),
    pytest.param({"labels": {"/a": "b"}},
        ['metadata.labels: Invalid value: "/a": prefix part must be non-empty'], id="empty domain of a label"),
    pytest.param({"labels": {"a/b/c": "d"}},
        [('metadata.labels: Invalid value: "a/b/c": a valid label key must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') "
          "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")], id="label with two slashes"),
    pytest.param({"annotations": {"EXAMPLE.com/A": "any text"}}, [], id="annotation in capitals"),
    pytest.param({"annotations": {"a b": "c"}},
        [('metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '
          "'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
          "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")],
        id="invalid annotation"),
    pytest.param({"annotations": {"a": "b" * (256 * 1024 - 1)}}, [], id="annotations of 256 KiB"),
    pytest.param({"annotations": {"a": "b" * 256 * 1024}},
        ["metadata.annotations: Too long: may not be more than 262144 bytes"], id="larger annotations"),
    pytest.param({"finalizers": ["kubernetes", "orphan", "example.com/a"]}, [], id="finalizers"),
    pytest.param({"finalizers": ["a"]},
        [('metadata.finalizers[0]: Invalid value: "a": name is neither a standard finalizer name nor is it '
          "fully qualified")], id="finalizer without domain"),
    pytest.param({"finalizers": ["a b"]},
        [("metadata.finalizers: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', "
          "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"),
         ('metadata.finalizers[0]: Invalid value: "a b": name is neither a standard finalizer name nor is it '
          "fully qualified")], id="invalid finalizer"),
    pytest.param({"finalizers": ["orphan", "foregroundDeletion"]},
        [('metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and '
          "foregroundDeletion cannot be both set")], id="finalizers that exclude each other"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), METADATA)
def test_metadata_are_validated(change, expected):
    assert errors_of(change) == expected


OWNERS = [
    pytest.param([OWNER], [], id="owner"),
    pytest.param([{}],
        ["metadata.ownerReferences[0].apiVersion: Required value: must not be empty",
         "metadata.ownerReferences[0].kind: Required value: must not be empty",
         "metadata.ownerReferences[0].name: Required value: must not be empty",
         "metadata.ownerReferences[0].uid: Required value: must not be empty"], id="empty owner"),
    pytest.param([{**OWNER, "apiVersion": "apps/"}],
        ['metadata.ownerReferences[0].apiVersion: Invalid value: "apps/": must be <group>/<version> or <version>'],
        id="owner without version"),
    pytest.param([{**OWNER, "apiVersion": "a/b/c"}],
        ['metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>'],
        id="owner with two slashes"),
    pytest.param([{**OWNER, "apiVersion": "v1", "kind": "Event"}],
        [('metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"r","uid":"1"}: '
          "/v1, Kind=Event is disallowed from being an owner")], id="owner that is an event"),
    pytest.param([{**OWNER, "controller": True}, OWNER], [], id="one controller"),
    pytest.param([{**OWNER, "controller": True}, {**OWNER, "name": "s", "controller": True}],
        [("metadata.ownerReferences: Invalid value: "
          '[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"1","controller":true},{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"s","uid":"1","controller":true}]: '
          'Only one reference can have Controller set to true. Found "true" in references for ReplicaSet/r and '
          "ReplicaSet/s")], id="two controllers"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), OWNERS)
def test_owners_are_validated(change, expected):
    assert errors_of({"ownerReferences": change}) == expected


MANAGERS = [
    pytest.param([ENTRY], [], id="entry"),
    pytest.param([{**ENTRY, "operation": "Patch"}],
        ['metadata.managedFields[0].operation: Unsupported value: "Patch": supported values: "Apply", "Update"'],
        id="unknown operation"),
    pytest.param([{}],
        ["metadata.managedFields[0].operation: Required value: must not be empty"], id="no operation"),
    pytest.param([{**ENTRY, "fieldsType": "FieldsV2"}],
        ['metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`'],
        id="unknown type of fields"),
    pytest.param([{**ENTRY, "manager": "m" * 128}], [], id="manager of 128 characters"),
    pytest.param([{**ENTRY, "manager": "m" * 129}],
        ["metadata.managedFields[0].manager: Too long: may not be more than 128 bytes"], id="manager of 129 characters"),
    pytest.param([{**ENTRY, "manager": "ä\n"}],
        ['metadata.managedFields[0].manager: Invalid value: "ä\\n": invalid character U+000A (at position 2)'],
        id="manager that is not printable"),
    pytest.param([{**ENTRY, "subresource": "s" * 256}], [], id="subresource of 256 characters"),
    pytest.param([{**ENTRY, "subresource": "s" * 257}],
        ["metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes"],
        id="subresource of 257 characters"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), MANAGERS)
def test_managed_fields_are_validated(change, expected):
    assert errors_of({"managedFields": change}) == expected


CHANGES = [
    pytest.param({}, {"labels": {"a": "b"}, "annotations": {"c": "d"}}, [], id="labels and annotations"),
    pytest.param({}, {"labels": {"a b": "c"}},
        [("metadata.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' "
          "or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
          "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")], id="invalid labels"),
    pytest.param({}, {"name": "b"}, ['metadata.name: Invalid value: "b": field is immutable'], id="name"),
    pytest.param({}, {"namespace": "b"},
        ['metadata.namespace: Invalid value: "b": field is immutable'], id="namespace"),
    pytest.param({"uid": "1"}, {"uid": "2"}, ['metadata.uid: Invalid value: "2": field is immutable'], id="UID"),
    pytest.param({"creationTimestamp": "2030-01-01T00:00:00Z"}, {"creationTimestamp": "2030-01-02T00:00:00Z"},
        ['metadata.creationTimestamp: Invalid value: "2030-01-02T00:00:00Z": field is immutable'], id="time of creation"),
    pytest.param({}, DELETED,
        ['metadata.deletionTimestamp: Invalid value: "2030-01-01T00:00:00Z": field is immutable'], id="time of deletion"),
    pytest.param({**DELETED, "deletionGracePeriodSeconds": 1}, {**DELETED, "deletionGracePeriodSeconds": 0},
        ["metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable"], id="grace period"),
    pytest.param({"generation": 1}, {"generation": 2}, [], id="later generation"),
    pytest.param({"generation": 2}, {"generation": 1},
        ["metadata.generation: Invalid value: 1: must not be decremented"], id="earlier generation"),
    pytest.param({}, {"finalizers": ["a/b"]}, [], id="finalizer"),
    pytest.param({**DELETED, "finalizers": ["a/b"]}, {**DELETED, "finalizers": ["a/b", "a/d", "a/c"]},
        [("metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found "
          'new finalizers []string{"a/c", "a/d"}')], id="finalizer of a deleted object"),
    pytest.param({**DELETED, "finalizers": ["a/b"]}, DELETED, [], id="finalizer of a deleted object is removed"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_changes_of_metadata_are_validated(old, new, expected):
    assert distinct_errors(old, new) == expected


def test_object_of_cluster_has_no_namespace():
    assert node_errors({"name": "n"}) == []
    assert node_errors({"name": "n", "namespace": "ns"}) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1a", []),
        ("a.b", ['metadata.name: Invalid value: "a.b": must not contain dots']),
    ],
)
def test_name_of_service_is_label(name, expected):
    assert service_errors(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("system:A b", []),
        (".", ["metadata.name: Invalid value: \".\": may not be '.'"]),
        (
            "a/b%c",
            [
                "metadata.name: Invalid value: \"a/b%c\": may not contain '/'",
                "metadata.name: Invalid value: \"a/b%c\": may not contain '%'",
            ],
        ),
    ],
)
def test_name_of_role_is_path_segment(name, expected):
    assert role_errors(name) == expected
