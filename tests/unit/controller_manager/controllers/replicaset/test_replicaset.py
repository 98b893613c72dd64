"""ReplicaSet and ReplicationController: pods, adoption and release, status and Events."""

import pytest

from mockube.apimachinery import conditions, meta, status
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS
from mockube.controller_manager.control.actions import Create, Delete
from mockube.controller_manager.controllers.replicaset.controller import (
    BURST_REPLICAS,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
)
from tests.support.controllers.deployments import DeploymentHarness, replicaset, template
from tests.support.controllers.fake_caches import FakeLister

FULL = status.forbidden(PODS.group_resource, "web-1", "exceeded quota: q")


@pytest.fixture
def cluster():
    return DeploymentHarness()


def with_set(cluster, **spec):
    cluster.add(REPLICA_SETS, replicaset(**spec))
    return cluster


def pod_verbs(cluster):
    return [verb for verb, plural, _ in cluster.reconcile_once(REPLICA_SET) if plural == "pods"]


def status_counts(cluster):
    return {
        key: value for key, value in cluster.get(REPLICA_SETS, "web")["status"].items() if key != "conditions"
    }


def with_running_pods(cluster, **spec):
    with_set(cluster, **spec)
    pod_verbs(cluster)
    cluster.run_all()
    pod_verbs(cluster)
    return cluster


@pytest.mark.parametrize(
    ("have", "want", "expected"),
    [
        pytest.param(0, 2, ["create"] * 2, id="scale up from zero"),
        pytest.param(1, 3, ["create"] * 2, id="grows"),
        pytest.param(3, 1, ["delete"] * 2, id="shrinks"),
        pytest.param(2, 0, ["delete"] * 2, id="scale down to zero"),
        pytest.param(2, 2, [], id="at the desired size"),
    ],
)
def test_pods_are_created_and_deleted_to_match_replicas(cluster, have, want, expected):
    with_running_pods(cluster, replicas=have)
    cluster.respecify(REPLICA_SETS, "web", ("replicas",), want)
    assert pod_verbs(cluster) == expected
    assert pod_verbs(cluster) == []


def test_plan_counts_the_owned_pods_whose_number_paces_the_next_one(cluster):
    with_running_pods(cluster, replicas=3)
    cluster.respecify(REPLICA_SETS, "web", ("replicas",), 5)
    assert cluster.plan_of(REPLICA_SET).counted == 3


def test_pods_are_counted_without_a_look_at_each(cluster, monkeypatch):
    with_running_pods(cluster, replicas=3)
    owner = meta.uid(cluster.get(REPLICA_SETS, "web"))
    by_index = FakeLister.by_index
    looks = []
    monkeypatch.setattr(
        FakeLister,
        "by_index",
        lambda lister, name, value: looks.append(value) or by_index(lister, name, value),
    )
    cluster.run(cluster.pods[0], ready=False)
    assert pod_verbs(cluster) == []
    assert status_counts(cluster)["readyReplicas"] == 2
    assert owner not in looks
    cluster.respecify(REPLICA_SETS, "web", ("replicas",), 2)
    assert pod_verbs(cluster) == ["delete"]
    assert owner in looks


def test_pod_is_created_from_template_with_event(cluster):
    with_set(cluster, replicas=1, template=template("a:7", tier="front"))
    pod_verbs(cluster)
    (pod,) = cluster.pods
    assert meta.labels(pod) == {"app": "web", "tier": "front"}
    assert pod["spec"]["containers"] == [{"name": "c", "image": "a:7"}]
    assert meta.is_controlled_by(pod, cluster.get(REPLICA_SETS, "web"))
    assert cluster.events == [("Normal", "SuccessfulCreate", f"Created pod: {meta.name(pod)}")]


def test_deletion_records_event(cluster):
    with_running_pods(cluster, replicas=1)
    name = meta.name(cluster.pods[0])
    cluster.respecify(REPLICA_SETS, "web", ("replicas",), 0)
    pod_verbs(cluster)
    assert cluster.events[-1] == ("Normal", "SuccessfulDelete", f"Deleted pod: {name}")


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_finished_pod_is_replaced_and_kept(cluster, phase):
    with_running_pods(cluster, replicas=1)
    cluster.run(cluster.pods[0], phase=phase)
    assert pod_verbs(cluster) == ["create"]
    assert len(cluster.pods) == 2


def test_deleting_pod_is_replaced_at_once(cluster):
    with_running_pods(cluster, replicas=1)
    ending = meta.with_metadata(cluster.pods[0], deletionTimestamp=format_time(cluster.clock.now()))
    cluster.put(PODS, ending)
    assert pod_verbs(cluster) == ["create"]


