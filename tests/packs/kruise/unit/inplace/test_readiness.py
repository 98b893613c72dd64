"""The readiness gate that lifecycle hooks close and open."""

import orjson
import pytest

from mockube.client.podview import PodView
from mockube.component_base.clock import SteppedClock
from mockube.packs.kruise.inplace import readiness
from mockube.packs.kruise.inplace.lifecycle import Lifecycle

NOW = SteppedClock().now()
MARKING = {"labelsHandler": {"held": "yes"}, "markPodNotReady": True}
HOOKS = Lifecycle.of({"lifecycle": {"preDelete": MARKING, "inPlaceUpdate": MARKING}})
NONE = Lifecycle.of({})
PRE_DELETE = {"userAgent": "Lifecycle", "key": "preDeleteHook"}
PRE_UPDATE = {"userAgent": "Lifecycle", "key": "preUpdateHook"}
OTHER = {"userAgent": "ContainerRecreateRequest", "key": "restart"}


def pod(*reasons, gate=True, message=None):
    text = orjson.dumps(reasons).decode() if message is None else message
    conditions = [{"type": readiness.GATE, "status": "False" if reasons else "True", "message": text}]
    return PodView.of(
        {
            "metadata": {"name": "web-x", "namespace": "default", "uid": "u"},
            "spec": {"readinessGates": [{"conditionType": readiness.GATE}] if gate else []},
            "status": {"conditions": conditions},
        }
    )


def written_condition(patches):
    """Return the written condition's status and reasons, or None if nothing is written."""
    if not patches:
        return None
    ((condition,),) = [patch.body["status"]["conditions"] for patch in patches]
    return condition["status"], orjson.loads(condition["message"])


@pytest.mark.parametrize(
    ("subject", "state", "expected"),
    [
        pytest.param(pod(), "PreparingDelete", ("False", [PRE_DELETE]), id="prepared for its end"),
        pytest.param(pod(), "PreparingUpdate", ("False", [PRE_UPDATE]), id="prepared for an update"),
        pytest.param(pod(PRE_DELETE), "PreparingDelete", None, id="shut already"),
        pytest.param(pod(OTHER), "PreparingDelete", ("False", [OTHER, PRE_DELETE]), id="shut by another"),
        pytest.param(pod(PRE_UPDATE), "PreparingDelete", ("False", [PRE_DELETE, PRE_UPDATE]), id="in order"),
        pytest.param(pod(PRE_UPDATE), "Updated", ("True", []), id="updated"),
        pytest.param(pod(PRE_UPDATE), "Normal", ("True", []), id="taken back"),
        pytest.param(pod(PRE_UPDATE, OTHER), "Updated", ("False", [OTHER]), id="another is not done"),
        pytest.param(pod(), "Normal", None, id="normal"),
        pytest.param(pod(gate=False), "PreparingDelete", None, id="made without the gate"),
        pytest.param(pod(message="{"), "PreparingDelete", ("False", [PRE_DELETE]), id="invalid message"),
        pytest.param(pod(message="{}"), "Updated", None, id="invalid message, gate open"),
    ],
)
def test_lifecycle_state_sets_readiness_gate(subject, state, expected):
    assert written_condition(readiness.gate_patches(subject, HOOKS, state, NOW)) == expected


@pytest.mark.parametrize("state", ["PreparingDelete", "PreparingUpdate"])
def test_hook_without_mark_keeps_gate(state):
    assert readiness.gate_patches(pod(), NONE, state, NOW) == ()


def test_new_readiness_gate_opens():
    new = PodView.of(
        {
            "metadata": {"name": "web-x", "namespace": "default", "uid": "u"},
            "spec": {"readinessGates": [{"conditionType": readiness.GATE}]},
        }
    )
    (patch,) = readiness.open_new_gate(new, NOW)
    assert patch.body["status"]["conditions"][0]["status"] == "True"
    assert readiness.open_new_gate(pod(PRE_DELETE), NOW) == ()


@pytest.mark.parametrize(("hooks", "expected"), [(HOOKS, ["KruisePodReady"]), (NONE, [])])
def test_pods_get_readiness_gate_if_hook_needs_it(hooks, expected):
    made = readiness.with_readiness_gate({"metadata": {}, "spec": {}}, hooks)
    assert [gate["conditionType"] for gate in made["spec"].get("readinessGates", [])] == expected
