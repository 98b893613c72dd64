"""HorizontalPodAutoscaler: stabilization windows, scaling policies and the replica range."""

from datetime import timedelta

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.schema import minors
from mockube.apimachinery.timestamps import format_time
from mockube.controller_manager.controllers.horizontalpodautoscaler import scaling
from mockube.controller_manager.controllers.horizontalpodautoscaler.behavior import (
    ScalingHistory,
    ScalingLimits,
    TimedCount,
    limit,
    with_initial_recommendation,
    with_scaling,
)
from mockube.controller_manager.controllers.horizontalpodautoscaler.proposals import (
    EMPTY_STATUS,
    FailedMetricError,
    Proposal,
)
from mockube.controller_manager.controllers.horizontalpodautoscaler.status import AutoscalerStatus
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


AUTOSCALER = {"metadata": {"name": "a", "generation": 3}, "spec": {"minReplicas": 2, "maxReplicas": 8}}


def status_of(tree=AUTOSCALER, minor=minors.NEWEST):
    return AutoscalerStatus(tree, FeatureGates(minor), NOW)


def conditions_of(status):
    return {each["type"]: (each["status"], each["reason"]) for each in status._tree.get("conditions") or ()}


@pytest.mark.parametrize(
    ("current", "desired", "reason"),
    [
        (0, 0, ""),
        (1, 2, scaling.BELOW_MINIMUM),
        (2, None, None),
        (8, None, None),
        (9, 8, scaling.ABOVE_MAXIMUM),
    ],
)
def test_range_decides_before_the_metrics(current, desired, reason):
    status = status_of()
    decision = scaling.decide_by_range(
        AUTOSCALER, current, ScalingHistory(), status, FeatureGates(minors.NEWEST)
    )
    assert (None if decision is None else decision.desired) == desired
    assert (None if decision is None else decision.reason) == reason
    assert (conditions_of(status).get("ScalingActive") == ("False", "ScalingDisabled")) is (current == 0)


ERROR = FailedMetricError("Broken", "no metric", "invalid metric x")


def proposal(replicas, name="m"):
    return Proposal(replicas, name, {"type": name})


@pytest.mark.parametrize(
    ("results", "current", "replicas", "metric", "problem"),
    [
        ([proposal(3)], 5, 3, "m", ""),
        ([proposal(3, "a"), proposal(4, "b"), proposal(2, "c")], 5, 4, "b", ""),
        ([proposal(0, "a")], 5, 0, "a", ""),
        ([proposal(0, "a"), proposal(0, "b")], 5, 0, "b", ""),
        (
            [ERROR, proposal(6)],
            5,
            6,
            "m",
            "invalid metrics (1 invalid out of 2), first error is: invalid metric x",
        ),
        (
            [proposal(5), ERROR],
            5,
            5,
            "m",
            "invalid metrics (1 invalid out of 2), first error is: invalid metric x",
        ),
        ([proposal(4), ERROR], 5, None, "", ""),
        ([ERROR], 5, None, "", ""),
        ([ERROR], 0, None, "", ""),
    ],
)
async def test_highest_proposal_counts_unless_a_failed_metric_could_be_higher(
    results, current, replicas, metric, problem
):
    status, given = status_of(), iter(results)

    async def propose(_):
        return next(given)

    if replicas is None:
        with pytest.raises(scaling.MetricsFailedError) as failed:
            await scaling.recommend(results, current, propose, status)
        assert str(failed.value).startswith("invalid metrics (1 invalid out of")
        assert [each is EMPTY_STATUS for each in failed.value.statuses] == [each is ERROR for each in results]
        assert conditions_of(status) == {"ScalingActive": ("False", "Broken")}
        return
    found = await scaling.recommend(results, current, propose, status)
    assert found[:2] == (replicas, metric)
    assert found.problem == problem
    assert [each is EMPTY_STATUS for each in found.statuses] == [each is ERROR for each in results]
    assert conditions_of(status) == {"ScalingActive": ("True", "ValidMetricFound")}


@pytest.mark.parametrize(
    ("current", "proposed", "desired", "reason", "limited"),
    [
        (4, 6, 6, "m above target", "False"),
        (4, 3, 3, "All metrics below target", "False"),
        (4, 4, 4, "", "False"),
        (4, -1, 2, "All metrics below target", "True"),
        (4, 99, 8, "m above target", "True"),
        (0, 0, 2, "", "True"),
        (0, 3, 3, "m above target", "False"),
    ],
)
def test_decision_has_a_reason_and_conditions(current, proposed, desired, reason, limited):
    status = status_of()
    recommendation = scaling.Recommendation(proposed, "m", ["s"], "p")
    found = scaling.decide(
        AUTOSCALER, recommendation, limits(current, minimum=2, maximum=8), ScalingHistory(), status
    )
    assert (found.desired, found.reason, found.metrics, found.problem) == (desired, reason, ["s"], "p")
    assert conditions_of(status)["AbleToScale"][0] == "True"
    assert conditions_of(status)["ScalingLimited"][0] == limited


