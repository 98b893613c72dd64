"""How scores are scaled and rounded, and the scores of the resources in use."""

import pytest

from mockube.controller_manager.scheduler.scores.score import (
    balanced_allocation,
    least_allocated,
    normalize_scores,
    round_half_up,
)
from tests.support.controllers.scheduler_objects import node, pod, scores, snapshot


@pytest.mark.parametrize(
    ("raw", "scaled", "reversed_"),
    [
        ([], [], []),
        ([0, 0], [0, 0], [100, 100]),
        ([1, 1], [100, 100], [0, 0]),
        ([0, 1, 3], [0, 33, 100], [100, 67, 0]),
        ([200, 50], [100, 25], [0, 75]),
    ],
)
def test_scores_are_scaled_so_that_the_highest_is_100(raw, scaled, reversed_):
    assert normalize_scores(raw) == scaled
    assert normalize_scores(raw, less_is_better=True) == reversed_


@pytest.mark.parametrize(("value", "rounded"), [(0.0, 0), (0.49, 0), (0.5, 1), (1.5, 2), (2.5, 3)])
def test_halves_are_rounded_up(value, rounded):
    assert round_half_up(value) == rounded


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({"cpu": "1", "memory": "2Gi"}, 75, id="a quarter of both"),
        pytest.param({"cpu": "4", "memory": "4Gi"}, 25, id="all of one and half of the other"),
        pytest.param({"cpu": "8", "memory": "4Gi"}, 25, id="more than all of one"),
        pytest.param({"cpu": "1"}, 86, id="200 MiB for a container without request"),
        pytest.param({}, 97, id="and 100 millicores"),
        pytest.param({"cpu": "0", "memory": "0"}, 100, id="none at all"),
    ],
)
def test_node_with_more_left_scores_higher(requests, expected):
    """The mean of the shares of CPU and memory that are left, each rounded down: 75 and 97 are 86."""
    assert scores(least_allocated, pod(requests=requests), snapshot([node()])) == {"a": expected}


def test_requests_of_running_pods_count_with_their_defaults():
    state = snapshot([node(cpu="1", memory="1000Mi")], [pod("old", nodeName="a")])
    assert scores(least_allocated, pod(requests={"cpu": "0", "memory": "0"}), state) == {"a": 85}


def test_only_resources_that_node_has_are_scored():
    nodes = [node("a", memory="0"), node("b", cpu="0", memory="0")]
    assert scores(least_allocated, pod(requests={"cpu": "1"}), snapshot(nodes)) == {"a": 75, "b": 0}


BALANCES = [
    pytest.param({"cpu": "1", "memory": "2Gi"}, {}, 100, 75, id="balanced as before"),
    pytest.param({"cpu": "2"}, {}, 75, 62, id="half of one"),
    pytest.param({"cpu": "1"}, {"memory": "2Gi"}, 100, 81, id="that balances the node"),
    pytest.param({"cpu": "9"}, {}, 50, 50, id="more than all of one"),
]


@pytest.mark.parametrize(("requests", "running", "_", "expected"), BALANCES)
def test_node_that_pod_balances_scores_higher(requests, running, _, expected):
    state = snapshot([node()], [pod("old", requests=running, nodeName="a")])
    assert scores(balanced_allocation, pod(requests=requests), state) == {"a": expected}


@pytest.mark.parametrize(("requests", "running", "expected", "_"), BALANCES)
def test_node_that_is_balanced_with_pod_scores_higher_before_1_36(requests, running, expected, _):
    state = snapshot([node()], [pod("old", requests=running, nodeName="a")], minor="1.35")
    assert scores(balanced_allocation, pod(requests=requests), state) == {"a": expected}


def test_node_with_one_resource_is_balanced():
    assert scores(balanced_allocation, pod(requests={"cpu": "1"}), snapshot([node(memory="0")])) == {"a": 75}


@pytest.mark.parametrize(("minor", "expected"), [("1.33", None), ("1.32", {"a": 100})])
def test_pod_without_requests_does_not_balance_since_1_33(minor, expected):
    assert scores(balanced_allocation, pod(), snapshot([node()], minor=minor)) == expected
