"""Rules that 1.37 changed: 1.36 keeps its own."""

import pytest

from mockube.apimachinery import errors
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.schema import builtin
from mockube.apimachinery.timestamps import parse_time
from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.kind_rules import Defaulter
from mockube.apiserver.kinds.minors.wording import in_words_of_36
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.component_base.clock import SteppedClock

METADATA = {"metadata": {"name": "a", "namespace": "b"}}
SCALER = {
    "spec": {
        "scaleTargetRef": {"kind": "ReplicationController", "name": "a"},
        "maxReplicas": 1,
        "minReplicas": 1,
    }
}
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
POLICY = {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 2, "endPort": 1}]}]}}
ATTACHMENT = {
    "spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    "status": {"attached": False, "attachError": {"message": "m" * 1025}},
}


def created(minor, name, tree, *, cluster=False):
    kinds = kinds_of(minor)
    row = next(kind.resource for kind in kinds.all if kind.resource.name == name and kind.validation)
    metadata = {"metadata": {"name": "a"}} if cluster else METADATA
    return [str(error) for error in kind_rules.check_create(row, {**metadata, **tree}, kinds)]


def updated(minor, name, old, new, *, cluster=False):
    kinds = kinds_of(minor)
    row = next(kind.resource for kind in kinds.all if kind.resource.name == name and kind.validation)
    metadata = {"metadata": {"name": "a"}} if cluster else METADATA
    return [
        str(error)
        for error in kind_rules.check_update(row, "", {**metadata, **new}, {**metadata, **old}, kinds)
    ]


