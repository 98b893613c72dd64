"""Numbers and times that Python cannot parse or add do not stop the code that reads an object."""

from datetime import UTC, datetime, timedelta

import pytest

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.timestamps import after, span_of
from mockube.client.component_helpers import node_selectors, tolerations
from mockube.client.podview import PodView
from mockube.container_runtime.simulated.programs.program import program_of
from mockube.controller_manager.controllers.deployment import revision, state
from mockube.controller_manager.controllers.tainteviction.controller import tolerated_time
from mockube.controller_manager.workloads import deletion_order
from mockube.kubelet.template.functions import FUNCTIONS
from tests.support.controllers import pods
from tests.support.images import IMAGES

LONG = "9" * 5_000
"""Python's `int` refuses more than 4,300 digits."""
TEXTS = [LONG, f"-{LONG}", "²", "٣", "1_0", " 1", "", "+", "9" * 20, "inf", "nan", "1e999999999", "0x1"]
MAX_INT64 = 2**63 - 1
LATE = "9999-12-31T23:59:59Z"
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def object_with_annotations(**annotations):
    return {"metadata": {"annotations": annotations}}


@pytest.mark.parametrize("text", TEXTS)
def test_number_invalid_in_go_is_none(text):
    assert int_or_none(text) is None


@pytest.mark.parametrize(
    ("text", "bits", "number"),
    [
        ("+5", 64, 5),
        ("-0", 64, 0),
        ("0" * 5_000 + "7", 64, 7),
        (str(2**31), 32, None),
        (str(-(2**31)), 32, -(2**31)),
    ],
)
def test_numbers_are_limited_in_bits(text, bits, number):
    assert int_or_none(text, bits=bits) == number


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_in_annotations_and_labels(text):
    assert state.revision_of(object_with_annotations(**{"deployment.kubernetes.io/revision": text})) == 0
    view = state.DeploymentView(object_with_annotations(**{"deprecated.deployment.rollback.to": text}))
    assert revision.rollback_revision(view) is None
    assert (
        deletion_order.deletion_cost(
            object_with_annotations(**{"controller.kubernetes.io/pod-deletion-cost": text})
        )
        == 0
    )
    for operator in ("Gt", "Lt"):
        term = {"matchExpressions": [{"key": "a", "operator": operator, "values": ["1"]}]}
        assert not node_selectors.matches_term(term, {"metadata": {"name": "n", "labels": {"a": text}}})
        taint = {"key": "a", "value": text, "effect": "NoSchedule"}
        toleration = {"key": "a", "operator": operator, "value": "1"}
        assert not tolerations.tolerates({"tolerations": [toleration]}, taint)


@pytest.mark.parametrize("code", [LONG, "²", "9" * 20])
def test_numbers_in_exit_codes(code):
    found = program_of(IMAGES, pods.container("c", "exit", code))
    assert found is not None
    assert found.exit_code == 2


@pytest.mark.parametrize("span", [LONG, "9" * 400, "9" * 30, "99999999999d"])
def test_very_long_sleep_is_supported(span):
    simulated = pods.SimulatedPod(
        pods.pod(pods.container("c", "sleep", span), activeDeadlineSeconds=MAX_INT64)
    )
    simulated.step_until_idle()
    simulated.pass_time(3600)
    assert simulated.phase == "Running"
    assert simulated.ready


@pytest.mark.parametrize("seconds", [MAX_INT64, 10**11, 10**10])
def test_very_long_toleration_is_supported(seconds):
    taint = {"key": "a", "effect": "NoExecute"}
    allowed = tolerated_time([taint], [{"operator": "Exists", "tolerationSeconds": seconds}])
    assert allowed is not None
    assert after(NOW, allowed) - NOW == allowed > timedelta(days=365 * 200)


def test_pod_ready_at_end_of_calendar_is_never_available():
    pod = pods.pod()
    pod["status"] |= {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LATE}]}
    assert not PodView.of(pod).is_available(2**31 - 1, NOW)


@pytest.mark.parametrize(
    "span", [timedelta.max, timedelta.min, span_of(float("inf")), span_of(-float("inf"))]
)
def test_time_arithmetic_is_clamped(span):
    for moment in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC), NOW):
        found = after(moment, span)
        assert found.tzinfo is UTC
        assert found >= moment if span > timedelta() else found <= moment


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("mod", (1, 0)), ("int", (float("inf"),)), ("add", (LONG, 1)), ("YAML", ({}, 10**12))],
)
def test_template_functions_refuse_invalid_numbers(name, arguments):
    with pytest.raises((ValueError, ArithmeticError)):
        FUNCTIONS[name](*arguments)
