"""A node with the sums of what its pods use."""

import pytest

from mockube.scheduler.nodeinfo import NodeInfo
from tests.support.controllers.scheduler_objects import info, node, pod
from tests.support.controllers.scheduler_volumes import uses

NEAR = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}


def filled(*pods):
    one = NodeInfo("a")
    one.set_node(node())
    for tree in pods:
        one.add(info(tree))
    return one


def sums(one):
    positive = (dict(+one.requested), dict(+one.nonzero_requested), dict(one.claim_counts))
    return (*positive, [*one.pods], [*one.pods_with_affinity])


def test_node_sums_requests_of_its_pods_with_defaults():
    one = filled(pod("one", requests={"cpu": "1"}), pod("two", requests={"cpu": "1", "memory": "1Mi"}))
    assert dict(one.requested) == {"cpu": 2000, "memory": 1 << 20}
    assert dict(one.nonzero_requested) == {"cpu": 2000, "memory": (200 << 20) + (1 << 20)}


def test_removed_pod_leaves_no_trace():
    used = pod("used", requests={"cpu": "1"}, affinity=NEAR, **uses("data"))
    one = filled(pod("other", requests={"cpu": "2"}, **uses("data")), used)
    assert one.claim_counts == {("default", "data"): 2}
    one.remove("used")
    assert sums(one) == sums(filled(pod("other", requests={"cpu": "2"}, **uses("data"))))
    one.remove("other")
    one.remove("unknown")
    assert sums(one) == ({}, {}, {}, [], [])


def test_pod_that_is_added_again_replaces_itself():
    one = filled(pod("one", requests={"cpu": "1"}, **uses("data")), pod("one", requests={"cpu": "3"}))
    assert sums(one) == sums(filled(pod("one", requests={"cpu": "3"})))


def test_later_version_of_pod_replaces_it_without_counting_it_again():
    one = filled(pod("one", requests={"cpu": "1"}, affinity=NEAR))
    later = info(pod("one", requests={"cpu": "1"}, affinity=NEAR, labels={"app": "web"}))
    one.replace(later)
    assert (one.pods["one"], one.pods_with_affinity["one"]) == (later, later)
    assert one.requested == {"cpu": 1000}
    one.replace(info(pod("plain")))
    assert [*one.pods_with_affinity] == ["one"]


def test_changes_of_copy_do_not_change_node():
    one = filled(pod("one", requests={"cpu": "1"}, affinity=NEAR, **uses("data")))
    before, copy = sums(one), one.copy()
    assert (copy.node, copy.labels, copy.images) == (one.node, one.labels, one.images)
    assert (copy.allocatable, copy.max_pods, sums(copy)) == (one.allocatable, 9, before)
    copy.remove("one")
    copy.add(info(pod("two", requests={"cpu": "2"})))
    assert sums(one) == before


def test_node_has_what_its_object_says():
    images = [{"names": ["app:1", "app@sha256:1"], "sizeBytes": 7}, {"names": ["unsized"]}, {"sizeBytes": 9}]
    taints = [{"key": "k", "effect": "NoSchedule"}]
    one = NodeInfo("a")
    assert (one.is_known, one.is_unschedulable, one.taints, one.max_pods) == (False, False, (), 0)
    one.set_node(node(cpu="1500m", taints=taints, unschedulable=True, status={"images": images}))
    assert (one.is_known, one.is_unschedulable, one.taints) == (True, True, taints)
    assert one.images == {"app:1": 7, "app@sha256:1": 7, "unsized": 0}
    assert one.allocatable == {"cpu": 1500, "memory": 8 << 30, "pods": 9}
    one.set_node({"metadata": {"name": "a"}, "status": {"capacity": {"pods": "3"}}})
    assert (one.max_pods, one.labels, one.is_unschedulable) == (3, {}, False)
    one.forget_node()
    assert (one.is_known, one.max_pods, one.taints) == (False, 0, ())


def state_of(tree, *pods):
    one = NodeInfo(tree["metadata"]["name"])
    one.set_node(tree)
    for each in pods:
        one.add(info(each))
    return one.state


SIZED = {"images": [{"names": ["i"], "sizeBytes": 1}]}


def test_nodes_that_differ_by_their_names_only_have_one_state():
    assert state_of(node("a")) == state_of(node("b"))
    assert state_of(node("a"), pod("one")) == state_of(node("b"), pod("two"))


@pytest.mark.parametrize(
    "other",
    [
        node(labels={"a": "b"}),
        {**node(), "metadata": {"name": "a"}},
        node(taints=[{"key": "k", "effect": "NoSchedule"}]),
        node(unschedulable=True),
        node(cpu="5"),
        node(status=SIZED),
        node(status={"declaredFeatures": ["A"]}),
    ],
)
def test_nodes_that_differ_otherwise_have_another_state(other):
    assert state_of(other) != state_of(node())


def test_state_follows_the_pods():
    one = filled(pod("one"))
    before = one.state
    one.add(info(pod("two")))
    assert one.state != before
    one.remove("two")
    assert one.state == before
    one.add(info(pod("one", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})))
    assert one.state != before
