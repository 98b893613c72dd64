"""The parts of judgements that need no cluster."""

from typing import Any

import pytest

from mockube.judging.deletions import invalid_owners
from mockube.judging.growth import Cost, growth_findings, read_bytes
from mockube.judging.inputs import Account, find_workload, with_second_account
from mockube.judging.reference import make_reference
from mockube.judging.restarts import crash_points
from mockube.judging.rights import common_unused, refused_rights, unused_rights, wildcards
from mockube.judging.webhooks import (
    conversion_problems,
    lost_fields,
    matches_namespace,
    webhook_problems,
)

ROLE = {
    "kind": "ClusterRole",
    "metadata": {"name": "websites"},
    "rules": [{"apiGroups": ["example.com"], "resources": ["websites"], "verbs": ["get"]}],
}
BINDING = {
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "websites"},
    "roleRef": {"kind": "ClusterRole", "name": "websites"},
    "subjects": [{"kind": "ServiceAccount", "name": "manager", "namespace": "system"}],
}


def _deployment(name: str, account: str = "", **spec: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "env": [
            {"name": "LEVEL", "value": "info"},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "OTHER", "value": "$(LEVEL)"},
        ],
    }
    pod = {"containers": [container], **({"serviceAccountName": account} if account else {})}
    return {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "system"},
        "spec": {**spec, "template": {"spec": pod}},
    }


def test_workload_is_the_one_whose_account_has_rights() -> None:
    trees = [_deployment("web"), _deployment("manager", "manager"), ROLE, BINDING]
    found = find_workload(trees, "example.com", "default")
    assert found is not None
    assert (found.name, found.account.user) == ("manager", "system:serviceaccount:system:manager")
    assert found.environment == {"LEVEL": "info", "POD_NAMESPACE": "system"}


def test_first_workload_is_taken_if_none_has_rights() -> None:
    found = find_workload([_deployment("web"), _deployment("manager", "manager")], "example.com", "default")
    assert found is not None
    assert found.name == "web"
    assert find_workload([ROLE], "example.com", "default") is None


@pytest.mark.parametrize(
    ("spec", "recreates"),
    [
        ({}, False),
        ({"replicas": 1, "strategy": {"type": "Recreate"}}, True),
        ({"replicas": 2, "strategy": {"type": "Recreate"}}, False),
    ],
)
def test_workload_recreates_with_one_replica_and_that_strategy(spec: Any, *, recreates: bool) -> None:
    found = find_workload([_deployment("manager", **spec)], "example.com", "default")
    assert found is not None
    assert found.recreates is recreates


def test_second_account_is_added_to_the_bindings_of_the_first() -> None:
    second = Account(namespace="system", name="second")
    other = {**BINDING, "subjects": [{"kind": "ServiceAccount", "name": "manager", "namespace": "other"}]}
    (changed,) = with_second_account(
        [BINDING, other, ROLE], Account(namespace="system", name="manager"), second
    )
    assert changed["subjects"][1] == {"kind": "ServiceAccount", "name": "second", "namespace": "system"}


def test_right_is_unused_if_no_trial_used_it() -> None:
    def advice(*verbs: str) -> Any:
        rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": [*verbs]}
        return {"unused": [{"binding": "ClusterRoleBinding", "role": "r", "rules": [rule]}]}

    found = [[*unused_rights(each)] for each in (advice("get", "patch"), advice("patch", "list"))]
    assert common_unused(found) == {("ClusterRoleBinding", "patch", "deployments.apps", "")}


def test_rights_whose_use_is_not_seen_are_left_out() -> None:
    rule = {
        "apiGroups": ["a"],
        "resources": ["websites/finalizers", "events", "websites"],
        "verbs": ["update"],
    }
    advice = {"unused": [{"binding": "b", "rules": [rule]}]}
    assert [*unused_rights(advice)] == [("b", "update", "websites.a", "")]


def test_refused_rights_have_their_namespace() -> None:
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "namespace": "a"}
    path = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    assert [*refused_rights({"refused": [rule, path]})] == [("get", "secrets", "a"), ("get", "/metrics", "")]


def test_wildcards_have_their_rule() -> None:
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    advice = {"unused": [{"binding": "b", "wildcards": [{"rule": rule, "used": []}]}]}
    assert [*wildcards(advice)] == [("b", "* *.*")]


def test_crashes_are_at_undisturbed_writes() -> None:
    writes = ["configmaps", "deployments.apps", "configmaps", "websites.a/status", "configmaps"]
    assert [*crash_points(writes)] == [
        ("configmaps", 0),
        ("deployments.apps", 0),
        ("configmaps", 1),
        ("websites.a/status", 0),
    ]


