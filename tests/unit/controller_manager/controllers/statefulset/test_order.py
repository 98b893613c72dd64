"""In which order the pods of a StatefulSet come, go and are replaced."""

import pytest

from mockube.controller_manager.client.kinds import CONTROLLER_REVISIONS, STATEFUL_SETS
from tests.support.controllers.statefulsets import Sets


def rolling(**fields):
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, **fields}}


def settled(**spec):
    sets = Sets(**spec)
    sets.settle()
    return sets


def test_pods_come_one_after_the_other():
    sets = Sets()
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


def test_pods_in_parallel_come_together():
    sets = Sets(podManagementPolicy="Parallel")
    assert sets.round() == [("create", "web-0"), ("create", "web-1"), ("create", "web-2")]


def test_ordinals_begin_where_the_set_says():
    sets = settled(ordinals={"start": 5}, replicas=2)
    assert sets.pods == ["web-5", "web-6"]


def test_pods_move_when_the_first_ordinal_does():
    sets = settled(replicas=2)
    sets.respecify(STATEFUL_SETS, "web", ("ordinals",), {"start": 1})
    sets.settle()
    assert sets.pods == ["web-1", "web-2"]


def test_the_highest_ordinal_goes_first_and_alone():
    sets = settled()
    sets.scale(1)
    assert sets.round() == [("delete", "web-2")]
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("delete", "web-1")]
    sets.finish()
    assert sets.round() == []


def test_pods_in_parallel_go_together():
    sets = settled(podManagementPolicy="Parallel")
    sets.scale(0)
    assert sets.round() == [("delete", "web-2"), ("delete", "web-1"), ("delete", "web-0")]


def test_nothing_goes_while_a_wanted_pod_is_not_ready():
    sets = settled()
    sets.run(0, ready=False)
    sets.scale(2)
    assert sets.round() == []
    sets.run(0)
    assert sets.round() == [("delete", "web-2")]


def test_a_condemned_pod_that_is_broken_holds_up_those_above_it():
    sets = settled()
    sets.run(1, ready=False)
    sets.run(2, ready=False)
    sets.scale(1)
    assert sets.round() == []
    sets.run(2)
    assert sets.round() == [("delete", "web-2")]


def test_the_first_broken_pod_may_go_itself():
    sets = settled()
    sets.run(2, ready=False)
    sets.scale(2)
    assert sets.round() == [("delete", "web-2")]


def test_an_update_replaces_from_the_highest_down_one_by_one():
    sets = settled()
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


def test_an_update_waits_for_a_broken_predecessor():
    sets = settled()
    sets.run(0, ready=False)
    sets.roll("a:2")
    assert sets.round() == []


def test_an_update_in_parallel_still_replaces_one_by_one():
    sets = settled(podManagementPolicy="Parallel")
    sets.roll("a:2")
    assert sets.round() == [("delete", "web-2")]
    assert sets.round() == []


def test_an_update_in_parallel_replaces_what_never_became_ready():
    sets = Sets(podManagementPolicy="Parallel")
    sets.round()
    sets.roll("a:2")
    assert sets.round() == [("delete", "web-2")]


def test_an_updated_pod_that_does_not_start_halts_the_update():
    sets = settled()
    sets.roll("a:2")
    sets.round()
    sets.finish()
    sets.round()
    sets.run(2, ready=False)
    assert sets.round() == []


def test_pods_below_the_partition_keep_their_revision_even_when_made_anew():
    sets = settled(updateStrategy=rolling(partition=2))
    sets.roll("a:2")
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:1", "a:1", "a:2"]
    sets.remove_pod(1)
    sets.settle()
    assert sets.image(1) == "a:1"


def test_a_partition_counts_from_the_first_ordinal():
    sets = settled(updateStrategy=rolling(partition=1), ordinals={"start": 10})
    sets.roll("a:2")
    sets.settle()
    assert [sets.image(ordinal) for ordinal in (10, 11, 12)] == ["a:1", "a:2", "a:2"]


@pytest.mark.parametrize(
    ("limit", "policy", "broken", "deleted"),
    [
        pytest.param(1, "Parallel", [], ["web-4"], id="one"),
        pytest.param(2, "Parallel", [], ["web-4", "web-3"], id="a number"),
        pytest.param("50%", "Parallel", [], ["web-4", "web-3"], id="a share is rounded down"),
        pytest.param("10%", "Parallel", [], ["web-4"], id="but not to nothing"),
        pytest.param(2, "OrderedReady", [], ["web-4", "web-3"], id="in order too"),
        pytest.param(2, "Parallel", [1], ["web-1", "web-4"], id="the broken goes free and counts"),
        pytest.param(1, "Parallel", [0, 1], ["web-1", "web-0"], id="only the broken where there is no room"),
    ],
)
def test_max_unavailable(limit, policy, broken, deleted):
    sets = settled(replicas=5, podManagementPolicy=policy, updateStrategy=rolling(maxUnavailable=limit))
    for ordinal in broken:
        sets.run(ordinal, ready=False)
    sets.roll("a:2")
    assert sets.round() == [("delete", name) for name in deleted]


def test_on_delete_leaves_replacing_to_the_user():
    sets = settled(updateStrategy={"type": "OnDelete"})
    sets.roll("a:2")
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:1"] * 3
    sets.remove_pod(1)
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(3)] == ["a:1", "a:2", "a:1"]


def test_scaling_up_in_mid_update_makes_new_pods_of_the_new_revision():
    sets = settled()
    sets.roll("a:2")
    sets.scale(4)
    assert sets.round() == [("create", "web-3")]
    assert sets.image(3) == "a:2"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_made_again(phase):
    sets = settled()
    sets.run(1, ready=False, phase=phase)
    assert sets.round() == [("delete", "web-1")]
    assert sets.round() == []
    sets.finish()
    assert sets.round() == [("create", "web-1")]


def test_a_lost_pod_is_made_before_anything_else():
    sets = settled()
    sets.remove_pod(0)
    sets.scale(2)
    assert sets.round() == [("create", "web-0")]


def test_a_pod_counts_once_it_was_ready_for_long_enough():
    sets = Sets(minReadySeconds=10)
    sets.round()
    sets.run(0)
    plan = sets.plan_web()
    assert plan.again_after.total_seconds() == 10
    assert sets.round() == []
    assert (sets.status["readyReplicas"], sets.status["availableReplicas"]) == (1, 0)
    sets.clock.advance(10)
    assert sets.round() == [("create", "web-1")]
    assert sets.status["availableReplicas"] == 1


def test_a_set_that_is_deleted_only_tells_its_status():
    sets = settled()
    sets.delete_set()
    sets.remove_pod(0)
    assert sets.round() == []
    assert sets.status["replicas"] == 2


def test_a_set_that_is_deleted_counts_its_pods_after_its_revisions_are_gone():
    sets = settled()
    sets.delete_set()
    for name in sets.names(CONTROLLER_REVISIONS):
        sets.remove(CONTROLLER_REVISIONS, name)
    sets.remove_pod(0)
    assert sets.round() == []
    assert sets.status["replicas"] == 2
    assert sets.all(CONTROLLER_REVISIONS) == []
