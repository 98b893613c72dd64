"""Advanced StatefulSet: which pods are replaced, in which order, and how many at a time."""

import pytest

from mockube.apimachinery import meta
from mockube.client.kinds import PODS
from tests.packs.kruise.support.advancedsets import AdvancedStatefulSetHarness, rolling, template


def settled_sets(*, parallel=True, replicas=5, **fields):
    strategy = rolling(**fields)
    policy = "Parallel" if parallel else "OrderedReady"
    sets = AdvancedStatefulSetHarness(replicas=replicas, podManagementPolicy=policy, updateStrategy=strategy)
    sets.settle()
    return sets


def deleted_ordinals(sets):
    return [int(name[4:]) for verb, name in sets.round() if verb == "delete"]


def waves(sets):
    """Return the ordinals deleted in each round, until none is deleted."""
    found = []
    while gone := deleted_ordinals(sets):
        found.append(gone)
        sets.run_all()
        sets.round()
        sets.run_all()
    return found


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        pytest.param(1, [[4], [3], [2], [1], [0]], id="one"),
        pytest.param(2, [[4, 3], [2, 1], [0]], id="two"),
        pytest.param("50%", [[4, 3], [2, 1], [0]], id="share-rounded-down"),
        pytest.param("10%", [[4], [3], [2], [1], [0]], id="one-at-least"),
        pytest.param("100%", [[4, 3, 2, 1, 0]], id="all"),
        pytest.param(None, [[4], [3], [2], [1], [0]], id="default"),
    ],
)
def test_max_unavailable_pods_are_replaced_at_a_time(limit, expected):
    sets = settled_sets(maxUnavailable=limit) if limit is not None else settled_sets()
    sets.roll("a:2")
    assert waves(sets) == expected
    assert sets.status["currentRevision"] == sets.status["updateRevision"]


def test_ordered_update_replaces_one_pod_at_a_time():
    sets = settled_sets(parallel=False)
    sets.roll("a:2")
    assert waves(sets) == [[4], [3], [2], [1], [0]]


def test_unavailable_pods_count_and_are_replaced_first():
    sets = settled_sets(maxUnavailable=2)
    sets.run(3, ready=False)
    sets.roll("a:2")
    assert deleted_ordinals(sets) == [4, 3]


def test_available_pod_waits_for_higher_ordinals():
    """As upstream, the walk ends at the first pod beyond maxUnavailable, even before an unavailable pod."""
    sets = settled_sets(maxUnavailable=2)
    for ordinal in (0, 1):
        sets.run(ordinal, ready=False)
    sets.roll("a:2")
    assert deleted_ordinals(sets) == []
    sets.run(4, ready=False)
    assert deleted_ordinals(sets) == [4]


def test_pod_is_unavailable_until_min_ready_seconds():
    sets = settled_sets(maxUnavailable=1, minReadySeconds=10)
    sets.clock.advance(10)
    sets.settle()
    sets.roll("a:2")
    assert deleted_ordinals(sets) == [4]
    sets.settle()
    assert deleted_ordinals(sets) == []
    assert sets.plan_web().requeue_after.total_seconds() == 10
    sets.clock.advance(10)
    assert deleted_ordinals(sets) == [3]


# --- partition


@pytest.mark.parametrize(
    ("partition", "reserved", "updated"),
    [
        pytest.param(2, [], {2, 3, 4}, id="counts-from-the-first"),
        pytest.param(5, [], set(), id="all-kept"),
        pytest.param(9, [], set(), id="more-than-replicas"),
        pytest.param(3, [1, 3], {5, 6}, id="reserved-do-not-count"),
        pytest.param(3, ["0-1"], {5, 6}, id="range-does-not-count"),
    ],
)
def test_pods_below_partition_are_kept(partition, reserved, updated):
    sets = settled_sets(maxUnavailable=5, partition=partition)
    sets.reserve(*reserved)
    sets.settle()
    sets.roll("a:2")
    sets.settle()
    found = {int(name[4:]) for name in sets.pods if sets.image(int(name[4:])) == "a:2"}
    assert found == updated
    for name in sets.pods:
        sets.remove(PODS, name)
    sets.settle()
    assert {int(name[4:]) for name in sets.pods if sets.image(int(name[4:])) == "a:2"} == updated


def test_partition_keeps_first_pods_despite_reserved_ordinals():
    sets = settled_sets(replicas=3, partition=2)
    sets.reserve(1, 3)
    sets.settle()
    assert sets.pods == ["web-0", "web-2", "web-4"]
    sets.roll("a:2")
    assert waves(sets) == [[4]]


def test_new_pod_without_partition_gets_update_revision():
    sets = AdvancedStatefulSetHarness(replicas=2, updateStrategy={"type": "RollingUpdate"})
    sets.settle()
    sets.roll("a:2")
    assert deleted_ordinals(sets) == [1]
    sets.finish()
    sets.round()
    assert sets.image(1) == "a:2"
    sets.settle()
    assert (sets.image(0), sets.image(1)) == ("a:2", "a:2")


# --- what blocks the update


def test_paused_update_still_scales():
    sets = settled_sets(paused=True, replicas=2)
    sets.roll("a:2")
    sets.specify(0)
    assert sets.round() == []
    sets.scale(3)
    assert sets.round() == [("create", "web-2")]
    assert sets.image(2) == "a:2"


def test_on_delete_pods_are_replaced_after_deletion():
    sets = settled_sets(replicas=2)
    sets.change_spec("updateStrategy", to={"type": "OnDelete"})
    sets.roll("a:2")
    sets.specify(1)
    assert sets.round() == []
    sets.remove_pod(0)
    sets.settle()
    assert (sets.image(0), sets.image(1)) == ("a:2", "a:1")
    assert sets.status["currentRevision"] != sets.status["updateRevision"]


