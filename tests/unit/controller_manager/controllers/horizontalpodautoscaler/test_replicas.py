"""HorizontalPodAutoscaler: the test cases of upstream's replica calculator."""

from datetime import timedelta

import pytest

from mockube.controller_manager.controllers.horizontalpodautoscaler.replicas import (
    MAX_INT32,
    CalculationError,
    replicas_for_average,
    replicas_for_utilization,
    replicas_for_value,
    replicas_for_value_per_pod,
    total,
)
from tests.support.controllers.autoscaling import MINUTE, pod, samples, situation

NEW = {"started": timedelta(seconds=30), "changed": timedelta(seconds=30)}
"""A pod that may still be starting."""


def pods(*described):
    return [pod(f"p{at}", **fields) for at, fields in enumerate(described)]


def identical_pods(count, **fields):
    return pods(*[fields] * count)


def of_cpu(found, values, *, target, container="", **how):
    return replicas_for_utilization(
        situation(*found, **how), samples(*values), "cpu", container=container, target=target
    )


@pytest.mark.parametrize(
    ("found", "values", "target", "expected"),
    [
        pytest.param(identical_pods(3), [300, 500, 700], 30, (5, 50, 500), id="scale up"),
        pytest.param(identical_pods(5), [100, 300, 500, 250, 250], 50, (3, 28, 280), id="scale down"),
        pytest.param(identical_pods(3), [1010, 1030, 1020], 100, (3, 102, 1020), id="within the tolerance"),
        pytest.param(
            pods({"ready": "False", **NEW}, {}, {}), [300, 500, 700], 30, (4, 60, 600), id="unready, less"
        ),
        pytest.param(
            pods({}, {"ready": "False", **NEW}, {"ready": "False", **NEW}),
            [400, 500, 700],
            30,
            (3, 40, 400),
            id="unready, no change",
        ),
        pytest.param(
            pods({}, {"phase": "Pending"}, {"phase": "Pending"}),
            [300, 500, 700],
            30,
            (3, 30, 300),
            id="pending",
        ),
        pytest.param(pods({}, {}, {"phase": "Failed"}), [500, 700, None], 50, (3, 60, 600), id="failed"),
        pytest.param(pods({}, {}, {"deleting": True}), [500, 700, None], 50, (3, 60, 600), id="deleted"),
        pytest.param(identical_pods(4), [400, 950, None, None], 100, (4, 67, 675), id="missing, none up"),
        pytest.param(
            identical_pods(4), [None, None, 1950, 950], 50, (6, 145, 1450), id="missing, up by less"
        ),
        pytest.param(
            identical_pods(5), [None, 100, 200, 300, 50], 50, (4, 16, 162), id="missing, down by less"
        ),
    ],
)
def test_utilization_replicas(found, values, target, expected):
    assert of_cpu(found, values, target=target) == expected


def test_missing_pod_counts_as_full_utilization_above_target():
    found = of_cpu(identical_pods(3), [1000, 1000, None], target=300)
    assert found.replicas == 2


def test_assumptions_do_not_reverse_direction():
    assert of_cpu(identical_pods(2), [1120, None], target=100, tolerances=(0.01, 0.01)).replicas == 2
    assert of_cpu(identical_pods(10), [900, *[None] * 9], target=100, tolerances=(0.0, 0.0)).replicas == 10


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({}, True),
        ({"ready": "False"}, True),
        ({"ready": "False", "changed": timedelta(minutes=60)}, False),
        ({"started": MINUTE, "changed": timedelta(seconds=59)}, False),
        ({"started": MINUTE * 1.5, "changed": timedelta(seconds=61)}, True),
        ({"started": MINUTE * 1.5, "changed": timedelta(seconds=61), "ready": "False"}, False),
    ],
    ids=["ready", "was ready", "never ready", "no whole window", "a whole window", "starting"],
)
def test_starting_pod_counts_as_0_cpu(fields, counts):
    pair = [pod("p0"), pod("p1", **fields)]
    found = of_cpu(pair, [200, 600], target=100, tolerances=(1, 1))
    assert found.average == (400 if counts else 200)
    usage = replicas_for_average(situation(*pair), samples(200, 600), "memory", target=400)
    assert usage.value == 400


