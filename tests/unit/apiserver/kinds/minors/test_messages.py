"""Validation messages of older minor versions: values in Go syntax, and texts that changed later."""

import pytest

from mockube.apimachinery.errors import invalid
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds import kind_rules
from mockube.apiserver.kinds.kind_rules import KindRules
from mockube.apiserver.kinds.minors.go_values import format_values_of, in_go
from mockube.apiserver.kinds.served_kinds import kinds_of

NO_LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"
NO_SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"b": "c", "a": "x\n"}, r'map[string]string{"a":"x\n", "b":"c"}'),
        (["a", "b"], '[]string{"a", "b"}'),
        (None, '"null"'),
        ("a", '"a"'),
        (5, "5"),
        (True, "true"),
        (
            {"matchLabels": {"a": "b"}},
            'v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}',
        ),
        (
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["b"]},
                    {"key": "c", "operator": "Exists"},
                ]
            },
            (
                "v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement{"
                'v1.LabelSelectorRequirement{Key:"a", Operator:"In", Values:[]string{"b"}}, '
                'v1.LabelSelectorRequirement{Key:"c", Operator:"Exists", Values:[]string(nil)}}}'
            ),
        ),
        ({"Name": "a", "Port": 1}, '{"Name":"a","Port":1}'),
    ],
)
def test_invalid_values_are_printed_as_in_go(value, shown):
    assert in_go(invalid(ROOT.child("spec"), value, "")).body() == f"Invalid value: {shown}"


def test_go_type_of_texts_in_lists_is_named():
    error = in_go(invalid(ROOT.child("spec", "accessModes"), ["a"], ""))
    assert error.body() == 'Invalid value: []core.PersistentVolumeAccessMode{"a"}'


def deployment(minor):
    kinds = kinds_of(minor)
    rules = KindRules(None, kinds)
    format_values_of(rules, minor)
    row = next(kind.resource for kind in kinds.all if kind.resource.name == "deployments")
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"selector": {"matchLabels": {"app": "b"}}, "template": template}
    errors = rules.check_create(row, {"metadata": {"name": "a", "namespace": "a"}, "spec": spec})
    labels = next(error for error in errors if error.field == "spec.template.metadata.labels")
    return labels.body().removesuffix(": `selector` does not match template `labels`"), rules.no_version


def test_invalid_values_are_json_since_1_34():
    for minor in minors.MINORS:
        message, version = deployment(minor)
        if minors.is_before(minor, "1.34"):
            assert message == 'Invalid value: map[string]string{"app":"a"}'
            assert invalid(ROOT, version, "").body() == "Invalid value: 0x0"
        else:
            assert (message, version) == ('Invalid value: {"app":"a"}', 0)


AUTOSCALER = {"scaleTargetRef": {"kind": "a", "name": "a", "apiVersion": "a/v1"}, "minReplicas": 1}
TOLERATION = {"operator": "Equal"}


@pytest.mark.parametrize(
    ("resource", "tree", "until", "before", "since"),
    [
        (
            "horizontalpodautoscalers",
            {"spec": AUTOSCALER | {"maxReplicas": -1}},
            "1.35",
            ["spec.maxReplicas: Invalid value: -1: must be greater than 0"],
            ["spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1"],
        ),
        (
            "horizontalpodautoscalers",
            {"spec": AUTOSCALER},
            "1.35",
            ["spec.maxReplicas: Invalid value: 0: must be greater than 0"],
            ["spec.maxReplicas: Required value"],
        ),
        (
            "prioritylevelconfigurations",
            {"spec": {}},
            "1.35",
            ['spec.type: Unsupported value: "": supported values: "Exempt", "Limited"'],
            ["spec.type: Required value"],
        ),
        (
            "runtimeclasses",
            {},
            "1.35",
            [f'handler: Invalid value: "": {NO_LABEL}'],
            ["handler: Required value"],
        ),
        (
            "runtimeclasses",
            {"handler": "a", "scheduling": {"tolerations": [TOLERATION]}},
            "1.34",
            ["scheduling.tolerations.tolerations[0].operator: Invalid value"],
            ["scheduling.tolerations[0].operator: Invalid value"],
        ),
        (
            "csinodes",
            {"spec": {"drivers": [{"nodeID": "a"}]}},
            "1.34",
            [
                "spec.drivers[0].name: Required value",
                f'spec.drivers[0].name: Invalid value: "": {NO_SUBDOMAIN}',
            ],
            ["spec.drivers[0].name: Required value"],
        ),
        (
            "volumeattachments",
            {"spec": {"nodeName": "a", "source": {"persistentVolumeName": "a"}}},
            "1.34",
            ["spec.attacher: Required value"] * 2 + [f'spec.attacher: Invalid value: "": {NO_SUBDOMAIN}'],
            ["spec.attacher: Required value"],
        ),
    ],
)
def test_message_of_older_minor_is_upstreams(resource, tree, until, before, since):
    for minor in minors.MINORS:
        kinds = kinds_of(minor)
        row = next(kind.resource for kind in kinds.all if kind.resource.name == resource)
        metadata = {"name": "a"} | ({"namespace": "a"} if row.namespaced else {})
        found = [str(error) for error in kind_rules.check_create(row, {"metadata": metadata} | tree, kinds)]
        wanted = since if minors.is_before(until, minor) else before
        paths = {text.partition(":")[0] for text in wanted}
        messages = [text for text in found if text.partition(":")[0] in paths and "`minReplicas`" not in text]
        assert len(messages) == len(wanted), (minor, found)
        assert all(map(str.startswith, messages, wanted)), (minor, messages)


