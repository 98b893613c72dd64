"""UnitedDeployment: subsets of each workload kind are created, scaled, changed and deleted."""

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.status import Forbidden
from mockube.controller_manager.control.actions import Create, SlowStart
from mockube.packs.kruise.controllers.uniteddeployment.subset import (
    ANNOTATION_SUBSET_PATCH,
    LABEL_REVISION,
    LABEL_SUBSET_NAME,
)
from mockube.packs.kruise.kinds import UNITED_DEPLOYMENTS
from tests.packs.kruise.support.uniteddeployments import (
    ADAPTER,
    FOO,
    KINDS,
    LABELS,
    UnitedDeploymentHarness,
    adaptive,
    subset,
    template_of,
    united,
)

of_each_kind = pytest.mark.parametrize("kind", KINDS)
MINIMA = [
    subset("a", minReplicas=1, maxReplicas=2),
    subset("b", minReplicas=1, maxReplicas=2),
    subset("c", minReplicas=1),
]


@of_each_kind
def test_one_workload_per_subset_is_created(kind):
    foo = UnitedDeploymentHarness(kind)
    foo.reconcile_once()
    (revision,) = foo.revisions
    assert meta.name(revision).startswith("foo-")
    assert foo.sizes == {"a": 1, "b": 1, "c": 1}
    assert foo.messages == [("SuccessfulUpdateSubset", f"Create 3 Subset ({kind})")]
    for name in "abc":
        workload = foo.workload(name)
        labels = {**LABELS, LABEL_SUBSET_NAME: name, LABEL_REVISION: meta.name(revision)}
        assert meta.generate_name(workload) == f"foo-{name}-"
        assert meta.labels(workload) == labels == meta.labels(workload["spec"]["template"])
        assert meta.annotations(workload) == {ANNOTATION_SUBSET_PATCH: ""}
        assert workload["spec"]["selector"]["matchLabels"] == {**LABELS, LABEL_SUBSET_NAME: name}
        assert meta.is_controlled_by(workload, foo.foo)


@of_each_kind
def test_status_at_rest(kind):
    foo = UnitedDeploymentHarness(kind).settle()
    revision = meta.name(foo.revisions[0])
    assert foo.status == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "updatedReplicas": 3,
        "updatedReadyReplicas": 3,
        "currentRevision": revision,
        "subsetReplicas": {"a": 1, "b": 1, "c": 1},
        "updateStatus": {"updatedRevision": revision, "currentPartitions": {"a": 0, "b": 0, "c": 0}},
        "subsetStatuses": [{"name": name, "replicas": 1, "readyReplicas": 1} for name in "abc"],
        "conditions": foo.status["conditions"],
        "labelSelector": "app=foo",
    }
    assert foo.conditions == {
        "UnitedDeploymentUpdated": ("True", "UnitedDeploymentRevisionUpdated"),
        "SubsetProvisioned": ("True", ""),
        "SubsetUpdated": ("True", ""),
    }
    assert foo.next_plan() == ()


def test_percentages_and_remainder():
    foo = UnitedDeploymentHarness(
        subsets=[subset("a", replicas="25%"), subset("b", replicas="25%"), "c"]
    ).settle()
    assert foo.sizes == {"a": 1, "b": 1, "c": 1}
    foo.scale(4)
    assert foo.settle().sizes == {"a": 1, "b": 1, "c": 2}
    foo.scale(1)
    assert foo.settle().sizes == {"a": 0, "b": 0, "c": 1}


def test_unsatisfiable_replicas_change_nothing():
    foo = UnitedDeploymentHarness(
        subsets=[subset("a", replicas=5), subset("b", replicas=5)], replicas=10
    ).settle()
    foo.scale(14)
    foo.set("topology.subsets", [subset("a", replicas=6), subset("b", replicas=6)])
    before = foo.sizes
    assert foo.reconcile_once() == []
    assert foo.sizes == before
    reason, message = foo.messages[-1]
    assert reason == "Failed SpecifySubsetReplicas"
    assert message == (
        "Specified subset replicas is ineffective: "
        "specified subsets' replica (12) is less than UnitedDeployment replica (14)"
    )
    assert foo.status["observedGeneration"] == 1


