"""HorizontalPodAutoscalers with random metrics, scales and behavior: invariants."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from mockube.controller_manager.controllers.horizontalpodautoscaler.behavior import (
    ScalingHistory,
    ScalingLimits,
    limit,
    with_initial_recommendation,
    with_scaling,
)
from mockube.controller_manager.controllers.horizontalpodautoscaler.replicas import (
    CalculationError,
    replicas_for_average,
    replicas_for_utilization,
)
from tests.support.controllers.autoscaling import NOW, pod, samples, situation

SMALL = st.integers(min_value=1, max_value=12)
POLICY = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Pods", "Percent"]),
        "value": st.integers(1, 200),
        "periodSeconds": st.integers(1, 120),
    }
)
RULES = st.fixed_dictionaries(
    {
        "policies": st.lists(POLICY, min_size=1, max_size=3),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "stabilizationWindowSeconds": st.integers(0, 120),
    }
)
BEHAVIOR = st.none() | st.fixed_dictionaries({"scaleUp": RULES, "scaleDown": RULES})
RECOMMENDED = st.lists(st.integers(0, 60), min_size=1, max_size=20)


@given(BEHAVIOR, RECOMMENDED, SMALL, SMALL, st.integers(1, 60))
def test_autoscaler_respects_bounds_windows_and_policies(behavior, recommended, minimum, more, current):
    """Every 15 s a recommendation is computed, and the scale is set to the result."""
    maximum, history, seen = minimum + more, ScalingHistory(), []
    current = min(max(current, minimum), maximum)
    for at, desired in enumerate(recommended):
        now = NOW + timedelta(seconds=15 * at)
        history = with_initial_recommendation(history, current, now)
        seen = seen or [(now, current)]
        limits = ScalingLimits(
            minimum=minimum,
            maximum=maximum,
            current=current,
            downscale_stabilization=timedelta(minutes=1),
            now=now,
        )
        found = limit(behavior, desired, limits, history)
        new, history = found.replicas, found.history
        assert minimum <= new <= maximum
        assert found.is_limited == (found.limited_condition[0] != "DesiredWithinRange")
        window = 60 if behavior is None else behavior["scaleDown"]["stabilizationWindowSeconds"]
        recent = [replicas for when, replicas in seen if when > now - timedelta(seconds=window)]
        if new < current:
            assert new >= min(current, max([*recent, desired]), maximum)
        _check_rate(behavior, current, new)
        history = with_scaling(history, behavior, current, new, now) if new != current else history
        seen.append((now, desired))
        current = new


def _check_rate(behavior, current, new):
    if behavior is None:
        assert new <= max(2 * current, 4) or new <= current
        return
    rules = behavior["scaleUp" if new > current else "scaleDown"]
    if rules["selectPolicy"] == "Disabled":
        assert new == current


METRIC = st.none() | st.integers(0, 5000)


@given(st.lists(METRIC, min_size=1, max_size=8), st.integers(1, 300), st.data())
def test_missing_pods_never_reverse_scaling_direction(values, target, data):
    """Measured samples decide the direction; values assumed for pods without samples can only slow it down."""
    phases = data.draw(st.lists(st.sampled_from(["Running", "Pending", "Failed"]), min_size=8, max_size=8))
    pods = [pod(f"p{at}", phase=phases[at]) for at in range(len(values))]
    found = situation(*pods)
    try:
        result = replicas_for_utilization(found, samples(*values), "cpu", container="", target=target)
    except CalculationError:
        return
    measured = sum(1 for at, value in enumerate(values) if value is not None and phases[at] == "Running")
    ratio = result.percentage / target
    if 0.9 <= ratio <= 1.1:
        assert result.replicas == found.spec_replicas
    unmeasured = [value for at, value in enumerate(values) if value is None or phases[at] != "Running"]
    if unmeasured and ratio > 1.1 and result.replicas != found.spec_replicas and "Failed" not in phases:
        assert result.replicas > measured


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=8), st.integers(1, 10**9))
def test_replicas_follow_ratio_of_metrics(values, target):
    found = situation(*[pod(f"p{at}") for at in range(len(values))], tolerances=(0.0, 0.0))
    replicas, average = replicas_for_average(found, samples(*values), "", target=target)
    assert average == sum(values) // len(values)
    assert (replicas - 1) * target <= average * len(values) * (1 + 1e-9)
    assert average * len(values) <= replicas * target * (1 + 1e-9)
