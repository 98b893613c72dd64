"""UnitedDeployment: rollouts with partitions, the current revision, and revision history."""

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.meta import with_labels
from mockube.client.kinds import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from mockube.client.podview import PodView
from mockube.controller_manager.workloads.revisions import hash_of
from mockube.packs.kruise.controllers.uniteddeployment.adapters import ADAPTERS
from mockube.packs.kruise.controllers.uniteddeployment.allocator import partitions
from mockube.packs.kruise.controllers.uniteddeployment.spec import UnitedView
from mockube.packs.kruise.controllers.uniteddeployment.subset import LABEL_REVISION
from tests.packs.kruise.support.uniteddeployments import KINDS, UnitedDeploymentHarness, template_of, united

WITH_PARTITIONS = [kind for kind in KINDS if kind != "Deployment"]
of_each_with_partitions = pytest.mark.parametrize("kind", WITH_PARTITIONS)


@pytest.mark.parametrize(
    ("asked", "replicas", "expected"),
    [
        ({"a": 4, "b": 3}, {"a": 5, "b": 5}, {"a": 4, "b": 3}),
        ({"a": 0, "b": 3}, {"a": 5, "b": 5}, {"a": 0, "b": 3}),
        ({}, {"a": 5, "b": 5}, {"a": 0, "b": 0}),
        ({"a": 2}, {"a": 1, "b": 5}, {"a": 1, "b": 0}),
        ({"a": 2}, {"a": 4, "b": 5}, {"a": 2, "b": 0}),
        ({"gone": 2}, {"a": 4}, {"a": 0}),
    ],
)
def test_partitions_of_subsets(asked, replicas, expected):
    assert partitions(asked, replicas) == expected


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({"type": "Manual", "manualUpdate": {"partitions": {"a": 1}}}, {"a": 1}),
        ({"type": "", "manualUpdate": {"partitions": {"a": 1}}}, {"a": 1}),
        ({"type": "Other", "manualUpdate": {"partitions": {"a": 1}}}, {}),
        ({}, {}),
    ],
)
def test_manual_partitions_are_read(strategy, expected):
    assert UnitedView.of(united(updateStrategy=strategy)).partitions == expected


def with_second_version(kind, **partitions):
    """Roll out a second version of ten pods, with these partitions of the subsets."""
    foo = UnitedDeploymentHarness(kind, "ab", replicas=10).settle()
    foo.keep(**partitions)
    foo.release("a:2")
    return foo


@of_each_with_partitions
def test_rollout_by_partitions(kind):
    foo = with_second_version(kind, a=4, b=3)
    old = foo.status["currentRevision"]
    foo.settle()
    (first, second) = sorted(foo.revisions, key=lambda it: it["revision"])
    assert foo.partitions == {"a": 4, "b": 3} == foo.status["updateStatus"]["currentPartitions"]
    assert foo.images == {"a": ["a:1"] * 4 + ["a:2"], "b": ["a:1"] * 3 + ["a:2"] * 2}
    assert foo.status["currentRevision"] == old == meta.name(first)
    assert foo.status["updateStatus"]["updatedRevision"] == meta.name(second)
    assert foo.status["updatedReplicas"] == foo.status["updatedReadyReplicas"] == 3
    assert foo.conditions["UnitedDeploymentUpdated"] == ("False", "UnitedDeploymentRevisionUpdating")
    assert [it["partition"] for it in foo.status["subsetStatuses"]] == [4, 3]
    assert foo.next_plan() == ()

    foo.keep()
    foo.settle()
    assert foo.partitions == {"a": 0, "b": 0}
    assert foo.images == {"a": ["a:2"] * 5, "b": ["a:2"] * 5}
    assert foo.status["currentRevision"] == meta.name(second)
    assert foo.conditions["UnitedDeploymentUpdated"] == ("True", "UnitedDeploymentRevisionUpdated")
    (told,) = [it for it in foo.status["conditions"] if it["type"] == "UnitedDeploymentUpdated"]
    assert told["message"] == f"updated to revision {meta.name(second)}"
    assert foo.next_plan() == ()


def test_deployments_have_no_partitions():
    foo = with_second_version("Deployment", a=4, b=3).settle()
    assert foo.images == {"a": ["a:2"] * 5, "b": ["a:2"] * 5}
    assert foo.status["updateStatus"]["currentPartitions"] == {"a": 4, "b": 3}
    assert foo.next_plan() == ()


@of_each_with_partitions
def test_partition_is_limited_to_subset_size_and_recorded(kind):
    foo = UnitedDeploymentHarness(kind, "ab", replicas=2).settle()
    foo.keep(a=2)
    assert foo.settle().partitions == {"a": 1, "b": 0}
    foo.scale(8)
    assert foo.settle().partitions == {"a": 2, "b": 0}


@pytest.mark.parametrize("kind", ["StatefulSet", "AdvancedStatefulSet"])
def test_on_delete_pods_are_replaced_after_deletion(kind):
    foo = UnitedDeploymentHarness(
        kind, "ab", replicas=10, template=template_of(kind, updateStrategy={"type": "OnDelete"})
    )
    foo.settle()
    foo.release("a:2", updateStrategy={"type": "OnDelete"})
    foo.settle()
    for kept in (5, 4, 3):
        assert foo.workload("a")["spec"]["updateStrategy"] == {"type": "OnDelete"}
        assert computed_partition(foo, "a") == kept
        assert foo.next_plan() == ()
        oldest = next(it for it in foo.pods_of("a") if it["spec"]["containers"][0]["image"] == "a:1")
        foo.remove(PODS, meta.name(oldest))
        foo.settle()


