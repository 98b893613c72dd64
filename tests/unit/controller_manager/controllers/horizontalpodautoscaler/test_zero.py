"""HorizontalPodAutoscaler: scaling to and from zero, which the feature gate and the minor release decide."""

from datetime import timedelta

import pytest

from mockube.apimachinery import conditions
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.controller_manager.controllers.horizontalpodautoscaler import zero
from mockube.controller_manager.controllers.horizontalpodautoscaler.behavior import (
    ScalingHistory,
    ScalingLimits,
)
from mockube.controller_manager.controllers.horizontalpodautoscaler.scaling import (
    BELOW_MINIMUM,
    Recommendation,
    decide,
    decide_by_range,
)
from mockube.controller_manager.controllers.horizontalpodautoscaler.status import AutoscalerStatus
from tests.support.controllers.autoscaling import NOW

ON = FeatureGates("1.37")
OFF = FeatureGates("1.37", [("HPAScaleToZero", False)])
EXTERNAL = {"type": "External", "external": {}}
RESOURCE = {"type": "Resource", "resource": {}}
DISABLED = ("False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
SCALED = ("True", "ScaledToZero", "the HPA controller scaled the workload to zero")
NOT_SCALED = ("False", "NotScaledToZero", "the HPA controller did not scale the workload to zero")


def autoscaler(*, minimum=0, metrics=(EXTERNAL,), scaled=None):
    spec = {"minReplicas": minimum, "maxReplicas": 5, "metrics": [*metrics]}
    present = [{"type": "ScaledToZero", "status": scaled}] if scaled else []
    return {"metadata": {"name": "h"}, "spec": spec, "status": {"conditions": present}}


def decision_at_zero(tree, gates):
    """Return the decision for a target without replicas, and the conditions."""
    status = AutoscalerStatus(tree, gates, NOW)
    decision = decide_by_range(tree, 0, ScalingHistory(), status, gates)
    return decision, status.updated_object or tree


def condition(tree, name):
    found = conditions.get(tree, name)
    return found and (found["status"], found["reason"], found["message"])


@pytest.mark.parametrize(
    ("tree", "gates", "is_disabled"),
    [
        pytest.param(autoscaler(scaled="True"), ON, False, id="own zero"),
        pytest.param(autoscaler(), ON, True, id="zero of a user"),
        pytest.param(autoscaler(scaled="False"), ON, True, id="zero of a user after a rescale"),
        pytest.param(autoscaler(scaled="True", metrics=(RESOURCE,)), ON, True, id="metrics of pods"),
        pytest.param(
            autoscaler(minimum=2, scaled="True", metrics=(RESOURCE,)), ON, False, id="higher minimum"
        ),
        pytest.param(autoscaler(scaled="True"), OFF, True, id="without the gate"),
        pytest.param(autoscaler(scaled="True"), FeatureGates("1.36"), True, id="1.36"),
        pytest.param(
            autoscaler(scaled="True"),
            FeatureGates("1.36", [("HPAScaleToZero", True)]),
            False,
            id="1.36 with the gate",
        ),
        pytest.param(autoscaler(), FeatureGates("1.35"), False, id="1.35"),
        pytest.param(autoscaler(minimum=1), FeatureGates("1.35"), True, id="1.35 with a minimum"),
    ],
)
def test_scaling_is_disabled_at_a_zero_of_others(tree, gates, is_disabled):
    decision, updated = decision_at_zero(tree, gates)
    assert (decision is not None) is is_disabled
    assert condition(updated, "ScalingActive") == (DISABLED if is_disabled else None)


@pytest.mark.parametrize(("gates", "is_kept"), [(ON, True), (OFF, False)])
def test_condition_of_zero_stays_with_the_gate_only(gates, is_kept):
    _, updated = decision_at_zero(autoscaler(scaled="False"), gates)
    assert (conditions.get(updated, "ScaledToZero") is not None) is is_kept


@pytest.mark.parametrize(
    ("tree", "current", "desired", "gates", "expected"),
    [
        pytest.param(autoscaler(), 2, 0, ON, SCALED, id="to zero"),
        pytest.param(autoscaler(), 2, 1, ON, NOT_SCALED, id="down"),
        pytest.param(autoscaler(scaled="True"), 0, 1, ON, NOT_SCALED, id="from zero"),
        pytest.param(autoscaler(metrics=(RESOURCE,)), 2, 0, ON, NOT_SCALED, id="to zero by metrics of pods"),
        pytest.param(autoscaler(scaled="True"), 2, 0, OFF, None, id="without the gate"),
        pytest.param(autoscaler(scaled="True"), 2, 0, FeatureGates("1.36"), None, id="1.36"),
    ],
)
def test_rescale_records_whose_zero_it_is(tree, current, desired, gates, expected):
    status = AutoscalerStatus(tree, gates, NOW)
    zero.record_rescale(tree, current, desired, status, gates)
    assert condition(status.updated_object or tree, "ScaledToZero") == expected


@pytest.mark.parametrize(("behavior", "reason"), [(None, ""), ({}, BELOW_MINIMUM)])
def test_raised_minimum_is_reached_from_zero(behavior, reason):
    tree = autoscaler(minimum=2, scaled="True")
    tree["spec"]["behavior"] = behavior
    status = AutoscalerStatus(tree, ON, NOW)
    limits = ScalingLimits(
        minimum=2, maximum=5, current=0, downscale_stabilization=timedelta(minutes=5), now=NOW
    )
    decision = decide(tree, Recommendation(0, "", (), ""), limits, ScalingHistory(), status)
    assert (decision.desired, decision.reason) == (2, reason)


@pytest.mark.parametrize(("minor", "observed"), [("1.37", 4), ("1.36", None)])
def test_status_has_generation_with_its_gate(minor, observed):
    tree = autoscaler() | {"metadata": {"name": "h", "generation": 4}}
    status = AutoscalerStatus(tree, FeatureGates(minor), NOW)
    status.set_replicas(1, ())
    assert status.updated_object["status"].get("observedGeneration") == observed


def test_older_controller_forgets_observed_generation():
    tree = autoscaler() | {"status": {"observedGeneration": 4, "currentReplicas": 1}}
    status = AutoscalerStatus(tree, FeatureGates("1.36"), NOW)
    status.set_replicas(1, ())
    assert "observedGeneration" not in status.updated_object["status"]