@pytest.mark.parametrize(("have", "want", "kind"), [(0, 2000, Create), (600, 1, Delete)])
def test_plan_is_limited_to_burst(cluster, have, want, kind):
    with_set(cluster, replicas=want)
    owner = meta.controller_reference(cluster.get(REPLICA_SETS, "web"))
    for number in range(have):
        metadata = {"name": f"p{number}", "namespace": "default", "labels": {"app": "web"}}
        cluster.add(PODS, {"metadata": {**metadata, "ownerReferences": [owner]}, "spec": {}})
    (action,) = cluster.plan_of(REPLICA_SET).actions
    assert isinstance(action, kind)
    assert len(action.bodies if kind is Create else action.objects) == BURST_REPLICAS


def test_unready_pods_are_deleted_first(cluster):
    with_running_pods(cluster, replicas=3)
    sick = cluster.pods[1]
    cluster.run(sick, ready=False)
    cluster.respecify(REPLICA_SETS, "web", ("replicas",), 2)
    pod_verbs(cluster)
    assert meta.is_deleting(cluster.get(PODS, meta.name(sick)))


def test_orphans_are_adopted_before_creation(cluster):
    stray = {"metadata": {"name": "stray", "namespace": "default", "labels": {"app": "web"}}, "spec": {}}
    cluster.add(PODS, stray)
    with_set(cluster, replicas=2)
    assert pod_verbs(cluster) == ["adopt"]
    assert pod_verbs(cluster) == ["create"]
    assert all(meta.is_controlled_by(pod, cluster.get(REPLICA_SETS, "web")) for pod in cluster.pods)


def test_relabelled_pod_is_released_and_replaced(cluster):
    with_running_pods(cluster, replicas=2)
    free = meta.with_labels(cluster.pods[0], {"app": "free"})
    cluster.put(PODS, free)
    assert pod_verbs(cluster) == ["release"]
    assert pod_verbs(cluster) == ["create"]
    assert meta.controller_of(cluster.get(PODS, meta.name(free))) is None


@pytest.mark.parametrize("change", ["adopt", "release"])
def test_finished_pods_are_neither_adopted_nor_released(cluster, change):
    with_running_pods(cluster, replicas=1)
    pod = cluster.pods[0]
    labels = {"app": "free"} if change == "release" else {}
    owners = {} if change == "release" else {"ownerReferences": []}
    pod = meta.with_metadata(meta.with_labels(pod, labels), **owners)
    cluster.run(pod, phase="Failed")
    assert pod_verbs(cluster) == ["create"]


def test_deleting_set_updates_status_only(cluster):
    with_running_pods(cluster, replicas=2)
    held = meta.with_finalizer(cluster.get(REPLICA_SETS, "web"), "foregroundDeletion")
    cluster.put(REPLICA_SETS, meta.with_metadata(held, deletionTimestamp=format_time(cluster.clock.now())))
    cluster.remove(PODS, meta.name(cluster.pods[0]))
    assert pod_verbs(cluster) == []
    assert status_counts(cluster)["replicas"] == 1


# --- status and events