def test_min_and_max_replicas():
    few, any_ = {"minReplicas": 2, "maxReplicas": 5}, {"minReplicas": 2}
    foo = UnitedDeploymentHarness(
        subsets=[subset(name, **few) for name in "abcd"] + [subset("e", **any_)], replicas=10
    )
    for replicas, expected in ((10, [2, 2, 2, 2, 2]), (14, [5, 3, 2, 2, 2]), (5, [2, 2, 1, 0, 0])):
        foo.scale(replicas)
        assert [*foo.settle().sizes.values()] == expected


@of_each_kind
def test_scaling_converges(kind):
    foo = UnitedDeploymentHarness(kind, MINIMA).settle()
    foo.scale(7)
    foo.settle()
    assert foo.sizes == {"a": 2, "b": 2, "c": 3}
    assert foo.status["replicas"] == 7
    assert foo.status["observedGeneration"] == meta.generation(foo.foo)
    revision = foo.revision
    assert [foo.reconcile_once() for _ in range(5)] == [[]] * 5
    assert foo.revision == revision


@of_each_kind
def test_removed_subset_is_deleted_and_pods_move(kind):
    foo = UnitedDeploymentHarness(kind, replicas=6).settle()
    foo.events.clear()
    foo.set("topology.subsets", [subset("a"), subset("c")])
    foo.settle()
    assert foo.sizes == {"a": 3, "c": 3}
    assert foo.messages == [("SuccessfulUpdateSubset", f"Delete 1 Subset ({kind})")]
    assert foo.conditions["SubsetProvisioned"] == ("True", "")
    assert foo.status["replicas"] == 6
    assert [it["name"] for it in foo.status["subsetStatuses"]] == ["a", "b", "c"], "a place is kept"


@of_each_kind
def test_duplicate_workload_of_subset_is_deleted(kind):
    foo = UnitedDeploymentHarness(kind).settle()
    first = foo.workload("a")
    copied = {key: value for key, value in first["metadata"].items() if key != "uid"}
    foo.add(ADAPTER[kind].resource, {**first, "metadata": {**copied, "name": "zz-copied"}})
    assert foo.reconcile_once() == [("delete", ADAPTER[kind].resource.plural, "zz-copied")]
    foo.settle()
    assert meta.uid(foo.workload("a")) == meta.uid(first)
    assert foo.sizes == {"a": 1, "b": 1, "c": 1}


def test_deleting_duplicate_is_not_kept():
    foo = UnitedDeploymentHarness().settle()
    resource, first = ADAPTER["Deployment"].resource, foo.workload("a")
    named = {key: value for key, value in first["metadata"].items() if key != "uid"}
    second = foo.add(resource, {**first, "metadata": {**named, "name": "zz-copied"}})
    going = {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    foo.put(resource, meta.with_metadata(first, **going))
    assert [name for verb, _, name in foo.reconcile_once() if verb == "delete"] == []
    assert meta.uid(foo.get(resource, meta.name(second))) == meta.uid(second)


@of_each_kind
def test_changed_template_kind_replaces_all_workloads(kind):
    foo = UnitedDeploymentHarness(kind).settle()
    foo.kind = other = KINDS[(KINDS.index(kind) + 1) % len(KINDS)]
    foo.set("template", template_of(other))
    foo.settle()
    assert foo.workloads(kind) == []
    assert len(foo.workloads(other)) == 3
    assert foo.status["readyReplicas"] == 3


@of_each_kind
def test_selected_orphan_is_adopted(kind):
    foo = UnitedDeploymentHarness(kind).settle()
    workload = foo.workload("a")
    foo.put(ADAPTER[kind].resource, meta.with_metadata(workload, ownerReferences=[]))
    assert foo.reconcile_once() == [("adopt", ADAPTER[kind].resource.plural, meta.name(workload))]
    assert foo.settle().sizes == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({}, "no label apps.kruise.io/subset-name found"),
        ({LABEL_SUBSET_NAME: ""}, "label apps.kruise.io/subset-name has an empty value"),
    ],
)
def test_workload_without_subset_is_an_error(labels, problem):
    foo = UnitedDeploymentHarness()
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": {}}
    foo.add(
        ADAPTER["Deployment"].resource,
        {"metadata": {"name": "x", "namespace": "default", "labels": {**LABELS, **labels}}, "spec": spec},
    )
    foo.reconcile_once()
    assert foo.reconcile_once() == []
    first, second = foo.messages
    raw = f"fail to get subSet name from label of subset default/x: {problem}"
    assert first == ("FailedFindSubsets", raw)
    assert second == (
        "Failed FindSubsets",
        f"fail to get all Subsets for UnitedDeployment default/foo: {raw}",
    )


