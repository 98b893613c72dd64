"""UnitedDeployment: detection of unschedulable subsets, and rescheduling of their pods."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.podview import PodView
from mockube.packs.kruise.controllers.uniteddeployment import rescheduling as schedulable
from mockube.packs.kruise.controllers.uniteddeployment.rescheduling import time_to_find_node
from mockube.packs.kruise.controllers.uniteddeployment.spec import Schedule
from mockube.packs.kruise.controllers.uniteddeployment.subset import Subset
from tests.packs.kruise.support.uniteddeployments import UnitedDeploymentHarness, adaptive, subset

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
DEFAULT = Schedule.of({"scheduleStrategy": {"type": "Adaptive"}})


def time_ago(seconds):
    return format_time(NOW - timedelta(seconds=seconds))


def seconds(number):
    return timedelta(seconds=number)


def waiting_pod(
    age=0, *, phase="Pending", reason="Unschedulable", scheduled="False", node="", deleting=False
):
    metadata = {"name": "p", "creationTimestamp": time_ago(age)}
    condition = {"type": "PodScheduled", "status": scheduled, "reason": reason}
    return PodView.of(
        {
            "metadata": metadata | ({"deletionTimestamp": time_ago(1)} if deleting else {}),
            "spec": {"nodeName": node} if node else {},
            "status": {"phase": phase, "conditions": [condition]},
        }
    )


def subset_with(*pods, ready=0):
    workload = {"metadata": {}, "spec": {}, "status": {"replicas": len(pods), "readyReplicas": ready}}
    return Subset(workload=workload, pods=pods, partition=0)


def unschedulable_conditions(age, reason="reschedule"):
    return [
        {
            "type": "Schedulable",
            "status": "False",
            "reason": reason,
            "lastTransitionTime": time_ago(age),
            "message": "m",
        }
    ]


def test_default_schedule_times():
    assert (DEFAULT.critical, DEFAULT.unschedulable) == (seconds(30), seconds(300))
    assert not DEFAULT.reserves
    fixed = Schedule.of({"scheduleStrategy": {"adaptive": {"reserveUnschedulablePods": True}}})
    assert not fixed.reserves


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(waiting_pod(15), 15, id="within the timeout"),
        pytest.param(waiting_pod(30), 0, id="timeout just reached"),
        pytest.param(waiting_pod(31), -1, id="timeout exceeded"),
        pytest.param(waiting_pod(31, deleting=True), None, id="deleting"),
        pytest.param(waiting_pod(31, phase="Running"), None, id="running"),
        pytest.param(waiting_pod(31, node="n"), None, id="bound to a node"),
        pytest.param(waiting_pod(31, reason="SchedulerError"), None, id="pending for another reason"),
        pytest.param(waiting_pod(31, scheduled="True"), None, id="PodScheduled is true"),
        pytest.param(
            PodView.of({"metadata": {"name": "p", "creationTimestamp": time_ago(31)}}),
            None,
            id="no condition yet",
        ),
    ],
)
def test_time_for_pod_to_find_node(pod, expected):
    remaining = time_to_find_node(pod, DEFAULT.critical, NOW)
    assert remaining == (None if expected is None else seconds(expected))


@pytest.mark.parametrize(
    ("subset_", "subset_condition", "expected"),
    [
        pytest.param(subset_with(waiting_pod(15)), [], (0, False, 15), id="15 s old"),
        pytest.param(subset_with(waiting_pod(31)), [], (1, True, 300), id="31 s old"),
        pytest.param(
            subset_with(waiting_pod(31), waiting_pod(10)), [], (1, True, 20), id="another one is younger"
        ),
        pytest.param(subset_with(waiting_pod(31), ready=1), [], (0, False, None), id="all are ready"),
        pytest.param(subset_with(), unschedulable_conditions(60), (0, True, 240), id="avoided for 60 s"),
        pytest.param(subset_with(), unschedulable_conditions(360), (0, False, None), id="avoided for 360 s"),
        pytest.param(
            subset_with(waiting_pod(31)), unschedulable_conditions(360), (1, True, 300), id="avoided again"
        ),
    ],
)
def test_schedulability_of_subset(subset_, subset_condition, expected):
    standing = schedulable.check_schedulability(subset_, DEFAULT, subset_condition, NOW)
    after = None if standing.check_after is None else standing.check_after.total_seconds()
    assert (standing.pending, standing.unschedulable, after) == expected


def test_condition_of_pending_pods():
    (subset_condition,) = schedulable.check_schedulability(
        subset_with(waiting_pod(31)), DEFAULT, [], NOW
    ).conditions
    assert subset_condition == {
        "type": "Schedulable",
        "status": "False",
        "reason": "reschedule",
        "message": "timeout pending pods found",
        "lastTransitionTime": time_ago(0),
    }
    again = schedulable.check_schedulability(
        subset_with(waiting_pod(31)), DEFAULT, unschedulable_conditions(60), NOW
    )
    assert again.conditions == unschedulable_conditions(60)


def test_condition_of_recovered_subset():
    (subset_condition,) = schedulable.check_schedulability(
        subset_with(), DEFAULT, unschedulable_conditions(300), NOW
    ).conditions
    assert (subset_condition["status"], subset_condition["reason"]) == ("True", "recover")
    assert subset_condition["message"] == "unschedulable subset recovered after 300.000000 seconds"


# --- the scenario as a whole

THREE = [subset("s0", maxReplicas=2), subset("s1", maxReplicas=2), subset("s2")]


@pytest.mark.parametrize("kind", ["Deployment", "CloneSet", "StatefulSet"])
def test_pods_are_rescheduled_to_schedulable_subsets_and_return(kind):
    foo = UnitedDeploymentHarness(kind, THREE, strategy=adaptive(10, 10))
    foo.full = {"s1"}
    assert foo.settle().sizes == {"s0": 2, "s1": 1, "s2": 0}
    foo.pass_(9)
    assert foo.sizes == {"s0": 2, "s1": 1, "s2": 0}
    foo.pass_(2)
    assert foo.sizes == {"s0": 2, "s1": 0, "s2": 1}
    assert foo.schedulable("s1") == ("False", "reschedule")
    foo.scale(5)
    assert foo.settle().sizes == {"s0": 2, "s1": 0, "s2": 3}
    foo.scale(4)
    assert foo.settle().sizes == {"s0": 2, "s1": 0, "s2": 2}
    foo.full = set()
    foo.pass_(11)
    assert foo.schedulable("s1") == ("True", "recover")
    assert foo.sizes == {"s0": 2, "s1": 0, "s2": 2}, "what runs stays where it is"
    foo.scale(5)
    assert foo.settle().sizes == {"s0": 2, "s1": 1, "s2": 2}
    assert foo.next_plan() == ()


def test_reconciliation_is_requeued_at_timeout():
    foo = UnitedDeploymentHarness(subsets=THREE, strategy=adaptive(10, 20))
    foo.full = {"s1"}
    foo.settle()
    assert foo.plan(("default", "foo")).requeue_after == seconds(10)
    foo.pass_(10)
    assert foo.plan(("default", "foo")).requeue_after == seconds(20)
    foo.pass_(5)
    assert foo.plan(("default", "foo")).requeue_after == seconds(15)


def test_fixed_topology_waits():
    foo = UnitedDeploymentHarness(subsets=THREE)
    foo.full = {"s1"}
    foo.settle().pass_(40)
    assert foo.sizes == {"s0": 2, "s1": 1, "s2": 0}
    assert foo.schedulable("s1") == ("", "")
