"""UnitedDeployment: node affinity, tolerations, patch and kind-specific fields of subset workloads."""

import orjson
import pytest

from mockube.apimachinery import meta
from mockube.packs.kruise.controllers.uniteddeployment.subset import ANNOTATION_SUBSET_PATCH
from tests.packs.kruise.support.uniteddeployments import (
    KINDS,
    LABELS,
    UnitedDeploymentHarness,
    pods_template,
    subset,
    template_of,
)

of_each_kind = pytest.mark.parametrize("kind", KINDS)
TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def requirement(key, *values):
    return {"key": key, "operator": "In", "values": [*values]}


ON_NODE_A = requirement("node-name", "nodeA")


def subset_template(kind, pods):
    """Return the pod template that a subset on node A gets from this template."""
    foo = UnitedDeploymentHarness(
        kind,
        [subset("a", nodeSelectorTerm={"matchExpressions": [ON_NODE_A]})],
        template=template_of(kind, pods=pods),
    )
    foo.reconcile_once()
    return foo.workload("a")["spec"]["template"]


def terms_of(template):
    return template["spec"]["affinity"]["nodeAffinity"][TERMS]["nodeSelectorTerms"]


@of_each_kind
def test_node_selector_term_is_added_without_terms(kind):
    assert terms_of(subset_template(kind, pods_template())) == [{"matchExpressions": [ON_NODE_A]}]


@of_each_kind
def test_subset_requirements_are_appended_to_each_term(kind):
    first = [requirement("zone", "x"), requirement("disk", "ssd")]
    second = [requirement("zone", "y")]
    terms = [{"matchExpressions": first}, {"matchExpressions": second}]
    preferred = [{"weight": 1, "preference": {"matchExpressions": second}}]
    affinity = {
        TERMS: {"nodeSelectorTerms": terms},
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }
    template = subset_template(kind, pods_template(affinity={"nodeAffinity": affinity}))
    assert terms_of(template) == [
        {"matchExpressions": [*first, ON_NODE_A]},
        {"matchExpressions": [*second, ON_NODE_A]},
    ]
    found = template["spec"]["affinity"]["nodeAffinity"]
    assert found["preferredDuringSchedulingIgnoredDuringExecution"] == preferred


def test_match_fields_of_subset_are_ignored():
    term = {"matchFields": [requirement("metadata.name", "nodeA")]}
    foo = UnitedDeploymentHarness(subsets=[subset("a", nodeSelectorTerm=term)])
    foo.reconcile_once()
    assert "affinity" not in foo.workload("a")["spec"]["template"]["spec"]


@of_each_kind
def test_tolerations_are_appended(kind):
    first, *others = [{"key": f"t{number}", "operator": "Exists"} for number in range(3)]
    foo = UnitedDeploymentHarness(
        kind,
        [subset("a", tolerations=others), "b"],
        template=template_of(kind, pods=pods_template(tolerations=[first])),
    )
    foo.reconcile_once()
    found = {name: foo.workload(name)["spec"]["template"]["spec"]["tolerations"] for name in "ab"}
    assert found == {"a": [first, *others], "b": [first]}


@of_each_kind
def test_subset_patch_is_merged(kind):
    env = {"name": "PLACE", "value": "a"}
    patch = {
        "metadata": {"annotations": {"note": "1"}},
        "spec": {"containers": [{"name": "c", "env": [env]}], "tolerations": [{"key": "only"}]},
    }
    foo = UnitedDeploymentHarness(kind, [subset("a", patch=patch, tolerations=[{"key": "lost"}]), "b"])
    foo.reconcile_once()
    patched, plain = foo.workload("a"), foo.workload("b")
    template = patched["spec"]["template"]
    assert template["spec"]["containers"] == [{"name": "c", "image": "a:1", "env": [env]}]
    assert template["spec"]["tolerations"] == [{"key": "only"}]
    assert meta.annotations(template) == {"note": "1"}
    assert orjson.loads(meta.annotations(patched)[ANNOTATION_SUBSET_PATCH]) == patch
    assert meta.annotations(plain)[ANNOTATION_SUBSET_PATCH] == ""


@of_each_kind
def test_changed_patch_is_written_once(kind):
    foo = UnitedDeploymentHarness(
        kind, [subset("a", patch={"metadata": {"annotations": {"note": "1"}}})]
    ).settle()
    foo.set("topology.subsets", [subset("a", patch={"metadata": {"annotations": {"note": "2"}}})])
    assert [verb for verb, plural, _ in foo.reconcile_once() if plural != "uniteddeployments"] == ["update"]
    assert meta.annotations(foo.workload("a")["spec"]["template"]) == {"note": "2"}
    assert len(foo.settle().revisions) == 1


def test_invalid_patch_records_event():
    foo = UnitedDeploymentHarness(
        subsets=[subset("a", patch={"spec": {"containers": [{"image": "no name"}]}})]
    )
    foo.reconcile_once()
    assert foo.workloads() == []
    ((reason, message),) = foo.messages
    assert reason == "FailedUpdateSubset"
    assert "merge key" in message or "name" in message


def test_foreign_labels_and_annotations_are_kept():
    foo = UnitedDeploymentHarness("StatefulSet").settle()
    workload = foo.workload("a")
    noted = meta.with_annotations(meta.with_labels(workload, {"theirs": "1"}), {"theirs": "2"})
    foo.put(next(it for it in foo.objects if it.plural == "statefulsets"), noted)
    foo.scale(6)
    foo.settle()
    after = foo.workload("a")
    assert meta.labels(after)["theirs"] == "1"
    assert meta.annotations(after)["theirs"] == "2"
    assert after["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("kind", "strategy", "expected"),
    [
        ("StatefulSet", None, {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}),
        (
            "StatefulSet",
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "partition": 1}},
        ),
        ("StatefulSet", {"type": "OnDelete"}, {"type": "OnDelete"}),
        ("AdvancedStatefulSet", None, {"rollingUpdate": {"partition": 1}}),
        ("AdvancedStatefulSet", {"type": "OnDelete"}, {"type": "OnDelete"}),
        ("CloneSet", None, {"partition": 1}),
        (
            "CloneSet",
            {"type": "InPlaceIfPossible", "partition": "50%"},
            {"type": "InPlaceIfPossible", "partition": 1},
        ),
        ("Deployment", None, None),
    ],
)
def test_partition_is_written_per_workload_kind(kind, strategy, expected):
    fields = {"updateStrategy": strategy} if strategy else {}
    foo = UnitedDeploymentHarness(kind, "a", template=template_of(kind, **fields))
    foo.keep(a=1)
    foo.reconcile_once()
    assert foo.workload("a")["spec"].get("updateStrategy") == expected


def test_workload_has_metadata_of_template():
    template = template_of("Deployment")
    metadata = {"labels": {**LABELS, "team": "x"}, "annotations": {"note": "1"}}
    foo = UnitedDeploymentHarness(
        template={"deploymentTemplate": {**template["deploymentTemplate"], "metadata": metadata}}
    )
    foo.reconcile_once()
    workload = foo.workload("a")
    assert meta.labels(workload)["team"] == "x"
    assert meta.annotations(workload)["note"] == "1"
    assert meta.labels(foo.revisions[0])["team"] == "x"
