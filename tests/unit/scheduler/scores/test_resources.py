"""The scores of the shares of resources that are requested, by each strategy."""

from functools import partial

import pytest

from mockube.scheduler.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from mockube.scheduler.scores.resources import balanced_allocation, resource_score
from tests.support.controllers.scheduler_objects import node, pod, scores, snapshot


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
    assert scores(resource_score, pod(requests=requests), snapshot([node()])) == {"a": expected}


def test_requests_of_running_pods_count_with_their_defaults():
    state = snapshot([node(cpu="1", memory="1000Mi")], [pod("old", nodeName="a")])
    assert scores(resource_score, pod(requests={"cpu": "0", "memory": "0"}), state) == {"a": 85}


def test_only_resources_that_node_has_are_scored():
    nodes = [node("a", memory="0"), node("b", cpu="0", memory="0")]
    assert scores(resource_score, pod(requests={"cpu": "1"}), snapshot(nodes)) == {"a": 75, "b": 0}


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


GPU = "example.com/gpu"


def strategy(kind, *resources, shape=()):
    weighted = tuple(ResourceSpec(name=name, weight=weight) for name, weight in resources)
    points = tuple(UtilizationShapePoint(utilization=at, score=score) for at, score in shape)
    ratio = RequestedToCapacityRatioParam(shape=points) if points else None
    return ScoringStrategy(type=kind, resources=weighted, requested_to_capacity_ratio=ratio)


@pytest.mark.parametrize(
    ("chosen", "requests", "expected"),
    [
        pytest.param(
            strategy(MOST_ALLOCATED, ("cpu", 1), ("memory", 1)), {"cpu": "1", "memory": "6Gi"}, 50, id="most"
        ),
        pytest.param(
            strategy(MOST_ALLOCATED, ("cpu", 3), ("memory", 1)),
            {"cpu": "1", "memory": "6Gi"},
            37,
            id="weights",
        ),
        pytest.param(strategy(MOST_ALLOCATED, ("cpu", 1)), {"cpu": "9"}, 100, id="more than there is"),
        pytest.param(
            strategy(MOST_ALLOCATED, (GPU, 5), ("cpu", 1)), {"cpu": "1", GPU: "4"}, 45, id="extended"
        ),
        pytest.param(
            strategy(MOST_ALLOCATED, (GPU, 5), ("cpu", 1)), {"cpu": "1"}, 25, id="extended, not requested"
        ),
        pytest.param(
            strategy(MOST_ALLOCATED, ("none.com/x", 5)), {"none.com/x": "1"}, 0, id="that no node has"
        ),
        pytest.param(strategy(LEAST_ALLOCATED, (GPU, 1)), {GPU: "2"}, 75, id="least of an extended one"),
        pytest.param(
            strategy(REQUESTED_TO_CAPACITY_RATIO, ("cpu", 1), shape=[(0, 0), (100, 10)]),
            {"cpu": "3"},
            75,
            id="ratio",
        ),
        pytest.param(
            strategy(REQUESTED_TO_CAPACITY_RATIO, ("cpu", 1), shape=[(50, 10), (100, 3)]),
            {"cpu": "1"},
            100,
            id="before the first point",
        ),
        pytest.param(
            strategy(
                REQUESTED_TO_CAPACITY_RATIO, ("cpu", 1), ("memory", 1), shape=[(0, 0), (50, 0), (100, 10)]
            ),
            {"cpu": "3", "memory": "1Gi"},
            50,
            id="a score of 0 does not count",
        ),
    ],
)
def test_strategies(chosen, requests, expected):
    one = node()
    one["status"]["allocatable"][GPU] = "8"
    score = partial(resource_score, strategy=chosen)
    assert scores(score, pod(requests=requests), snapshot([one])) == {"a": expected}


def test_balance_of_three_resources_is_their_standard_deviation():
    one = node()
    one["status"]["allocatable"][GPU] = "8"
    resources = tuple(ResourceSpec(name=name, weight=1) for name in ("cpu", "memory", GPU))
    score = partial(balanced_allocation, resources=resources)
    requests = {"cpu": "1", "memory": "2Gi", GPU: "8"}
    assert scores(score, pod(requests=requests), snapshot([one])) == {"a": 57}
