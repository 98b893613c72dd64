"""How many feasible nodes are enough, and in which order nodes are checked."""

import pytest

from mockube.scheduler.cluster import SchedulerCache
from mockube.scheduler.sampling import NodeSampler, enough_nodes
from tests.support.controllers.scheduler_objects import node


@pytest.mark.parametrize(
    ("percentage", "nodes", "enough"),
    [
        (0, 10, 10),
        (40, 10, 10),
        (0, 1000, 420),
        (40, 1000, 400),
        (0, 6000, 300),
        (40, 6000, 2400),
        (5, 1000, 100),
        (100, 1000, 1000),
    ],
)
def test_enough_nodes_are_those_of_upstream(percentage, nodes, enough):
    """The cases are those of upstream's test of numFeasibleNodesToFind."""
    assert enough_nodes(percentage, nodes) == enough


def test_next_search_begins_where_the_last_one_ended():
    sampler, nodes = NodeSampler(), [*range(5)]
    seen = []
    for length in (2, 2, 3):
        sample = sampler.sample(50, len(nodes))
        walk = sample.walk(nodes)
        seen.append([next(walk) for _ in range(length)])
        sampler.take(sample, len(nodes))
    assert seen == [[0, 1], [2, 3], [4, 0, 1]]


def test_search_without_percentage_looks_at_all_nodes():
    assert NodeSampler().sample(None, 5000) is None


def test_zones_take_turns():
    cluster = SchedulerCache()
    for name, zone in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "1"), ("e", "3")):
        cluster.set_node(node(name, zone=zone))
    assert [one.name for one in cluster.nodes_in_turn()] == ["a", "c", "e", "b", "d"]
    cluster.set_node(node("e", zone="1"))
    assert [one.name for one in cluster.nodes_in_turn()] == ["a", "c", "b", "d", "e"]
    cluster.remove_node("a")
    assert [one.name for one in cluster.nodes_in_turn()] == ["b", "c", "d", "e"]
