"""HorizontalPodAutoscaler: stabilization windows, scaling policies and the replica range."""

from datetime import timedelta

import pytest

from mockube.controller_manager.controllers.horizontalpodautoscaler.behavior import (
    ScalingHistory,
    ScalingLimits,
    TimedCount,
    limit,
    with_initial_recommendation,
    with_scaling,
)
from tests.support.controllers.autoscaling import NOW


def limits(current, *, minimum=1, maximum=100, now=NOW):
    return ScalingLimits(
        minimum=minimum,
        maximum=maximum,
        current=current,
        downscale_stabilization=timedelta(minutes=5),
        now=now,
    )


def timed_count(replicas, seconds):
    return TimedCount(replicas, NOW - timedelta(seconds=seconds))


def rules(*policies, window=0, select="Max"):
    listed = [{"type": type_, "value": value, "periodSeconds": period} for type_, value, period in policies]
    return {"policies": listed, "selectPolicy": select, "stabilizationWindowSeconds": window}


WIDE = rules(("Percent", 1000, 15))


def behavior(*, up=WIDE, down=WIDE):
    return {"scaleUp": up, "scaleDown": down}


@pytest.mark.parametrize(
    ("current", "desired", "range_", "expected"),
    [
        (1, 10, (1, 100), (4, True, "ScaleUpLimit")),
        (5, 30, (1, 100), (10, True, "ScaleUpLimit")),
        (5, 30, (1, 8), (8, True, "TooManyReplicas")),
        (5, 0, (2, 8), (2, True, "TooFewReplicas")),
        (5, 6, (2, 8), (6, False, "DesiredWithinRange")),
    ],
)
def test_limits_without_behavior(current, desired, range_, expected):
    found = limit(None, desired, limits(current, minimum=range_[0], maximum=range_[1]), ScalingHistory())
    assert (found.replicas, found.is_limited, found.limited_condition[0]) == expected
    assert found.able_condition == ("ReadyForNewScale", "recommended size matches current size")


def test_highest_recommendation_of_five_minutes_applies():
    history = ScalingHistory(recommendations=(timed_count(9, 301), timed_count(7, 299), timed_count(5, 10)))
    found = limit(None, 3, limits(8), history)
    assert (found.replicas, found.able_condition[0]) == (7, "ScaleDownStabilized")
    assert found.history.recommendations == (timed_count(3, 0), timed_count(7, 299), timed_count(5, 10))


def test_first_replicas_are_a_recommendation():
    assert with_initial_recommendation(ScalingHistory(), 4, NOW).recommendations == (timed_count(4, 0),)
    assert with_initial_recommendation(
        ScalingHistory(recommendations=(timed_count(1, 9),)), 4, NOW
    ).recommendations == (timed_count(1, 9),)


@pytest.mark.parametrize(
    ("current", "desired", "up", "down", "expected", "reason"),
    [
        (5, 2, {"window": 0}, {"window": 60}, 4, "ScaleDownStabilized"),
        (5, 9, {"window": 60}, {"window": 0}, 5, "ScaleUpStabilized"),
        (5, 9, {"window": 5}, {"window": 0}, 9, "ReadyForNewScale"),
        (5, 2, {"window": 0}, {"window": 5}, 2, "ReadyForNewScale"),
        (3, 1, {"window": 60}, {"window": 60}, 3, "ScaleDownStabilized"),
    ],
)
def test_stabilization_windows_of_both_directions(current, desired, up, down, expected, reason):
    history = ScalingHistory(recommendations=(timed_count(4, 30), timed_count(3, 20)))
    given = behavior(up=rules(("Percent", 1000, 15), **up), down=rules(("Percent", 1000, 15), **down))
    found = limit(given, desired, limits(current), history)
    assert (found.replicas, found.able_condition[0]) == (expected, reason)


def test_default_stabilization_window_is_the_flag():
    down = {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}], "selectPolicy": "Max"}
    history = ScalingHistory(recommendations=(timed_count(4, 299),))
    assert limit(behavior(down=down), 1, limits(5), history).replicas == 4
    assert limit({"scaleUp": WIDE}, 1, limits(5), history).replicas == 4


UP = (("Pods", 2, 60), ("Percent", 50, 30))


@pytest.mark.parametrize(
    ("select", "history", "expected"),
    [
        ("Max", ScalingHistory(), 15),
        ("Min", ScalingHistory(), 12),
        ("Disabled", ScalingHistory(), 10),
        ("Max", ScalingHistory(scale_up_events=(timed_count(4, 20),)), 10),
        ("Max", ScalingHistory(scale_up_events=(timed_count(4, 40),)), 15),
        ("Min", ScalingHistory(scale_up_events=(timed_count(4, 40),)), 10),
        (
            "Max",
            ScalingHistory(scale_up_events=(timed_count(4, 20),), scale_down_events=(timed_count(4, 20),)),
            15,
        ),
    ],
)
def test_scale_up_policies(select, history, expected):
    found = limit(behavior(up=rules(*UP, select=select)), 50, limits(10), history)
    assert (found.replicas, found.limited_condition[0]) == (expected, "ScaleUpLimit")


@pytest.mark.parametrize(
    ("select", "history", "expected"),
    [
        ("Max", ScalingHistory(), 5),
        ("Min", ScalingHistory(), 8),
        ("Disabled", ScalingHistory(), 10),
        ("Max", ScalingHistory(scale_down_events=(timed_count(6, 20),)), 8),
        ("Max", ScalingHistory(scale_down_events=(timed_count(8, 20),)), 9),
    ],
)
def test_scale_down_policies(select, history, expected):
    found = limit(behavior(down=rules(*UP, select=select)), 1, limits(10), history)
    assert (found.replicas, found.limited_condition[0]) == (expected, "ScaleDownLimit")


def test_policies_respect_min_and_max_replicas():
    assert limit(behavior(), 50, limits(10, maximum=20), ScalingHistory())[::2][0] == 20
    assert (
        limit(behavior(), 50, limits(10, maximum=20), ScalingHistory()).limited_condition[0]
        == "TooManyReplicas"
    )
    assert (
        limit(behavior(), 1, limits(10, minimum=3), ScalingHistory()).limited_condition[0] == "TooFewReplicas"
    )
    assert limit(behavior(), 10, limits(10), ScalingHistory()).limited_condition[0] == "DesiredWithinRange"


def test_scale_up_percentage_is_rounded_up():
    assert limit(behavior(up=rules(("Percent", 1, 15))), 9, limits(1), ScalingHistory()).replicas == 2


def test_scaling_history_lasts_as_long_as_policies():
    given = behavior(up=rules(("Pods", 1, 60)), down=rules(("Pods", 1, 30)))
    history = ScalingHistory(
        scale_up_events=(timed_count(1, 61), timed_count(2, 10)), scale_down_events=(timed_count(1, 31),)
    )
    assert with_scaling(history, given, 2, 5, NOW).scale_up_events == (timed_count(3, 0), timed_count(2, 10))
    assert with_scaling(history, given, 5, 2, NOW).scale_down_events == (timed_count(3, 0),)
    assert with_scaling(history, None, 5, 2, NOW) is history