def test_pod_without_ready_condition_or_start_time_counts_as_starting():
    bare = pod("p1")
    bare.object["status"].pop("startTime")
    assert of_cpu([pod("p0"), bare], [200, 600], target=20).average == 200


@pytest.mark.parametrize(
    ("spec", "container", "expected"),
    [
        ({}, "", "missing request for cpu in container c0 of Pod p0"),
        ({}, "x", "container x not found in Pod p0"),
        ({"resources": {"requests": {"memory": "1"}}}, "", "missing pod-level request for cpu in Pod p0"),
    ],
)
def test_missing_requests_are_an_error(spec, container, expected):
    with pytest.raises(CalculationError, match=f"^{expected}$"):
        of_cpu([pod("p0", requests=("",), spec=spec)], [1], target=10, container=container)


def test_requests_of_pods():
    level = {"resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}}
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}
    init = {"name": "i", "resources": {"requests": {"cpu": "8"}}}

    def percentage(container="", **spec):
        found = [pod("p0", requests=("1", "1"), spec=spec)]
        return of_cpu(found, [1000], target=100, container=container).percentage

    assert percentage() == 50
    assert percentage("c1") == 100
    assert percentage(**level) == 20
    assert percentage("c1", **level) == 100
    assert percentage(initContainers=[sidecar, init]) == 25


def test_uncalculable_replicas_are_an_error():
    for found, values, problem in (
        ([], [1], "no pods returned by selector while calculating replica count"),
        (identical_pods(1), [], "did not receive metrics for targeted pods (pods might be unready)"),
        (identical_pods(1, requests=("0",)), [1], "no metrics returned matched known pods"),
    ):
        with pytest.raises(CalculationError) as caught:
            of_cpu(found, values, target=10)
        assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        ([20000, 10000, 30000], 15000, (4, 20000)),
        ([10000, 10000, 10000], 20000, (2, 10000)),
        ([20000, 21000, 21000], 20000, (3, 20666)),
        ([-3, 0, -2], 20000, (0, -1)),
        ([None, 50000, 10000], 5000, (12, 30000)),
        ([None, 10000, 10000], 20000, (2, 10000)),
    ],
)
def test_average_values(values, target, expected):
    assert (
        replicas_for_average(situation(*identical_pods(3)), samples(*values), "", target=target) == expected
    )


def test_total_values():
    three = situation(*pods({}, {}, {"ready": "False"}), spec_replicas=3)
    assert replicas_for_value(three, 40000, target=10000) == 8
    assert replicas_for_value(three, 10500, target=10000) == 3
    assert replicas_for_value(three, 10**18, target=1) == MAX_INT32
    empty = situation(spec_replicas=0)
    assert replicas_for_value(empty, 25000, target=10000) == 3
    with pytest.raises(CalculationError, match="unable to calculate ready pods: no pods returned"):
        replicas_for_value(situation(spec_replicas=2), 1, target=10)


def test_values_per_pod():
    three = situation(*identical_pods(3))
    assert replicas_for_value_per_pod(three, 40000, target=10000) == (4, 13334)
    assert replicas_for_value_per_pod(three, 31000, target=10000) == (3, 10334)
    none = situation(status_replicas=0, spec_replicas=1)
    assert replicas_for_value_per_pod(none, 25000, target=10000) == (3, -(2**63))
    assert replicas_for_value_per_pod(three, 2**63 - 1, target=1) == (MAX_INT32, 2**63 - 1)
    assert total([2**62, 2**62, 2**62]) == 2**63 - 1


def test_tolerances_of_both_directions():
    assert of_cpu(identical_pods(2), [1300, 1300], target=100, tolerances=(0.1, 0.3)).replicas == 2
    assert of_cpu(identical_pods(2), [1310, 1310], target=100, tolerances=(0.1, 0.3)).replicas == 3
    assert of_cpu(identical_pods(2), [500, 500], target=100, tolerances=(0.5, 0.1)).replicas == 2
    assert of_cpu(identical_pods(2), [490, 490], target=100, tolerances=(0.5, 0.1)).replicas == 1
