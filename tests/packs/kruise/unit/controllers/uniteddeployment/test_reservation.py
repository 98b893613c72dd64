"""UnitedDeployment: reserved pods, their replacements in other subsets, and the allocation with them."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.packs.kruise.controllers.uniteddeployment import rescheduling
from mockube.packs.kruise.controllers.uniteddeployment.rescheduling import (
    Rollout,
    reschedule_decision,
)
from mockube.packs.kruise.controllers.uniteddeployment.spec import Schedule
from mockube.packs.kruise.controllers.uniteddeployment.subset import (
    LABEL_RESERVED_POD,
    LABEL_REVISION,
    Subset,
)
from mockube.packs.kruise.kinds import UNITED_DEPLOYMENTS
from tests.packs.kruise.support.uniteddeployments import UnitedDeploymentHarness, adaptive, subset

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SCHEDULE = Schedule.of({"scheduleStrategy": adaptive(10, 5, reserves=True)})


def time_ago(seconds):
    return NOW - timedelta(seconds=seconds)


def pod(*conditions, mark=None, revision="v2", age=100, phase="Running", deleting=False):
    labels = {LABEL_REVISION: revision} | ({LABEL_RESERVED_POD: mark} if mark is not None else {})
    metadata = {"name": "p", "creationTimestamp": format_time(time_ago(age)), "labels": labels}
    return PodView.of(
        {
            "metadata": metadata | ({"deletionTimestamp": format_time(NOW)} if deleting else {}),
            "status": {"phase": phase, "conditions": [*conditions]},
        }
    )


def ready(seconds, status="True"):
    return {"type": "Ready", "status": status, "lastTransitionTime": format_time(time_ago(seconds))}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def pending_pod(age, **fields):
    return pod(UNSCHEDULABLE, age=age, phase="Pending", **fields)


@pytest.mark.parametrize(
    ("subject", "updating_for", "expected"),
    [
        pytest.param(pod(ready(6), mark="true"), 0, (False, None, False), id="reserved, ready for 6 s"),
        pytest.param(pod(ready(5), mark="true"), 0, (False, None, False), id="reserved, ready for 5 s"),
        pytest.param(pod(ready(3), mark="true"), 0, (True, 2, False), id="reserved, ready for 3 s"),
        pytest.param(pod(ready(9, "False"), mark="true"), 0, (True, 5, False), id="reserved, not ready"),
        pytest.param(
            pod(ready(9), mark="true", revision="v1"), 0, (True, 5, False), id="reserved, of the old revision"
        ),
        pytest.param(pending_pod(3, mark="true"), 0, (True, 5, False), id="reserved, pending"),
        pytest.param(pending_pod(3), 0, (False, 7, False), id="pending for 3 s"),
        pytest.param(pending_pod(11), 0, (True, 5, False), id="pending for 11 s"),
        pytest.param(pending_pod(11, mark="false"), 0, (True, 5, False), id="pending, marked as unreserved"),
        pytest.param(pod(ready(1)), 0, (False, None, False), id="running"),
        pytest.param(pod(ready(9), revision="v1"), 11, (True, 5, True), id="old, updating since 11 s"),
        pytest.param(pod(ready(9), revision="v1"), 4, (False, 6, False), id="old, updating since 4 s"),
        pytest.param(
            pod(ready(9), revision="v1", deleting=True),
            11,
            (False, None, False),
            id="old, terminating",
        ),
    ],
)
def test_reserved_pod_is_recognised(subject, updating_for, expected):
    verdict = reschedule_decision(
        subject, SCHEDULE, Rollout(expected="v2", since=time_ago(updating_for)), NOW
    )
    after = None if verdict.check_after is None else verdict.check_after.total_seconds()
    assert (verdict.reserved, after, verdict.overdue) == expected


def check_subset(*pods, subset_condition=()):
    workload = {"metadata": {}, "spec": {}, "status": {"replicas": len(pods)}}
    seen = Subset(workload=workload, pods=pods, partition=0)
    return rescheduling.check_reservation(
        seen, SCHEDULE, Rollout(expected="v2", since=NOW), subset_condition, NOW
    )


MARKED = [
    {
        "type": "Schedulable",
        "status": "False",
        "reason": "created",
        "message": "m",
        "lastTransitionTime": format_time(time_ago(60)),
    }
]


def test_subset_with_reserved_pods():
    standing = check_subset(pending_pod(11), pod(ready(9)), pod(ready(9), mark="false"))
    assert (standing.unschedulable, standing.was_unschedulable, standing.reserved) == (True, False, 1)
    assert [is_reserved for _, is_reserved in standing.label_changes] == [True, False]
    assert condition_summary(standing) == ("False", "reschedule", "reserved pods found")
    assert standing.check_after == timedelta(seconds=5)


def test_subset_without_reserved_pods():
    standing = check_subset(pod(ready(9), mark="true"))
    assert (standing.unschedulable, standing.reserved) == (False, 0)
    assert [is_reserved for _, is_reserved in standing.label_changes] == [False]
    assert condition_summary(standing) == ("True", "reschedule", "no reserved pods")
    assert standing.check_after is None


def test_new_pods_of_marked_subset_are_reserved():
    standing = check_subset(pod(ready(9)), pod(ready(9), mark="false"), subset_condition=MARKED)
    assert (standing.was_unschedulable, standing.reserved) == (True, 1)
    assert [is_reserved for _, is_reserved in standing.label_changes] == [True]


def test_unchanged_mark_is_not_written():
    standing = check_subset(pod(ready(9), mark="false"), pending_pod(20, mark="true"))
    assert standing.label_changes == ()


def condition_summary(standing):
    (condition,) = standing.conditions
    return condition["status"], condition["reason"], condition["message"]


# --- the scenario as a whole

FOUR = [
    *(subset(name, minReplicas=1, maxReplicas=2) for name in ("s0", "s1", "s2")),
    subset("s3", minReplicas=1),
]
STATELESS = pytest.mark.parametrize("kind", ["Deployment", "CloneSet"])


@STATELESS
def test_other_subsets_replace_unschedulable_pods(kind):
    foo = UnitedDeploymentHarness(kind, FOUR, replicas=8, strategy=adaptive(10, 5, reserves=True))
    foo.full = {"s1", "s2"}
    assert foo.settle().sizes == {"s0": 2, "s1": 2, "s2": 2, "s3": 2}
    foo.pass_(11)
    assert foo.sizes == {"s0": 2, "s1": 2, "s2": 2, "s3": 6}
    assert foo.status["reservedPods"] == 4
    assert foo.status["replicas"] == foo.status["readyReplicas"] == 8
    assert foo.schedulable("s1") == ("False", "reschedule")
    assert reserved_labels(foo, "s1") == ["true", "true"]
    assert reserved_labels(foo, "s0") == ["false", "false"]
    foo.full = set()
    foo.settle().pass_(12)
    assert foo.sizes == {"s0": 2, "s1": 2, "s2": 2, "s3": 2}
    assert "reservedPods" not in foo.status
    assert foo.status["replicas"] == 8
    assert foo.next_plan() == ()


@STATELESS
def test_later_subset_starts_as_reserved(kind):
    foo = UnitedDeploymentHarness(kind, ["s0"], replicas=2, strategy=adaptive(10, 5, reserves=True)).settle()
    foo.set("topology.subsets", [subset("s0", maxReplicas=1), subset("s1")])
    foo.reconcile_once()
    assert foo.schedulable("s1") == ("False", "created")
    foo.settle().pass_(12)
    assert foo.sizes == {"s0": 1, "s1": 1}
    assert foo.schedulable("s1") == ("True", "reschedule")


@STATELESS
def test_recovered_growing_subset_is_marked_again(kind):
    foo = UnitedDeploymentHarness(kind, ["s0"], replicas=2, strategy=adaptive(10, 5, reserves=True)).settle()
    foo.change(
        UNITED_DEPLOYMENTS, "foo", ("status", "subsetStatuses"), [{"name": "s0", "conditions": MARKED}]
    )
    foo.scale(3)
    foo.reconcile_once()
    (subset_condition,) = foo.of_subset("s0")["conditions"]
    assert (subset_condition["status"], subset_condition["message"]) == (
        "False",
        "subset just recovered scaled up",
    )
    foo.settle().pass_(6)
    assert foo.schedulable("s0") == ("True", "reschedule")


PLACES = {
    "Deployment": ("strategy", "rollingUpdate", "maxUnavailable"),
    "CloneSet": ("updateStrategy", "maxUnavailable"),
}


@STATELESS
def test_unschedulable_pods_do_not_block_update(kind):
    subsets = [subset("s0", maxReplicas=2), subset("s1")]
    foo = UnitedDeploymentHarness(kind, subsets, replicas=4, strategy=adaptive(10, 5, reserves=True)).settle()
    foo.full = {"s1"}
    foo.remove(PODS, meta.name(foo.pods_of("s1")[0]))
    foo.settle().pass_(11)
    assert foo.of_subset("s1")["reservedPods"] == 1
    foo.release("a:2")
    foo.reconcile_once()
    found = {name: value(foo.workload(name)["spec"], PLACES[kind]) for name in ("s0", "s1")}
    assert found == {"s0": None, "s1": 1}


def test_unavailable_pods_are_limited_during_update():
    subsets = [subset("s0", maxReplicas=3), subset("s1")]
    foo = UnitedDeploymentHarness(
        "CloneSet", subsets, replicas=6, strategy=adaptive(10, 5, reserves=True)
    ).settle()
    foo.full = {"s1"}
    foo.remove(PODS, meta.name(foo.pods_of("s1")[0]))
    foo.settle().pass_(11)
    foo.keep(s1=1)
    foo.release("a:2")
    foo.reconcile_once()
    assert value(foo.workload("s1")["spec"], PLACES["CloneSet"]) == 1
    foo.manage()
    assert foo.workload("s1")["status"]["readyReplicas"] == 0
    foo.reconcile_once()
    assert value(foo.workload("s1")["spec"], PLACES["CloneSet"]) == 3
    assert [verb for verb, plural, _ in foo.reconcile_once() if plural == "clonesets"] == []


def value(spec, path):
    for field in path:
        spec = (spec or {}).get(field)
    return spec


def reserved_labels(foo, name):
    return [meta.labels(one).get(LABEL_RESERVED_POD) for one in foo.pods_of(name)]