@pytest.mark.parametrize(
    ("behavior", "expected"),
    [
        ({}, (0.1, 0.1)),
        ({"scaleUp": {"tolerance": "200m"}}, (0.1, 0.2)),
        ({"scaleDown": {"tolerance": "0"}, "scaleUp": {}}, (0, 0.1)),
    ],
)
def test_tolerances_of_both_directions(behavior, expected):
    assert tuple(scaling.tolerances({"spec": {"behavior": behavior}}, 0.1)) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"currentReplicas": 3, "currentMetrics": None}),
        ({"desired": 0}, {"currentReplicas": 3, "currentMetrics": None, "desiredReplicas": 0}),
        (
            {"desired": 4, "rescaled": True},
            {
                "currentReplicas": 3,
                "currentMetrics": None,
                "desiredReplicas": 4,
                "lastScaleTime": format_time(NOW),
            },
        ),
    ],
)
def test_replicas_of_a_status(given, expected):
    for minor, generation in ((minors.NEWEST, {"observedGeneration": 3}), ("1.30", {})):
        status = status_of({**AUTOSCALER, "status": {"observedGeneration": 1}}, minor)
        status.set_replicas(3, [], **given)
        if FeatureGates(minor).is_on("HPAGeneration"):
            assert status._tree == {**expected, **generation}
        else:
            assert status._tree == expected


@pytest.mark.parametrize(
    ("old", "new", "is_written"),
    [
        ({}, {}, False),
        ({"currentReplicas": 1}, {"currentReplicas": 2}, True),
        ({"currentMetrics": None, "desiredReplicas": 0}, {"currentMetrics": []}, False),
        ({}, {"observedGeneration": 0}, True),
        ({"observedGeneration": 0}, {"observedGeneration": 0}, False),
        ({}, {"currentReplicas": 0}, False),
    ],
)
def test_status_is_written_if_it_differs(old, new, is_written):
    status = status_of({**AUTOSCALER, "status": old})
    status._tree = new
    written = status.updated_object
    assert (written is not None) is is_written
    if written is not None:
        assert written["status"] == {"desiredReplicas": 0, "currentMetrics": None, **new}


@pytest.mark.parametrize(
    ("current", "desired", "range_", "recommended", "able", "limited"),
    [
        (5, 5, (1, 9), 5, ("ReadyForNewScale", "recommended size matches current size"), None),
        (
            5, 9, (1, 9), 5,
            ("ScaleUpStabilized", "recent recommendations were lower than current one, applying the lowest recent recommendation"),
            None,
        ),
        (
            5, 1, (1, 9), 5,
            ("ScaleDownStabilized", "recent recommendations were higher than current one, applying the highest recent recommendation"),
            None,
        ),
        (1, 90, (1, 99), 90, None, ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")),
        (9, 1, (1, 99), 1, None, ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")),
        (5, 9, (1, 6), 9, None, ("TooManyReplicas", "the desired replica count is more than the maximum replica count")),
        (5, 4, (5, 9), 4, None, ("TooFewReplicas", "the desired replica count is less than the minimum replica count")),
        (5, 5, (1, 9), 5, None, ("DesiredWithinRange", "the desired count is within the acceptable range")),
    ],
)  # fmt: skip
def test_conditions_have_upstreams_messages(current, desired, range_, recommended, able, limited):
    history = ScalingHistory(recommendations=(timed_count(recommended, 10),))
    given = {
        "scaleUp": rules(("Pods", 4, 60), window=60),
        "scaleDown": rules(("Pods", 4, 60), window=60),
    }
    found = limit(given, desired, limits(current, minimum=range_[0], maximum=range_[1]), history)
    assert able in (None, found.able_condition)
    assert limited in (None, found.limited_condition)


@pytest.mark.parametrize(
    "given", [{}, {"scaleUp": {"policies": [], "selectPolicy": None}, "scaleDown": None}]
)
@pytest.mark.parametrize(
    ("current", "desired", "expected"), [(1, 90, 5), (10, 90, 20), (10, 1, 1)], ids=["4 pods", "100 %", "all"]
)
def test_absent_rules_are_the_defaults(given, current, desired, expected):
    assert limit(given, desired, limits(current), ScalingHistory()).replicas == expected


@pytest.mark.parametrize(
    ("old", "new", "up", "down"), [(1, 4, (3,), ()), (4, 1, (), (3,))], ids=["up", "down"]
)
def test_change_is_an_event_of_its_direction(old, new, up, down):
    history = with_scaling(ScalingHistory(), {}, old, new, NOW)
    assert tuple(each.replicas for each in history.scale_up_events) == up
    assert tuple(each.replicas for each in history.scale_down_events) == down
    assert with_scaling(ScalingHistory(), None, old, new, NOW) == ScalingHistory()


def test_expired_change_is_replaced_after_the_longest_period():
    old = ScalingHistory(scale_up_events=(timed_count(1, 61), timed_count(2, 59)))
    given = {"scaleUp": rules(("Pods", 4, 60), ("Pods", 4, 30))}
    assert with_scaling(old, given, 1, 4, NOW).scale_up_events == (timed_count(3, 0), timed_count(2, 59))