def test_object_with_a_random_name_has_the_same_role_in_each_run() -> None:
    def secret(name: str, **metadata: str) -> Any:
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}}

    reference = make_reference([[secret("blog-x7f2k")], [secret("blog-a81bc")]], 1.0)
    assert reference.role_of(secret("blog-zzzzz"))[2] == "blog-*"
    assert reference.role_of(secret("note"))[2] == "note"
    assert reference.role_of(secret("job-8", generateName="job-"))[2] == "job-*"


def test_owner_in_another_namespace_is_invalid() -> None:
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {"name": "blog", "namespace": "a", "uid": "1"},
    }
    reference = {"apiVersion": "example.com/v1beta1", "kind": "Website", "name": "blog", "uid": "1"}
    trees = [
        {"metadata": {"namespace": place, "ownerReferences": [{**reference, "uid": uid}]}}
        for place, uid in (("a", "1"), ("b", "1"), ("", "1"), ("a", "2"))
    ]
    assert [len([*invalid_owners(tree, owner)]) for tree in trees] == [0, 1, 1, 1]


def test_owner_of_the_same_kind_in_another_group_is_another_object() -> None:
    owner = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "a", "uid": "1"},
    }
    reference = {"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "2"}
    slices = {"metadata": {"namespace": "a", "ownerReferences": [reference]}}
    assert [*invalid_owners(slices, owner)] == []


@pytest.mark.parametrize(
    ("last", "rules"),
    [
        ({}, []),
        ({"requests": 20.0}, ["requests-grow"]),
        ({"requests": 11.0}, []),
        ({"bytes_read": 90_000.0}, ["bytes-grow"]),
        ({"memory": 5 << 20}, ["memory-grows"]),
        ({"memory": None}, []),
    ],
)
def test_cost_that_grows_is_a_finding(last: Any, rules: list[str]) -> None:
    same: Any = {
        "count": 1,
        "requests": 10.0,
        "writes": 2.0,
        "bytes_read": 1000.0,
        "seconds": 1.0,
        "memory": 1000,
    }
    found = growth_findings(Cost(**same), Cost(**{**same, **last}))
    assert [rule for rule, _, _ in found] == rules


def test_bytes_of_watches_do_not_count() -> None:
    requests = [
        {"spec": {"verb": verb}, "status": {"bytes": 10}} for verb in ("list", "watch", "get", "patch")
    ]
    assert sum(map(read_bytes, requests)) == 20


def _webhook(**fields: Any) -> Any:
    rules = [{"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}]
    webhook = {
        "name": "pods.example.com",
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": rules,
        **fields,
    }
    return {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"}, "webhooks": [webhook]}


NOT_SYSTEM = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "system"]}
    ]
}


def _all_of(group: str) -> Any:
    return [{"apiGroups": [group], "resources": ["*"], "operations": ["CREATE"]}]


LEASES = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "operations": ["UPDATE"]}
OWN_RULES = [{"apiGroups": ["example.com"], "resources": ["websites"], "operations": ["*"]}]


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({}, ["webhook-blocks-cluster", "webhook-blocks-itself"]),
        ({"namespaceSelector": NOT_SYSTEM}, []),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, []),
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}, []),
        (
            {"objectSelector": {"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}},
            ["webhook-blocks-cluster", "webhook-blocks-itself"],
        ),
        ({"rules": [LEASES]}, ["webhook-blocks-cluster"]),
        ({"failurePolicy": "Ignore", "timeoutSeconds": 30}, ["webhook-ignored", "webhook-slow"]),
        ({"rules": OWN_RULES}, []),
        ({"rules": _all_of("apps")}, ["webhook-blocks-cluster"]),
        ({"rules": _all_of("*")}, ["webhook-blocks-cluster", "webhook-blocks-itself"]),
        ({"failurePolicy": "Ignore"}, ["webhook-ignored"]),
        ({"rules": OWN_RULES, "timeoutSeconds": 30}, ["webhook-slow"]),
        ({"rules": OWN_RULES, "sideEffects": "Some"}, ["webhook-side-effects"]),
    ],
)
def test_dangerous_webhook_is_a_finding(fields: Any, rules: list[str]) -> None:
    found = webhook_problems(_webhook(**fields), {"example.com"}, "system")
    assert [rule for rule, *_ in found] == rules


def test_mutating_webhook_may_be_ignored() -> None:
    configuration = {**_webhook(failurePolicy="Ignore"), "kind": "MutatingWebhookConfiguration"}
    assert not [*webhook_problems(configuration, set(), "system")]


