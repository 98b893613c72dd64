"""Validation of roles and bindings."""

import pytest

from tests.support.field_rules import create_errors, update_errors

GROUP = "rbac.authorization.k8s.io"
VERSION = f"{GROUP}/v1"
RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
ROLE = {"apiGroup": GROUP, "kind": "Role", "name": "r"}
CLUSTER_ROLE = {**ROLE, "kind": "ClusterRole"}
BAD = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}


def role_errors(kind, rules):
    where = {"namespace": "ns"} if kind == "Role" else {}
    return create_errors(VERSION, kind, {"metadata": {"name": "r:s", **where}, "rules": rules})


def cluster_role(*selectors):
    return {"metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": [*selectors]}}


def binding(role, *subjects, namespace="ns"):
    where = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": "b", **where}, "roleRef": role, "subjects": [*subjects]}


def binding_errors(role, *subjects):
    return create_errors(VERSION, "RoleBinding", binding(role, *subjects))


def cluster_binding_errors(role, *subjects):
    return create_errors(VERSION, "ClusterRoleBinding", binding(role, *subjects, namespace=""))


def account(**fields):
    return {"kind": "ServiceAccount", "name": "a", "namespace": "ns", **fields}


ROLES = [
    pytest.param([], [], id="no rules"),
    pytest.param([RULE], [], id="rule"),
    pytest.param([{**RULE, "verbs": []}],
        ["rules[0].verbs: Required value"], id="rule without verbs"),
    pytest.param([{**RULE, "apiGroups": []}],
        ["rules[0].apiGroups: Required value: resource rules must supply at least one api group"],
        id="rule without groups"),
    pytest.param([{**RULE, "resources": []}],
        ["rules[0].resources: Required value: resource rules must supply at least one resource"],
        id="rule without resources"),
    pytest.param([{}],
        ["rules[0].apiGroups: Required value: resource rules must supply at least one api group",
         "rules[0].resources: Required value: resource rules must supply at least one resource",
         "rules[0].verbs: Required value"], id="empty rule"),
    pytest.param([{"verbs": ["get"], "nonResourceURLs": ["/a"]}],
        ['rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs'],
        id="rule for URLs"),
    pytest.param([{**RULE, "nonResourceURLs": ["/a"]}],
        ['rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs',
         ('rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
          "non-resource URLs")], id="rule for URLs and resources"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), ROLES)
def test_roles_are_validated(change, expected):
    assert role_errors("Role", change) == expected


