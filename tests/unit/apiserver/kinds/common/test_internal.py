"""Fields with the same meaning have equal values, whichever of them the client set."""

import pytest

from mockube.apimachinery.status import BadRequest
from mockube.apiserver.kinds.built_in_kinds import NEWEST


def apply_internal_changes(api_version, kind, tree):
    for change in NEWEST.internal_changes.get((api_version, kind), ()):
        change(tree)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        pytest.param(
            ("v1", "Secret"),
            {"data": {"a": "MQ==", "c": "Mw=="}, "stringData": {"a": "2", "b": "é"}},
            {"data": {"a": "Mg==", "b": "w6k=", "c": "Mw=="}},
            id="stringData is merged into data",
        ),
        pytest.param(("v1", "Secret"), {"data": {"a": "MQ=="}}, {"data": {"a": "MQ=="}}, id="no stringData"),
        pytest.param(
            ("v1", "Node"),
            {"spec": {"podCIDR": "10.0.0.0/24"}},
            {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}},
            id="one network",
        ),
        pytest.param(
            ("v1", "Node"),
            {"spec": {"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}},
            {"spec": {"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24", "fd00::/64"]}},
            id="several networks",
        ),
        pytest.param(
            ("v1", "Node"),
            {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.0.0.0/24"]}},
            {"spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
            id="singular field overrides list",
        ),
        pytest.param(
            ("v1", "Pod"),
            {"spec": {"serviceAccount": "a"}, "status": {"podIP": "10.0.0.1"}},
            {
                "spec": {"serviceAccount": "a", "serviceAccountName": "a"},
                "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]},
            },
            id="service account and IP of a pod",
        ),
        pytest.param(
            ("v1", "Pod"),
            {"spec": {"terminationGracePeriodSeconds": -5}},
            {"spec": {"terminationGracePeriodSeconds": 1}},
            id="negative grace period of a pod becomes 1",
        ),
        pytest.param(
            ("v1", "PodTemplate"),
            {"template": {"spec": {"terminationGracePeriodSeconds": -5}}},
            {"template": {"spec": {"terminationGracePeriodSeconds": -5}}},
            id="negative grace period of a template is kept",
        ),
        pytest.param(
            ("batch/v1", "CronJob"),
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"serviceAccountName": "a"}}}}}},
            {
                "spec": {
                    "jobTemplate": {
                        "spec": {"template": {"spec": {"serviceAccountName": "a", "serviceAccount": "a"}}}
                    }
                }
            },
            id="service account in a nested template",
        ),
        pytest.param(
            ("apps/v1", "StatefulSet"),
            {"spec": {"volumeClaimTemplates": [{"metadata": {"name": "d"}}]}},
            {
                "spec": {
                    "volumeClaimTemplates": [
                        {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "metadata": {"name": "d"}}
                    ]
                }
            },
            id="templates of claims",
        ),
        pytest.param(
            ("v1", "ConfigMap"),
            {"stringData": {"a": "b"}},
            {"stringData": {"a": "b"}},
            id="other kinds are unchanged",
        ),
    ],
)
def test_object_is_normalised_to_internal_form(kind, given, expected):
    apply_internal_changes(*kind, given)
    assert given == expected


def test_settling_does_not_modify_input():
    inner = {"serviceAccountName": "a"}
    template = {"spec": inner}
    tree = {"spec": {"template": template}}
    apply_internal_changes("apps/v1", "Deployment", tree)
    assert tree["spec"]["template"]["spec"]["serviceAccount"] == "a"
    assert (inner, template) == ({"serviceAccountName": "a"}, {"spec": inner})


GENERATION, ROLLBACK = "deprecated.daemonset.template.generation", "deprecated.deployment.rollback.to"


@pytest.mark.parametrize(
    ("kind", "annotation", "text", "expected"),
    [
        ("DaemonSet", GENERATION, "+6", {GENERATION: "6"}),
        ("Deployment", ROLLBACK, "05", {ROLLBACK: "5"}),
        ("Deployment", ROLLBACK, "", {}),
    ],
)
def test_numeric_annotations_are_normalised(kind, annotation, text, expected):
    tree = {"metadata": {"annotations": {annotation: text}}}
    apply_internal_changes("apps/v1", kind, tree)
    assert tree["metadata"].get("annotations", {}) == expected


@pytest.mark.parametrize(
    ("kind", "annotation", "text", "problem"),
    [
        ("DaemonSet", GENERATION, "x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("DaemonSet", GENERATION, "", 'strconv.ParseInt: parsing "": invalid syntax'),
        (
            "Deployment",
            ROLLBACK,
            "1.5",
            f'failed to parse annotation[{ROLLBACK}]=1.5 as int64: strconv.ParseInt: parsing "1.5": invalid syntax',
        ),
    ],
)
def test_non_numeric_annotations_are_refused(kind, annotation, text, problem):
    with pytest.raises(BadRequest) as refused:
        apply_internal_changes("apps/v1", kind, {"metadata": {"annotations": {annotation: text}}})
    assert str(refused.value) == f'{kind} in version "v1" cannot be handled as a {kind}: {problem}'