@pytest.mark.parametrize(
    ("operations", "group", "resource", "rules"),
    [
        (["CREATE"], "", "pods", ["webhook-blocks-cluster", "webhook-blocks-itself"]),
        (["*"], "", "pods/*", ["webhook-blocks-cluster", "webhook-blocks-itself"]),
        (["UPDATE"], "", "pods", ["webhook-blocks-cluster"]),
        (["DELETE"], "apps", "deployments", ["webhook-blocks-cluster"]),
        (["CONNECT"], "", "pods", []),
        (["CREATE"], "example.com", "pods", []),
        (["CREATE"], "apps", "pods", ["webhook-blocks-cluster"]),
    ],
)
def test_webhook_blocks_the_writes_that_it_gets(
    operations: Any, group: str, resource: str, rules: Any
) -> None:
    rule = {"apiGroups": [group], "resources": [resource], "operations": operations}
    found = webhook_problems(_webhook(rules=[rule]), {"example.com"}, "system")
    assert [name for name, *_ in found] == rules


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({}, True),
        ({"matchLabels": {"inject": "yes"}}, False),
        ({"matchExpressions": [{"key": "inject", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "inject", "operator": "Exists"}]}, False),
        (NOT_SYSTEM, False),
    ],
)
def test_namespace_is_known_by_its_name_only(selector: Any, *, matches: bool) -> None:
    assert matches_namespace(selector, "system") is matches


def _definition(conversion: Any, other: Any) -> Any:
    def schema(properties: Any) -> Any:
        return {"openAPIV3Schema": {"properties": {"spec": {"properties": properties}}}}

    versions = [
        {"name": "v1", "served": True, "storage": True, "schema": schema({"a": {}})},
        {"name": "v2", "served": True, "storage": False, "schema": schema(other)},
    ]
    return {"metadata": {"name": "w"}, "spec": {"versions": versions, "conversion": conversion}}


def test_versions_with_other_fields_need_a_conversion() -> None:
    (problem,) = conversion_problems(_definition({"strategy": "None"}, {"a": {}, "b": {}}))
    assert problem[0] == "conversion-missing"
    assert problem[3].endswith("so that they are lost: spec.b")
    assert not [*conversion_problems(_definition({"strategy": "Webhook"}, {"b": {}}))]
    assert not [*conversion_problems(_definition({}, {"a": {}}))]


LISTENER = {"type": "array", "items": {"properties": {"port": {}, "tls": {}}}}
KEEPS_ALL = {"x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("stored", "lost"),
    [
        ({"listeners": LISTENER}, []),
        ({"listeners": {"items": {"properties": {"port": {}}}}}, ["spec.listeners[].tls"]),
        ({"listeners": {"items": {**KEEPS_ALL, "properties": {"port": {}}}}}, []),
        ({"listeners": KEEPS_ALL}, []),
        ({}, ["spec.listeners"]),
    ],
)
def test_fields_within_lists_are_lost_unless_the_stored_version_keeps_unknown_ones(
    stored: Any, lost: list[str]
) -> None:
    schemas = [{"properties": {"spec": {"properties": each}}} for each in ({"listeners": LISTENER}, stored)]
    assert [*lost_fields(*schemas)] == lost


@pytest.mark.parametrize(
    ("stored", "lost"),
    [
        ({"additionalProperties": {"properties": {"size": {}}}}, ["spec.*.class"]),
        ({"properties": {"own": {"properties": {"size": {}, "class": {}}}}}, ["spec.*"]),
        ({"additionalProperties": True}, []),
        (KEEPS_ALL, []),
    ],
)
def test_fields_within_maps_are_lost_unless_the_stored_version_has_them(stored: Any, lost: list[str]) -> None:
    disks = {"additionalProperties": {"properties": {"size": {}, "class": {}}}}
    assert [*lost_fields({"properties": {"spec": disks}}, {"properties": {"spec": stored}})] == lost


def test_stored_version_counts_although_it_is_not_served() -> None:
    definition = _definition({}, {"a": {}, "b": {}})
    definition["spec"]["versions"][0]["served"] = False
    (problem,) = conversion_problems(definition)
    assert problem[2] == "w v2"


@pytest.mark.parametrize(
    ("name", "stored", "lost"),
    [
        ("metadata", {"x-kubernetes-embedded-resource": True}, []),
        ("apiVersion", {"x-kubernetes-embedded-resource": True}, []),
        ("kind", {"x-kubernetes-embedded-resource": True}, []),
        ("kind", {}, ["spec.kind"]),
        ("data", {"x-kubernetes-embedded-resource": True}, ["spec.data"]),
    ],
)
def test_fields_of_each_object_are_stored(name: str, stored: Any, lost: list[str]) -> None:
    schema = {"properties": {"spec": {"properties": {name: {}}}}}
    assert [*lost_fields(schema, {"properties": {"spec": stored}})] == lost
    assert not [*lost_fields({"properties": {"metadata": {}}}, {})]