def update_errors(resource, new, old, minor):
    kinds = kinds_of(minor)
    row = next(kind.resource for kind in kinds.all if kind.resource.name == resource)
    metadata = {"name": "a", "uid": "a", "resourceVersion": "1"} | (
        {"namespace": "a"} if row.namespaced else {}
    )
    new, old = ({"metadata": metadata} | tree for tree in (new, old))
    return [str(error) for error in kind_rules.check_update(row, "", new, old, kinds)]


def test_storage_class_updates_are_forbidden_until_1_35():
    old = {"provisioner": "a", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    new = old | {"provisioner": "b"}
    for minor in minors.OLDER[1:]:
        wanted = ["provisioner: Forbidden: updates to provisioner are forbidden."]
        assert update_errors("storageclasses", new, old, minor) == wanted
    assert update_errors("storageclasses", new, old, "1.36") == [
        'provisioner: Invalid value: "b": field is immutable'
    ]


def job(status=None, *, suspend=True, limit="1", **spec):
    container = {
        "name": "a",
        "image": "a",
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "resources": {"limits": {"cpu": limit}, "requests": {"cpu": limit}},
    }
    labels = {"app": "a"}
    pods = {"containers": [container], "restartPolicy": "Never", "dnsPolicy": "ClusterFirst"} | spec
    whole = {
        "suspend": suspend,
        "parallelism": 1,
        "completions": 1,
        "completionMode": "NonIndexed",
        "backoffLimit": 6,
        "manualSelector": True,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pods | {"terminationGracePeriodSeconds": 30}},
    }
    return {"spec": whole, "status": status or {}}


STARTED = {"startTime": "2030-01-01T00:00:00Z"}
SUSPENDED = STARTED | {"conditions": [{"type": "Suspended", "status": "True"}]}
SOMEWHERE = {"nodeSelector": {"a": "b"}}


@pytest.mark.parametrize(
    ("new", "old", "refusing"),
    [
        (job(**SOMEWHERE), job(), ()),
        (job(limit="2"), job(), minors.OLDER[1:]),
        (job(SUSPENDED, **SOMEWHERE), job(SUSPENDED), minors.OLDER[1:]),
        (job(SUSPENDED, limit="2"), job(SUSPENDED), minors.OLDER[1:]),
        (job(STARTED, **SOMEWHERE), job(STARTED), minors.MINORS),
        (job(suspend=False, **SOMEWHERE), job(suspend=False), minors.MINORS),
        (job(SUSPENDED, suspend=False), job(SUSPENDED), ()),
    ],
)
def test_suspended_job_template_changes_allowed_by_minor(new, old, refusing):
    found = {minor: update_errors("jobs", new, old, minor) for minor in minors.MINORS}
    assert [minor for minor in minors.MINORS if found[minor]] == [*refusing], found
    for minor in refusing:
        assert found[minor][0].startswith("spec.template: Invalid value: ")
        assert found[minor][0].endswith(": field is immutable")
