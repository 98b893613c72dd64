"""StatefulSet: the order in which pods are created, deleted and replaced."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.kinds import CONTROLLER_REVISIONS, STATEFUL_SETS
from tests.support.controllers.statefulsets import StatefulSetHarness


def rolling_update(**fields):
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, **fields}}


def settled_sets(gates=None, **spec):
    sets = StatefulSetHarness(gates, **spec)
    sets.settle()
    return sets


def gates(minor, **settings):
    return FeatureGates(minor, settings.items())


def test_pods_are_created_in_order():
    sets = StatefulSetHarness()
    assert sets.round() == [("create", "web-0")]
    assert sets.round() == []
    sets.run(0, ready=False)
    assert sets.round() == []
    sets.run(0)
    assert sets.round() == [("create", "web-1")]
    sets.run(1)
    assert sets.round() == [("create", "web-2")]
    sets.run(2)
    assert sets.round() == []


def test_parallel_pods_are_created_together():
    sets = StatefulSetHarness(podManagementPolicy="Parallel")
    assert sets.round() == [("create", "web-0"), ("create", "web-1"), ("create", "web-2")]


def test_ordinals_begin_at_start_ordinal():
    sets = settled_sets(ordinals={"start": 5}, replicas=2)
    assert sets.pods == ["web-5", "web-6"]


def test_pods_move_with_start_ordinal():
    sets = settled_sets(replicas=2)
    sets.respecify(STATEFUL_SETS, "web", ("ordinals",), {"start": 1})
    sets.settle()
    assert sets.pods == ["web-1", "web-2"]


def test_highest_ordinal_is_deleted_first_and_alone():
    sets = settled_sets()
    sets.scale(1)
    assert sets.round() == [("delete", "web-2")]
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("delete", "web-1")]
    sets.finish()
    assert sets.round() == []


def test_parallel_pods_are_deleted_together():
    sets = settled_sets(podManagementPolicy="Parallel")
    sets.scale(0)
    assert sets.round() == [("delete", "web-2"), ("delete", "web-1"), ("delete", "web-0")]


def test_scale_down_waits_for_unready_pod():
    sets = settled_sets()
    sets.run(0, ready=False)
    sets.scale(2)
    assert sets.round() == []
    sets.run(0)
    assert sets.round() == [("delete", "web-2")]


def test_unhealthy_condemned_pod_blocks_higher_ordinals():
    sets = settled_sets()
    sets.run(1, ready=False)
    sets.run(2, ready=False)
    sets.scale(1)
    assert sets.round() == []
    sets.run(2)
    assert sets.round() == [("delete", "web-2")]


def test_first_unhealthy_pod_may_be_deleted():
    sets = settled_sets()
    sets.run(2, ready=False)
    sets.scale(2)
    assert sets.round() == [("delete", "web-2")]


def test_update_replaces_from_highest_ordinal_one_by_one():
    sets = settled_sets()
    sets.roll("a:2")
    assert sets.round() == [("delete", "web-2")]
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("create", "web-2")]
    assert sets.round() == []
    sets.run(2)
    assert sets.round() == [("delete", "web-1")]
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:2"] * 3


def test_update_waits_for_unhealthy_predecessor():
    sets = settled_sets()
    sets.run(0, ready=False)
    sets.roll("a:2")
    assert sets.round() == []


def test_parallel_update_replaces_one_by_one():
    sets = settled_sets(podManagementPolicy="Parallel")
    sets.roll("a:2")
    assert sets.round() == [("delete", "web-2")]
    assert sets.round() == []


@pytest.mark.parametrize(("minor", "deleted"), [("1.37", ["web-2", "web-1", "web-0"]), ("1.36", ["web-2"])])
def test_parallel_update_replaces_never_ready_pods(minor, deleted):
    sets = StatefulSetHarness(gates(minor), podManagementPolicy="Parallel")
    sets.round()
    sets.roll("a:2")
    assert sets.round() == [("delete", name) for name in deleted]


def test_updated_pod_that_does_not_start_blocks_update():
    sets = settled_sets()
    sets.roll("a:2")
    sets.round()
    sets.finish()
    sets.round()
    sets.run(2, ready=False)
    assert sets.round() == []


def test_recreated_pods_below_partition_keep_revision():
    sets = settled_sets(updateStrategy=rolling_update(partition=2))
    sets.roll("a:2")
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:1", "a:1", "a:2"]
    sets.remove_pod(1)
    sets.settle()
    assert sets.image(1) == "a:1"


def test_partition_counts_from_start_ordinal():
    sets = settled_sets(updateStrategy=rolling_update(partition=1), ordinals={"start": 10})
    sets.roll("a:2")
    sets.settle()
    assert [sets.image(ordinal) for ordinal in (10, 11, 12)] == ["a:1", "a:2", "a:2"]


@pytest.mark.parametrize(
    ("limit", "policy", "broken", "deleted"),
    [
        pytest.param(1, "Parallel", [], ["web-4"], id="one"),
        pytest.param(2, "Parallel", [], ["web-4", "web-3"], id="a number"),
        pytest.param("50%", "Parallel", [], ["web-4", "web-3"], id="a share is rounded down"),
        pytest.param("10%", "Parallel", [], ["web-4"], id="at least one"),
        pytest.param(2, "OrderedReady", [], ["web-4", "web-3"], id="also with OrderedReady"),
        pytest.param(2, "Parallel", [1], ["web-1", "web-4"], id="unhealthy pod is replaced and counts"),
        pytest.param(1, "Parallel", [0, 1], ["web-1", "web-0"], id="only unhealthy pods without room"),
    ],
)
def test_max_unavailable_limits_update(limit, policy, broken, deleted):
    sets = settled_sets(
        replicas=5, podManagementPolicy=policy, updateStrategy=rolling_update(maxUnavailable=limit)
    )
    for ordinal in broken:
        sets.run(ordinal, ready=False)
    sets.roll("a:2")
    assert sets.round() == [("delete", name) for name in deleted]


UNAVAILABLE_PODS_FIRST = ["web-1", "web-4"]
HIGHEST_FIRST = ["web-4"]
MAX_UNAVAILABLE = "MaxUnavailableStatefulSet"


@pytest.mark.parametrize(
    ("settings", "deleted"),
    [
        pytest.param(gates("1.37"), UNAVAILABLE_PODS_FIRST, id="1.37"),
        pytest.param(gates("1.37", **{MAX_UNAVAILABLE: False}), HIGHEST_FIRST, id="1.37 without the gate"),
        pytest.param(gates("1.36"), HIGHEST_FIRST, id="1.36"),
        pytest.param(gates("1.36", **{MAX_UNAVAILABLE: True}), HIGHEST_FIRST, id="1.36 with the gate"),
    ],
)
def test_parallel_update_replaces_unavailable_pods_first(settings, deleted):
    sets = settled_sets(
        settings, replicas=5, podManagementPolicy="Parallel", updateStrategy=rolling_update(maxUnavailable=2)
    )
    sets.run(1, ready=False)
    sets.roll("a:2")
    assert sets.round() == [("delete", name) for name in deleted]


def test_max_unavailable_has_no_effect_without_its_gate():
    sets = settled_sets(gates("1.36"), replicas=5, updateStrategy=rolling_update(maxUnavailable=2))
    sets.roll("a:2")
    assert sets.round() == [("delete", "web-4")]


def test_on_delete_leaves_replacement_to_user():
    sets = settled_sets(updateStrategy={"type": "OnDelete"})
    sets.roll("a:2")
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:1"] * 3
    sets.remove_pod(1)
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:1", "a:2", "a:1"]


def test_scale_up_during_update_creates_new_revision():
    sets = settled_sets()
    sets.roll("a:2")
    sets.scale(4)
    assert sets.round() == [("create", "web-3")]
    assert sets.image(3) == "a:2"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_finished_pod_is_recreated(phase):
    sets = settled_sets()
    sets.run(1, ready=False, phase=phase)
    assert sets.round() == [("delete", "web-1")]
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("create", "web-1")]


@pytest.mark.parametrize("limits", [{}, {"maxUnavailable": 2}], ids=["one by one", "two at a time"])
def test_finished_pod_of_parallel_set_is_deleted_once_in_update(limits):
    sets = settled_sets(podManagementPolicy="Parallel", updateStrategy=rolling_update(**limits))
    sets.roll("a:2")
    sets.run(2, ready=False, phase="Failed")
    others = [("delete", "web-1")] if limits else []
    assert sets.round() == [("delete", "web-2"), *others]


def test_finished_condemned_pod_waits_for_finished_one_below_it():
    """As upstream's: only the first pod that is not available may be deleted, and that is the lower one."""
    sets = settled_sets()
    sets.scale(1)
    sets.run(1, ready=False, phase="Failed")
    sets.run(2, ready=False, phase="Failed")
    assert sets.round() == []
    sets.remove_pod(1)
    assert sets.round() == [("delete", "web-2")]