@pytest.mark.parametrize(
    ("name", "tree", "cluster", "before", "since"),
    [
        pytest.param(
            "horizontalpodautoscalers",
            {"spec": {**SCALER["spec"], "minReplicas": 0, "metrics": [{"type": "External", "external": {
                "metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}}}]}},
            False,
            ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"],
            [],
            id="autoscaler from zero",
        ),
        pytest.param(
            "networkpolicies",
            POLICY,
            False,
            ["spec.ingress[0].ports[0].endPort: Invalid value: 2: must be greater than or equal to `port`"],
            ["spec.ingress[0].ports[0].endPort: Invalid value: 1: must be greater than or equal to `port`"],
            id="decreasing range of ports",
        ),
        pytest.param(
            "volumeattachments",
            ATTACHMENT,
            True,
            ["status.attachError.message: Too long: may not be more than 262144 bytes"],
            ["status.attachError.message: Too long: may not be more than 1024 bytes"],
            id="long message of an attachment",
        ),
        pytest.param(
            "clusterroles",
            {"rules": [{}]},
            True,
            [
                "rules[0].verbs: Required value: verbs must contain at least one value",
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
            ],
            [
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                "rules[0].verbs: Required value",
            ],
            id="declared rule",
        ),
        pytest.param(
            "prioritylevelconfigurations",
            {"spec": {"limited": {"limitResponse": {"type": "Reject"}}}},
            True,
            ["spec.type: Required value"],
            ["spec.limited: Forbidden", "spec.type: Required value"],
            id="declared rule without one by hand",
        ),
    ],
)  # fmt: skip
def test_creation_is_checked_as_by_minor(name, tree, cluster, before, since):
    assert created("1.36", name, tree, cluster=cluster) == before
    assert created("1.37", name, tree, cluster=cluster) == since


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
@pytest.mark.parametrize(
    "name",
    ["validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicybindings"],
)
def test_reserved_name_is_refused_since_1_37_and_warned_of_before(minor, name):
    kinds = kinds_of(minor)
    kind = next(kind for kind in kinds.all if kind.resource.name == name)
    tree = {
        "metadata": {"name": "a.static.k8s.io"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    refused = any("reserved for static" in str(error) for error in kind.validation.create(tree))
    warned = any("reserved for static" in warning for warning in kind.warnings.create(tree))
    assert (refused, warned) == ((False, True) if minor == "1.36" else (True, False))


@pytest.mark.parametrize(
    ("minor", "detail"), [("1.36", "cannot change roleRef"), ("1.37", "field is immutable")]
)
def test_changed_role_of_binding_is_refused(minor, detail):
    old, new = ({"roleRef": {**ROLE_REF, "name": name}} for name in "ab")
    [error] = updated(minor, "clusterrolebindings", old, new, cluster=True)
    assert error.endswith(detail)


def test_changed_fields_of_stateful_set_have_one_error_until_1_36():
    base = {
        "selector": {"matchLabels": {"a": "b"}}, "podManagementPolicy": "Parallel", "updateStrategy": {"type": "OnDelete"},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always",
                            "terminationMessagePolicy": "File"}],
            "restartPolicy": "Always", "dnsPolicy": "Default", "terminationGracePeriodSeconds": 1}},
    }  # fmt: skip
    old, new = {"spec": base}, {"spec": {**base, "serviceName": "s", "podManagementPolicy": "OrderedReady"}}
    [forbidden] = updated("1.36", "statefulsets", old, new)
    assert forbidden.startswith("spec: Forbidden: updates to statefulset spec for fields other than")
    assert updated("1.37", "statefulsets", old, new) == [
        'spec.serviceName: Invalid value: "s": field is immutable',
        'spec.podManagementPolicy: Invalid value: "OrderedReady": field is immutable',
    ]


@pytest.mark.parametrize(
    ("kind", "tree", "default"),
    [
        (
            "StatefulSet",
            {"spec": {"updateStrategy": {}}},
            ("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),
        ),
        ("CSIDriver", {"spec": {}}, ("spec", "preventPodSchedulingIfMissing")),
    ],
)
def test_default_is_set_since_1_37(kind, tree, default):
    api_version = {"StatefulSet": "apps/v1", "CSIDriver": "storage.k8s.io/v1"}[kind]
    found = {}
    for minor in ("1.36", "1.37"):
        defaulted = {
            "metadata": {},
            "spec": {"template": {"spec": {}}, "updateStrategy": {}} if kind == "StatefulSet" else {},
        }
        Defaulter(builtin.load(minor), clock=SteppedClock(), kinds=kinds_of(minor)).default_object(
            api_version, kind, defaulted
        )
        value = defaulted
        for name in default:
            value = value.get(name, {})
        found[minor] = value
    assert found == {"1.36": {}, "1.37": 1 if kind == "StatefulSet" else False}


@pytest.mark.parametrize(("minor", "generation"), [("1.36", ()), ("1.37", (("spec",),))])
def test_autoscalers_have_generation_since_1_37(minor, generation):
    strategy = kinds_of(minor).strategies[GroupResource("autoscaling", "horizontalpodautoscalers")]
    assert tuple(strategy.generation) == generation


@pytest.mark.parametrize(
    ("minor", "names"), [("1.36", ["a (default)", "b (default)", "c"]), ("1.37", ["a", "b (default)", "c"])]
)
def test_list_of_storage_classes_marks_newest_default_since_1_37(minor, names):
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    trees = [
        {"metadata": {"name": name, "creationTimestamp": time, "annotations": annotations}}
        for name, time, annotations in (
            ("a", "2030-01-01T00:00:00Z", default), ("b", "2030-01-02T00:00:00Z", default), ("c", "2030-01-03T00:00:00Z", {}),
        )
    ]  # fmt: skip
    kinds = kinds_of(minor)
    printer = next(kind.printer for kind in kinds.all if kind.resource.name == "storageclasses")
    printer = printer.of_list(trees) if printer.of_list else printer
    assert [printer.cells(tree, parse_time("2030-02-01T00:00:00Z"))[0] for tree in trees] == names


def test_definitions_have_columns_since_1_37():
    rows = {
        minor: next(kind for kind in kinds_of(minor).all if kind.resource.name == "customresourcedefinitions")
        for minor in ("1.36", "1.37")
    }
    assert rows["1.36"].printer is None
    definition = {
        "metadata": {"name": "as.b.c", "creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {
            "group": "b.c", "scope": "Cluster", "names": {"plural": "as", "kind": "A", "shortNames": ["x", "y"]},
            "versions": [
                {"name": "v2", "served": True, "storage": True}, {"name": "v1", "served": True, "storage": False},
                {"name": "v0", "served": False, "storage": False},
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }  # fmt: skip
    assert rows["1.37"].printer.cells(definition, None) == [
        "as.b.c", "Cluster", "v1,v2(storage)", "2030-01-01T00:00:00Z", "b.c", "A", "x,y", True,
    ]  # fmt: skip


OWNER = ROOT.child("metadata", "ownerReferences").index(1)


@pytest.mark.parametrize(
    ("error", "before"),
    [
        (errors.required(OWNER.child("kind"), "must not be empty"),
         'metadata.ownerReferences.kind: Invalid value: "": must not be empty'),
        (errors.required(OWNER.child("apiVersion"), "must not be empty"),
         'metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty'),
        (errors.invalid(OWNER.child("apiVersion"), "a/b/c", "must be <group>/<version> or <version>"),
         'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty'),
        (errors.invalid(OWNER, {}, "is disallowed"), "metadata.ownerReferences: Invalid value: {}: is disallowed"),
        (errors.required(ROOT.child("metadata", "managedFields").index(0).child("operation"), "must not be empty"),
         'metadata.managedFields[0].operation: Invalid value: "": must be `Apply` or `Update`'),
        (errors.not_supported(ROOT.child("metadata", "managedFields").index(0).child("operation"), "a", ("Apply",)),
         'metadata.managedFields[0].operation: Invalid value: "a": must be `Apply` or `Update`'),
        (errors.required(ROOT.child("spec", "name"), "a"), "spec.name: Required value: a"),
    ],
)  # fmt: skip
def test_errors_of_metadata_are_in_words_of_minor(error, before):
    assert [str(each) for each in in_words_of_36(GroupKind("", "Pod"), [error])] == [before]


def test_errors_of_conditions_are_in_words_of_minor():
    path = ROOT.child("status", "conditions").index(1)
    new = [
        errors.duplicate(path, "A"),
        errors.required(path.child("status")),
        errors.required(path.child("reason")),
    ]
    old = [str(error) for error in in_words_of_36(GroupKind("policy", "PodDisruptionBudget"), new)]
    assert old == [
        'status.conditions[1].type: Duplicate value: "A"',
        'status.conditions[1].status: Unsupported value: "": supported values: "False", "True", "Unknown"',
        "status.conditions[1].reason: Required value",
    ]
    assert in_words_of_36(GroupKind("", "Node"), new) == new