def computed_partition(foo, name):
    adapter = next(it for it in ADAPTERS if it.type == foo.kind)
    return adapter.partition(foo.workload(name), [PodView.of(pod) for pod in foo.pods_of(name)])


@pytest.mark.parametrize(
    ("of_pods", "expected"),
    [(["v1", "v2", "v2"], 1), (["v1", "v1", "v1"], 3), (["v1", "", "v2", "v3"], 3), ([], 0)],
)
@pytest.mark.parametrize("kind", ["StatefulSet", "AdvancedStatefulSet"])
def test_partition_of_on_delete_set_is_counted(kind, of_pods, expected):
    adapter = next(it for it in ADAPTERS if it.type == kind)
    workload = {
        "metadata": {"labels": {LABEL_REVISION: "v2"}},
        "spec": {"updateStrategy": {"type": "OnDelete"}},
    }
    pods = [
        PodView.of(with_labels({"metadata": {"name": f"p{number}"}}, {LABEL_REVISION: revision}))
        for number, revision in enumerate(of_pods)
    ]
    assert adapter.partition(workload, pods) == expected


@pytest.mark.parametrize(
    ("kind", "strategy", "expected"),
    [
        ("CloneSet", {"partition": "50%"}, 3),
        ("CloneSet", {"partition": "x"}, 0),
        ("CloneSet", {"partition": 2}, 2),
        ("StatefulSet", {"type": "RollingUpdate"}, 0),
        ("StatefulSet", {"rollingUpdate": {"partition": 4}}, 4),
        ("Deployment", {}, 0),
    ],
)
def test_partition_of_workload_is_read(kind, strategy, expected):
    adapter = next(it for it in ADAPTERS if it.type == kind)
    workload = {"metadata": {}, "spec": {"replicas": 5, "updateStrategy": strategy}}
    assert adapter.partition(workload, []) == expected


def test_pods_that_block_their_replacement_are_deleted():
    foo = UnitedDeploymentHarness("StatefulSet", "ab", replicas=10)
    foo.halted = {"a", "b"}
    foo.reconcile_once()
    foo.manage()
    foo.keep(a=4, b=3)
    foo.release("a:2")
    assert {verb for verb, plural, _ in foo.reconcile_once() if plural == "statefulsets"} == {"update"}
    assert not deleted_pods(foo), "the sets do not know the new template yet"
    for name in "ab":
        set_observed_generation(foo, name)
    foo.reconcile_once()
    names = {name: meta.name(foo.workload(name)) for name in "ab"}
    assert deleted_pods(foo) == {f"{names['a']}-4", f"{names['b']}-3", f"{names['b']}-4"}
    assert foo.reconcile_once() == []


def deleted_pods(foo):
    return {name for verb, resource, name in foo.done if verb == "delete" and resource is PODS}


def set_observed_generation(foo, name):
    workload = foo.workload(name)
    status = {**workload["status"], "observedGeneration": meta.generation(workload)}
    foo.put(STATEFUL_SETS, {**workload, "status": status})


# --- the history


@pytest.mark.parametrize("kind", KINDS)
def test_revision_history_is_limited_and_rollback_reuses_revision(kind):
    foo = UnitedDeploymentHarness(kind, replicas=0, revisionHistoryLimit=2).settle()
    for image in ("a:2", "a:3"):
        foo.release(image)
        foo.settle()
    assert numbers(foo) == {"a:2": 2, "a:3": 3}
    second = next(it for it in foo.revisions if it["revision"] == 2)
    foo.release("a:2")
    foo.settle()
    assert numbers(foo) == {"a:2": 4, "a:3": 3}
    assert meta.uid(second) in {meta.uid(it) for it in foo.revisions if it["revision"] == 4}
    assert foo.status["currentRevision"] == meta.name(second)


def numbers(foo):
    return {image(it["data"]["spec"]["template"]): it["revision"] for it in foo.revisions}


def image(recorded):
    """Return the image of the workload template that a revision records beside its `$patch`."""
    workload = next(value for field, value in recorded.items() if field != "$patch")
    return workload["spec"]["template"]["spec"]["containers"][0]["image"]


def test_revision_in_use_is_not_deleted():
    foo = with_second_version("StatefulSet", a=4, b=4)
    foo.set("revisionHistoryLimit", 0)
    foo.settle()
    assert len(foo.revisions) == 2
    foo.keep()
    foo.settle()
    assert len(foo.revisions) == 1


def test_only_template_changes_create_revisions():
    foo = UnitedDeploymentHarness("StatefulSet", "ab", replicas=4).settle()
    foo.scale(6)
    foo.keep(a=1)
    foo.set("topology.subsets", [{"name": "a", "patch": {"metadata": {"labels": {"x": "y"}}}}, {"name": "c"}])
    assert len(foo.settle().revisions) == 1


@pytest.mark.parametrize(("count", "expected"), [(0, "589f85db5b"), (1, "589f85db5c")])
def test_revision_hash(count, expected):
    assert hash_of({"spec": {"template": {"$patch": "replace"}}}, count) == expected


def test_revision_name_collision_is_avoided():
    other = UnitedDeploymentHarness()
    other.reconcile_once()
    (taken,) = other.revisions
    foo = UnitedDeploymentHarness()
    stranger = {"metadata": {"name": meta.name(taken), "namespace": "default"}, "data": {"x": 1}}
    foo.add(CONTROLLER_REVISIONS, stranger)
    foo.settle()
    (own,) = foo.revisions
    expected = hash_of(own["data"], 1)
    assert meta.name(own) == f"foo-{expected}"
    assert "collisionCount" not in foo.status