def test_workloads_are_created_in_order_with_slow_start():
    foo = UnitedDeploymentHarness(subsets="cab")
    (effects,) = [it.effects for it in foo.next_plan() if isinstance(it, SlowStart)]
    assert [meta.generate_name(effect.bodies[0]) for effect in effects] == ["foo-a-", "foo-b-", "foo-c-"]
    assert all(isinstance(effect, Create) for effect in effects)


def test_refused_creation_records_event_without_status():
    foo = UnitedDeploymentHarness()
    foo.refusals = {"foo-b-": Forbidden("exceeded quota")}
    foo.reconcile_once()
    assert isinstance(foo.error, Forbidden)
    assert foo.messages == [
        (
            "FailedUpdateSubset",
            "fail to manage Subset provision: fail to create Subset (Deployment) b: exceeded quota",
        )
    ]
    assert foo.status == {}


def test_workload_created_before_restart_is_reported():
    foo = UnitedDeploymentHarness()
    foo.begin(FOO, 2)
    assert len(foo.workloads()) == 3
    foo.settle()
    assert foo.conditions["SubsetProvisioned"] == ("True", "")


def test_failed_duplicate_deletion_records_event():
    foo = UnitedDeploymentHarness().settle()
    first = foo.workload("a")
    named = {key: value for key, value in first["metadata"].items() if key != "uid"}
    foo.add(ADAPTER["Deployment"].resource, {**first, "metadata": {**named, "name": "zz-copied"}})
    foo.events.clear()
    for action in foo.plan(FOO).last(Forbidden("no")):
        foo._execute([action])
    assert foo.messages == [
        ("FailedDeleteDuplicatedSubsets", "no"),
        (
            "Failed FindSubsets",
            "fail to manage duplicate Subset of UnitedDeployment default/foo: no",
        ),
    ]


def test_deleting_united_deployment_is_not_reconciled():
    foo = UnitedDeploymentHarness()
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    foo.put(UNITED_DEPLOYMENTS, meta.with_metadata(foo.foo, **ending))
    assert foo.next_plan() == ()


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"template": {}}, id="no workload template"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}, id="invalid selector"
        ),
    ],
)
def test_invalid_united_deployment_is_not_reconciled(broken):
    foo = UnitedDeploymentHarness()
    foo.put(UNITED_DEPLOYMENTS, {**foo.foo, "spec": {**foo.foo["spec"], **broken}})
    assert foo.next_plan() == ()


def test_selector_without_labels_gets_subset_label():
    expression = {"key": "app", "operator": "In", "values": ["foo"]}
    foo = UnitedDeploymentHarness(selector={"matchExpressions": [expression]})
    foo.settle()
    assert foo.workload("a")["spec"]["selector"] == {
        "matchExpressions": [expression],
        "matchLabels": {LABEL_SUBSET_NAME: "a"},
    }
    assert foo.status["labelSelector"] == "app in (foo)"


def test_replicas_follow_subsets_without_total():
    foo = UnitedDeploymentHarness(subsets=[subset("a", replicas=1), subset("b", replicas=4)], replicas=None)
    assert foo.settle().sizes == {"a": 1, "b": 4}


def test_long_name_prefix_is_truncated():
    foo = UnitedDeploymentHarness(subsets=["a" * 250])
    foo.reconcile_once()
    (made,) = foo.workloads("Deployment")
    assert meta.generate_name(made) == "foo-"


def test_scale_subresource_counts_reserved_pods():
    foo = UnitedDeploymentHarness(strategy=adaptive(reserves=True)).settle()
    assert foo.status["labelSelector"] == "app=foo,apps.kruise.io/united-deployment-reserved-pod=false"


def test_first_of_several_template_kinds_is_used():
    both = {**template_of("Deployment"), **template_of("StatefulSet")}
    foo = UnitedDeploymentHarness(template=both)
    foo.reconcile_once()
    assert [len(foo.workloads(kind)) for kind in KINDS] == [3, 0, 0, 0]
    assert united()["spec"]["replicas"] == 3
