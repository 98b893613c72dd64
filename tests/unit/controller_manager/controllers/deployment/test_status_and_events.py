"""Deployment: counts, conditions with each reason, and the progress deadline."""

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import PODS, REPLICA_SETS
from mockube.controller_manager.controllers.deployment.controller import DEPLOYMENT
from mockube.controller_manager.controllers.replicaset.controller import REPLICA_SET
from tests.support.controllers.deployments import DeploymentHarness, rolling

MINIMUM = ("True", "MinimumReplicasAvailable")
TOO_FEW = ("False", "MinimumReplicasUnavailable")
DONE = ("True", "NewReplicaSetAvailable")
UPDATED = ("True", "ReplicaSetUpdated")
CREATED = ("True", "NewReplicaSetCreated")
LATE = ("False", "ProgressDeadlineExceeded")


@pytest.fixture
def cluster():
    return DeploymentHarness()


def condition(cluster, name="Progressing"):
    return next(it for it in cluster.status["conditions"] if it["type"] == name)


def counts(cluster):
    return {
        key: value for key, value in cluster.status.items() if key not in ("conditions", "observedGeneration")
    }


def test_conditions_of_first_rollout(cluster):
    cluster.deploy(replicas=2)
    cluster.roll_on()
    assert counts(cluster) == {"unavailableReplicas": 2, "terminatingReplicas": 0}
    assert cluster.conditions == {"Available": TOO_FEW, "Progressing": CREATED}
    name = meta.name(cluster.sets[0])
    assert condition(cluster)["message"] == f'Created new replica set "{name}"'
    cluster.manage()
    cluster.manage()
    cluster.roll_on()
    assert counts(cluster) == {
        "replicas": 2,
        "updatedReplicas": 2,
        "unavailableReplicas": 2,
        "terminatingReplicas": 0,
    }
    assert cluster.conditions == {"Available": TOO_FEW, "Progressing": UPDATED}
    assert condition(cluster)["message"] == f'ReplicaSet "{name}" is progressing.'
    cluster.settle()
    assert counts(cluster) == {
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
    }
    assert cluster.conditions == {"Available": MINIMUM, "Progressing": DONE}
    assert condition(cluster)["message"] == f'ReplicaSet "{name}" has successfully progressed.'


def test_deployment_of_0_replicas_is_complete_at_once(cluster):
    cluster.deploy(replicas=0)
    cluster.roll_on()
    assert cluster.conditions == {"Available": MINIMUM, "Progressing": DONE}


def test_unchanged_deployment_is_not_written(cluster):
    cluster.deploy().settle()
    cluster.done.clear()
    cluster.roll_on()
    assert cluster.done == []
    assert cluster.plan_of(DEPLOYMENT).requeue_after is None


def test_explicit_zero_counts_are_not_rewritten(cluster):
    cluster.deploy().settle()
    cluster.change(DEPLOYMENT.watches[0].resource, "web", ("status", "unavailableReplicas"), 0)
    assert cluster.roll_on() == []


def test_availability_follows_pods(cluster):
    cluster.deploy(replicas=3, strategy=rolling(1, 1)).settle()
    first, second, _ = cluster.pods
    cluster.run(first, ready=False)
    cluster.manage()
    cluster.roll_on()
    assert cluster.conditions["Available"] == MINIMUM
    assert counts(cluster)["unavailableReplicas"] == 1
    cluster.clock.advance(5)
    cluster.run(second, ready=False)
    cluster.manage()
    cluster.roll_on()
    assert cluster.conditions == {"Available": TOO_FEW, "Progressing": DONE}
    assert condition(cluster, "Available")["lastTransitionTime"] == format_time(cluster.clock.now())


def test_terminating_pods_are_counted(cluster):
    cluster.deploy(replicas=2).settle()
    cluster.scale(1)
    cluster.roll_on()
    cluster.manage()
    cluster.manage()
    cluster.roll_on()
    assert cluster.status["terminatingReplicas"] == 1


def test_terminating_count_needs_all_sets(cluster):
    cluster.deploy().settle()
    (name,) = cluster.names(REPLICA_SETS)
    counted = cluster.get(REPLICA_SETS, name)["status"]
    rest = {key: value for key, value in counted.items() if key != "terminatingReplicas"}
    cluster.change(REPLICA_SETS, name, ("status",), rest)
    cluster.roll_on()
    assert "terminatingReplicas" not in cluster.status


def test_replica_failure_of_set_is_reported(cluster):
    cluster.deploy().settle()
    cluster.release("a:2")
    cluster.roll_on()
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": format_time(cluster.clock.now()),
        "reason": "FailedCreate",
        "message": "exceeded quota",
    }
    name = meta.name(cluster.set_of("a:2"))
    cluster.change(REPLICA_SETS, name, ("status",), {"observedGeneration": 1, "conditions": [failure]})
    cluster.roll_on()
    assert cluster.conditions["ReplicaFailure"] == ("True", "FailedCreate")
    assert condition(cluster, "ReplicaFailure")["lastUpdateTime"] == failure["lastTransitionTime"]
    cluster.reconcile_once(REPLICA_SET, name)
    cluster.settle()
    assert "ReplicaFailure" not in cluster.conditions