def test_scaling_precedes_updating():
    sets = settled_sets(parallel=False, replicas=3)
    sets.roll("a:2")
    sets.scale(2)
    assert sets.round() == [("delete", "web-2")]


# --- out of order

WEIGHTS = [
    {"weight": 50, "matchSelector": {"matchLabels": {"zone": "a"}}},
    {"weight": 30, "matchSelector": {"matchLabels": {"kind": "canary"}}},
]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({}, [4, 3, 2, 1, 0], id="no-priority"),
        pytest.param({"weightPriority": WEIGHTS}, [1, 2, 3, 4, 0], id="weights"),
        pytest.param({"orderPriority": [{"orderedKey": "place"}]}, [4, 3, 0, 1, 2], id="order"),
    ],
)
def test_pods_are_replaced_by_priority(strategy, expected):
    labels = {
        0: {"place": "p-3"},
        1: {"zone": "a", "kind": "canary", "place": "p-2"},
        2: {"zone": "a", "place": "p-1"},
        3: {"kind": "canary"},
    }
    sets = settled_sets(maxUnavailable=1, unorderedUpdate={"priorityStrategy": strategy})
    for ordinal, its in labels.items():
        sets.label(ordinal, **its)
    sets.settle()
    sets.roll("a:2")
    assert waves(sets) == [[ordinal] for ordinal in expected]


def test_unordered_update_updates_number_of_pods():
    priority = {"weightPriority": [{"weight": 1, "matchSelector": {"matchLabels": {"first": "yes"}}}]}
    sets = settled_sets(
        replicas=10, partition=6, maxUnavailable=10, unorderedUpdate={"priorityStrategy": priority}
    )
    for ordinal in (0, 3):
        sets.label(ordinal, first="yes")
    sets.settle()
    sets.roll("a:2")
    assert sorted(deleted_ordinals(sets)) == [0, 3, 8, 9]
    sets.settle()
    assert sum(sets.image(ordinal) == "a:2" for ordinal in range(10)) == 4
    sets.settle()
    assert sets.plan_web().actions == ()


def test_recreated_updated_pods_count_in_unordered_update():
    sets = settled_sets(replicas=4, partition=2, maxUnavailable=4, unorderedUpdate={})
    sets.roll("a:2")
    assert deleted_ordinals(sets) == [3, 2]
    sets.finish()
    assert sets.round() == [("create", "web-2"), ("create", "web-3")]


def test_recreated_pods_fill_missing_revisions_in_unordered_update():
    sets = settled_sets(replicas=4, partition=2, maxUnavailable=4, unorderedUpdate={})
    sets.roll("a:2")
    sets.settle()
    for ordinal in range(4):
        sets.remove_pod(ordinal)
    sets.round()
    assert [sets.image(ordinal) for ordinal in range(4)] == ["a:1", "a:1", "a:2", "a:2"]
    sets.settle()
    sets.remove_pod(2)
    sets.round()
    assert sets.image(2) == "a:2"


# --- pods named in the spec


def test_specified_pods_are_deleted_within_max_unavailable_and_recreated():
    sets = settled_sets(maxUnavailable=2, partition=5)
    uids = {ordinal: meta.uid(sets.pod(ordinal)) for ordinal in range(5)}
    for ordinal in (0, 2, 4):
        sets.specify(ordinal)
    assert deleted_ordinals(sets) == [4, 2]
    assert deleted_ordinals(sets) == []
    sets.settle()
    renewed = {ordinal for ordinal in range(5) if meta.uid(sets.pod(ordinal)) != uids[ordinal]}
    assert renewed == {0, 2, 4}


def test_unavailable_specified_pod_is_deleted_beyond_limit():
    sets = settled_sets(maxUnavailable=1, partition=5)
    sets.run(1, ready=False)
    sets.specify(1)
    sets.specify(3)
    assert deleted_ordinals(sets) == [1]


def test_specified_pod_is_replaced_before_outdated_one():
    sets = settled_sets(maxUnavailable=1)
    sets.roll("a:2")
    sets.specify(0)
    assert deleted_ordinals(sets) == [0]
    assert deleted_ordinals(sets) == []


def test_outdated_specified_pod_is_deleted_once():
    sets = settled_sets(maxUnavailable=5)
    sets.roll("a:2")
    sets.specify(2)
    assert sorted(deleted_ordinals(sets)) == [0, 1, 2, 3, 4]


def test_recreated_specified_pod_has_revision_of_partition():
    sets = settled_sets(maxUnavailable=1, partition=3)
    sets.roll("a:2")
    sets.settle()
    sets.specify(1)
    sets.settle()
    assert [sets.image(ordinal) for ordinal in range(5)] == ["a:1", "a:1", "a:1", "a:2", "a:2"]


def test_rollback_reuses_first_revision():
    sets = settled_sets(maxUnavailable=5)
    first = sets.status["currentRevision"]
    for image in ("a:2", "a:1"):
        sets.roll(image)
        sets.settle()
    assert sets.status["currentRevision"] == first
    assert {sets.image(ordinal) for ordinal in range(5)} == {"a:1"}


def test_recreated_pods_have_current_template():
    sets = settled_sets(maxUnavailable=5, replicas=1)
    sets.change_spec("template", to=template("a:2", tier="gold"))
    sets.settle()
    assert meta.labels(sets.pod(0))["tier"] == "gold"