def test_status_counts_pods(cluster):
    with_running_pods(cluster, replicas=3)
    first, second, _ = cluster.pods
    cluster.run(first, ready=False)
    cluster.put(PODS, meta.with_labels(second, {"app": "web", "more": "1"}))
    cluster.reconcile_once(REPLICA_SET)
    assert status_counts(cluster) == {
        "replicas": 3,
        "fullyLabeledReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


def test_pods_without_template_labels_are_not_fully_labeled(cluster):
    with_running_pods(cluster, replicas=1, template=template(tier="front"))
    cluster.put(PODS, meta.with_labels(cluster.pods[0], {"tier": None}))
    pod_verbs(cluster)
    assert "fullyLabeledReplicas" not in status_counts(cluster)
    assert status_counts(cluster)["replicas"] == 1


def test_terminating_pods_are_counted_until_gone(cluster):
    with_running_pods(cluster, replicas=1)
    cluster.respecify(REPLICA_SETS, "web", ("replicas",), 0)
    pod_verbs(cluster)
    pod_verbs(cluster)
    assert status_counts(cluster) == {"replicas": 0, "terminatingReplicas": 1, "observedGeneration": 2}
    cluster.finish()
    pod_verbs(cluster)
    assert status_counts(cluster)["terminatingReplicas"] == 0


def test_unchanged_status_is_not_written(cluster):
    with_running_pods(cluster)
    pod_verbs(cluster)
    cluster.done.clear()
    assert cluster.reconcile_once(REPLICA_SET) == []


def test_observed_generation_follows_every_spec_change(cluster):
    with_running_pods(cluster)
    cluster.respecify(REPLICA_SETS, "web", ("minReadySeconds",), 0)
    assert [verb for verb, *_ in cluster.reconcile_once(REPLICA_SET)] == ["update"]
    assert status_counts(cluster)["observedGeneration"] == 2


def test_pod_is_available_after_min_ready_seconds(cluster):
    with_running_pods(cluster, replicas=2, minReadySeconds=10)
    assert (status_counts(cluster)["readyReplicas"], status_counts(cluster).get("availableReplicas")) == (
        2,
        None,
    )
    plan = cluster.plan_of(REPLICA_SET)
    assert plan.requeue_after is not None
    assert plan.requeue_after.total_seconds() == 10
    cluster.clock.advance(10)
    pod_verbs(cluster)
    assert status_counts(cluster)["availableReplicas"] == 2
    assert cluster.plan_of(REPLICA_SET).requeue_after is None


def test_requeue_is_for_next_available_pod(cluster):
    with_running_pods(cluster, replicas=2, minReadySeconds=10)
    cluster.clock.advance(4)
    cluster.run(cluster.pods[0])
    assert cluster.plan_of(REPLICA_SET).requeue_after.total_seconds() == 6


def failure(cluster):
    tree = cluster.get(REPLICA_SETS, "web")
    found = conditions.get(tree, "ReplicaFailure")
    return found and (found["status"], found["reason"], found["message"])


def fail(cluster, error):
    """Apply the writes of a plan that ended with the error."""
    for action in cluster.plan_of(REPLICA_SET).last(error):
        cluster._update(action)


def test_failure_condition_lasts_until_success(cluster):
    with_set(cluster, replicas=1)
    fail(cluster, FULL)
    assert failure(cluster) == ("True", "FailedCreate", 'pods "web-1" is forbidden: exceeded quota: q')
    fail(cluster, status.internal_error("later"))
    assert "quota" in failure(cluster)[2]
    pod_verbs(cluster)
    assert failure(cluster) is None


def test_failed_deletion_sets_other_condition(cluster):
    with_running_pods(cluster, replicas=2)
    cluster.respecify(REPLICA_SETS, "web", ("replicas",), 1)
    fail(cluster, status.internal_error("no"))
    assert failure(cluster) == (
        "True",
        "FailedDelete",
        "unable to delete pods: Internal error occurred: no",
    )


def test_failed_creation_records_event(cluster):
    with_set(cluster, replicas=1)
    (create,) = cluster.plan_of(REPLICA_SET).actions
    reason, message = create.event.on_failure
    assert reason == "FailedCreate"
    assert message.format(error=FULL) == 'Error creating: pods "web-1" is forbidden: exceeded quota: q'


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Near"}]}, id="broken"),
        pytest.param(None, id="absent"),
    ],
)
def test_selector_that_matches_nothing_creates_no_pods(cluster, selector):
    with_set(cluster, replicas=2, selector=selector)
    assert pod_verbs(cluster) == []


def test_deleted_set_has_no_plan(cluster):
    assert cluster.reconcile_once(REPLICA_SET) == []


# --- ReplicationControllers


def test_replication_controller_uses_label_selector():
    cluster = DeploymentHarness()
    spec = {"replicas": 2, "selector": {"app": "web"}, "template": template()}
    cluster.add(REPLICATION_CONTROLLERS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    cluster.reconcile_once(REPLICATION_CONTROLLER)
    cluster.run_all()
    cluster.reconcile_once(REPLICATION_CONTROLLER)
    assert {meta.controller_of(pod)["kind"] for pod in cluster.pods} == {"ReplicationController"}
    assert cluster.get(REPLICATION_CONTROLLERS, "web")["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }
    assert cluster.reconcile_once(REPLICATION_CONTROLLER) == []


def test_owners_of_same_name_have_separate_pods():
    cluster = DeploymentHarness()
    spec = {"replicas": 1, "selector": {"app": "web"}, "template": template()}
    cluster.add(REPLICATION_CONTROLLERS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    cluster.add(REPLICA_SETS, replicaset(replicas=1))
    cluster.reconcile_once(REPLICATION_CONTROLLER)
    cluster.reconcile_once(REPLICA_SET)
    assert len(cluster.pods) == 2
    assert cluster.plan_of(REPLICATION_CONTROLLER).actions == ()
    assert cluster.plan_of(REPLICA_SET).actions == ()