CLUSTER_ROLES = [
    pytest.param([{"verbs": ["get"], "nonResourceURLs": ["/a"]}], [], id="rule for URLs"),
    pytest.param([{"nonResourceURLs": ["/a"]}],
        ["rules[0].verbs: Required value"], id="rule for URLs without verbs"),
    pytest.param([{"verbs": ["get"], "nonResourceURLs": ["/a"], "apiGroups": [""]}],
        [('rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
          "non-resource URLs")], id="rule for URLs and groups"),
    pytest.param([{"verbs": ["get"], "nonResourceURLs": ["/a"], "resourceNames": ["a"]}],
        [('rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
          "non-resource URLs")], id="rule for URLs and names"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLUSTER_ROLES)
def test_cluster_roles_are_validated(change, expected):
    assert role_errors("ClusterRole", change) == expected


AGGREGATIONS = [
    pytest.param([{"matchLabels": {"a": "b"}}], [], id="selector"),
    pytest.param([],
        [("aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if "
          "aggregationRule is non-nil")], id="no selectors"),
    pytest.param([{}], [], id="empty selector"),
    pytest.param([BAD],
        [('aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values[0]: Invalid value: "b c": a valid '
          "label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
          "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
          "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
         "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."], id="invalid selector"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), AGGREGATIONS)
def test_aggregations_are_validated(change, expected):
    assert create_errors(VERSION, "ClusterRole", cluster_role(*change)) == expected


AGGREGATION_CHANGES = [
    pytest.param({}, BAD,
        [('aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values[0]: Invalid value: "b c": a valid '
          "label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
          "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
          "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"),
         "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."],
        id="selector becomes invalid"),
    pytest.param(BAD, BAD,
        ["aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector."],
        id="selector stays invalid"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), AGGREGATION_CHANGES)
def test_changes_of_aggregations_are_validated(old, new, expected):
    assert update_errors(VERSION, "ClusterRole", cluster_role(old), cluster_role(new)) == expected


BINDINGS = [
    pytest.param([ROLE], [], id="no subjects"),
    pytest.param([CLUSTER_ROLE], [], id="role of the cluster"),
    pytest.param([{}],
        ['roleRef.apiGroup: Unsupported value: "": supported values: "rbac.authorization.k8s.io"',
         'roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole"',
         "roleRef.name: Required value"], id="no role"),
    pytest.param([{**ROLE, "apiGroup": "a"}],
        ['roleRef.apiGroup: Unsupported value: "a": supported values: "rbac.authorization.k8s.io"'],
        id="role of another group"),
    pytest.param([{**ROLE, "kind": "User"}],
        ['roleRef.kind: Unsupported value: "User": supported values: "Role", "ClusterRole"'], id="role of another kind"),
    pytest.param([{**ROLE, "name": "a/b"}],
        ["roleRef.name: Invalid value: \"a/b\": may not contain '/'"], id="role with invalid name"),
    pytest.param([ROLE, account()], [], id="account"),
    pytest.param([ROLE, account(namespace="")], [], id="account of no namespace"),
    pytest.param([ROLE, account(name="")], ["subjects[0].name: Required value"], id="account without name"),
    pytest.param([ROLE, account(name="A")],
        [('subjects[0].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case '
          "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. "
          "'example.com', regex used for validation is "
          "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")], id="account with invalid name"),
    pytest.param([ROLE, account(apiGroup="a")],
        ['subjects[0].apiGroup: Unsupported value: "a": supported values: ""'], id="account of a group"),
    pytest.param([ROLE, {"kind": "User", "apiGroup": GROUP, "name": "A/b"}], [], id="user"),
    pytest.param([ROLE, {"kind": "User", "name": "a"}],
        ['subjects[0].apiGroup: Unsupported value: "": supported values: "rbac.authorization.k8s.io"'],
        id="user of no group"),
    pytest.param([ROLE, {"kind": "Group", "apiGroup": GROUP}],
        ["subjects[0].name: Required value"], id="group without name"),
    pytest.param([ROLE, {"kind": "Group", "apiGroup": "a", "name": "a"}],
        ['subjects[0].apiGroup: Unsupported value: "a": supported values: "rbac.authorization.k8s.io"'],
        id="group of another group"),
    pytest.param([ROLE, {"name": "a"}],
        ['subjects[0].kind: Unsupported value: "": supported values: "ServiceAccount", "User", "Group"'],
        id="subject of no kind"),
    pytest.param([ROLE, {"kind": "Node", "name": "a"}],
        ['subjects[0].kind: Unsupported value: "Node": supported values: "ServiceAccount", "User", "Group"'],
        id="subject of another kind"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), BINDINGS)
def test_bindings_are_validated(change, expected):
    assert binding_errors(*change) == expected


CLUSTER_BINDINGS = [
    pytest.param([CLUSTER_ROLE, account()], [], id="role of the cluster"),
    pytest.param([ROLE],
        ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'], id="role of a namespace"),
    pytest.param([CLUSTER_ROLE, account(namespace="")],
        ["subjects[0].namespace: Required value"], id="account of no namespace"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CLUSTER_BINDINGS)
def test_cluster_bindings_are_validated(change, expected):
    assert cluster_binding_errors(*change) == expected


BINDING_CHANGES = [
    pytest.param(binding(ROLE), binding(ROLE, account()), [], id="subjects"),
    pytest.param(binding(ROLE), binding(CLUSTER_ROLE),
        [('roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"r"}: '
          "field is immutable")], id="role"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), BINDING_CHANGES)
def test_changes_of_bindings_are_validated(old, new, expected):
    assert update_errors(VERSION, "RoleBinding", old, new) == expected