# --- the deadline


def start_stuck_rollout(cluster, deadline=10, **spec):
    """Start a rollout whose new pods never become ready."""
    cluster.deploy(replicas=2, progressDeadlineSeconds=deadline, strategy=rolling(1, 0), **spec).settle()
    cluster.clock.advance(100)
    cluster.release("a:2")
    for _ in range(3):
        cluster.settle(machine=False)
        cluster.finish()


def test_stalled_rollout_is_requeued_at_deadline(cluster):
    start_stuck_rollout(cluster)
    assert cluster.conditions["Progressing"] == UPDATED
    again = cluster.plan_of(DEPLOYMENT).requeue_after
    assert again is not None
    assert again.total_seconds() == 11
    cluster.clock.advance(10)
    assert cluster.roll_on() == []
    assert cluster.plan_of(DEPLOYMENT).requeue_after.total_seconds() == 1
    cluster.clock.advance(1)
    cluster.roll_on()
    assert cluster.conditions == {"Available": MINIMUM, "Progressing": LATE}
    name = meta.name(cluster.set_of("a:2"))
    assert condition(cluster)["message"] == f'ReplicaSet "{name}" has timed out progressing.'
    assert cluster.plan_of(DEPLOYMENT).requeue_after is None
    assert cluster.roll_on() == []


def test_progress_restarts_deadline(cluster):
    start_stuck_rollout(cluster)
    since = condition(cluster)["lastTransitionTime"]
    cluster.clock.advance(8)
    (pod,) = (it for it in cluster.pods if "status" not in it)
    cluster.run(pod)
    cluster.manage()
    cluster.roll_on()
    assert condition(cluster)["lastUpdateTime"] == format_time(cluster.clock.now())
    assert condition(cluster)["lastTransitionTime"] == since


def test_late_rollout_that_progresses_is_no_longer_late(cluster):
    start_stuck_rollout(cluster)
    cluster.clock.advance(11)
    cluster.roll_on()
    cluster.settle()
    assert cluster.conditions == {"Available": MINIMUM, "Progressing": DONE}


def test_complete_rollout_never_exceeds_deadline(cluster):
    cluster.deploy(progressDeadlineSeconds=10).settle()
    cluster.clock.advance(1000)
    for pod in cluster.pods:
        cluster.run(pod, ready=False)
    cluster.manage()
    cluster.roll_on()
    assert cluster.conditions == {"Available": TOO_FEW, "Progressing": DONE}


@pytest.mark.parametrize("deadline", [None, 2**31 - 1])
def test_no_deadline_has_no_progressing_condition(cluster, deadline):
    start_stuck_rollout(cluster, deadline)
    assert cluster.conditions == {"Available": MINIMUM}
    assert cluster.plan_of(DEPLOYMENT).requeue_after is None


def test_added_progress_deadline_sets_found_new_replica_set(cluster):
    start_stuck_rollout(cluster, None)
    cluster.set("progressDeadlineSeconds", 10)
    cluster.roll_on()
    assert cluster.conditions["Progressing"] == ("True", "FoundNewReplicaSet")
    name = meta.name(cluster.set_of("a:2"))
    assert condition(cluster)["message"] == f'Found new replica set "{name}"'


# --- a pause


def test_pause_and_resume_are_one_write_each(cluster):
    cluster.deploy().settle()
    cluster.pause()
    assert [verb for verb, *_ in cluster.roll_on()] == ["update"]
    assert cluster.conditions["Progressing"] == ("Unknown", "DeploymentPaused")
    assert condition(cluster)["message"] == "Deployment is paused"
    assert cluster.roll_on() == []
    cluster.resume()
    assert [verb for verb, *_ in cluster.roll_on()] == ["update"]
    assert cluster.conditions["Progressing"] == DONE


def test_paused_time_does_not_count(cluster):
    start_stuck_rollout(cluster)
    cluster.pause()
    cluster.roll_on()
    cluster.clock.advance(1000)
    cluster.roll_on()
    assert cluster.conditions["Progressing"] == ("Unknown", "DeploymentPaused")
    cluster.resume()
    cluster.roll_on()
    assert cluster.conditions["Progressing"] == ("Unknown", "DeploymentResumed")
    assert condition(cluster)["message"] == "Deployment is resumed"
    assert cluster.plan_of(DEPLOYMENT).requeue_after.total_seconds() == 11


def test_pause_does_not_hide_exceeded_deadline(cluster):
    start_stuck_rollout(cluster)
    cluster.clock.advance(11)
    cluster.roll_on()
    cluster.pause()
    cluster.roll_on()
    assert cluster.conditions["Progressing"] == LATE


@pytest.mark.parametrize("deadline", [None, 10])
def test_pause_stops_rollout(cluster, deadline):
    start_stuck_rollout(cluster, deadline)
    before = cluster.sizes
    cluster.pause()
    cluster.settle()
    assert cluster.sizes == before
    cluster.resume()
    cluster.settle()
    assert cluster.sizes == {"a:1": 0, "a:2": 2}
    assert len(cluster.all(PODS)) == 2