def test_lost_pod_is_recreated_first():
    sets = settled_sets()
    sets.remove_pod(0)
    sets.scale(2)
    assert sets.round() == [("create", "web-0")]


def test_pod_is_available_after_min_ready_seconds():
    sets = StatefulSetHarness(minReadySeconds=10)
    sets.round()
    sets.run(0)
    plan = sets.plan_web()
    assert plan.requeue_after.total_seconds() == 10
    assert sets.round() == []
    assert (sets.status["readyReplicas"], sets.status["availableReplicas"]) == (1, 0)
    sets.clock.advance(10)
    assert sets.round() == [("create", "web-1")]
    assert sets.status["availableReplicas"] == 1


def test_deleting_set_updates_status_only():
    sets = settled_sets()
    sets.delete_set()
    sets.remove_pod(0)
    assert sets.round() == []
    assert sets.status["replicas"] == 2


def test_deleting_set_counts_pods_after_its_revisions_are_gone():
    sets = settled_sets()
    sets.delete_set()
    for name in sets.names(CONTROLLER_REVISIONS):
        sets.remove(CONTROLLER_REVISIONS, name)
    sets.remove_pod(0)
    assert sets.round() == []
    assert sets.status["replicas"] == 2
    assert sets.all(CONTROLLER_REVISIONS) == []


@pytest.mark.thorough
def test_parallel_pods_are_created_500_at_a_time():
    sets = StatefulSetHarness(podManagementPolicy="Parallel", replicas=1200)
    assert sets.round() == [("create", f"web-{ordinal}") for ordinal in range(500)]
    assert sets.round() == [("create", f"web-{ordinal}") for ordinal in range(500, 1000)]
    assert len(sets.round()) == 200
    assert sets.round() == []


def test_update_waits_until_all_pods_were_created():
    sets = StatefulSetHarness(
        podManagementPolicy="Parallel", replicas=1200, updateStrategy=rolling_update(maxUnavailable="100%")
    )
    sets.round()
    sets.roll("nginx:2")
    assert {verb for verb, _ in sets.round()} == {"create"}
    assert ("delete", "web-499") in [*sets.round(), *sets.round()]
