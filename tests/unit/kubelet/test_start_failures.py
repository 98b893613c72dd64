"""Containers that an annotation lets fail at their start."""

import pytest

from mockube.container_runtime.pod_script import script_of
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

FAIL = "mockube.dev/fail-start"


def simulated_pod(*containers, policy="Always", **annotations):
    named = {
        f"mockube.dev/{name.replace('__', '.').replace('_', '-')}": text for name, text in annotations.items()
    }
    tree = pod(*containers or (container(),), annotations=named, policy=policy)
    return SimulatedPod(tree, context=node_context(details=True))


def status_of(simulated, index=0):
    return simulated.status["containerStatuses"][index]


def test_container_fails_at_its_start_again_and_again():
    simulated = simulated_pod(fail_start="true")
    assert simulated.containers() == {"c": "RunContainerError"}
    status = status_of(simulated)
    message = "failed to create containerd task: failed to create shim task: the annotation mockube.dev/fail-start is set"
    assert status["lastState"]["terminated"] == {
        "containerID": status["containerID"],
        "exitCode": 128,
        "finishedAt": "2030-01-01T00:00:00Z",
        "message": message,
        "reason": "StartError",
        "startedAt": "1970-01-01T00:00:00Z",
    }
    assert (status["restartCount"], status["ready"], status["started"]) == (1, False, False)
    assert [event.reason for event in simulated.events] == [*["Pulled", "Created", "Failed"] * 2, "BackOff"]
    assert [event.message for event in simulated.events if event.reason == "Failed"] == [
        f"Error: {message}"
    ] * 2
    simulated.pass_time(15)
    assert status_of(simulated)["restartCount"] == 2, "after 10 s; the next delay is 20 s"
    assert status_of(simulated)["state"]["waiting"] == {"message": message, "reason": "RunContainerError"}
    simulated.pass_time(10)
    assert (simulated.containers(), status_of(simulated)["restartCount"]) == ({"c": "CrashLoopBackOff"}, 2)
    assert [event.reason for event in simulated.events].count("BackOff") == 2, "once for each wait"
    simulated.pass_time(10)
    assert status_of(simulated)["restartCount"] == 3


def test_crash_times_limits_failed_starts():
    simulated = simulated_pod(fail_start="true", crash_times="2")
    assert simulated.containers() == {"c": "RunContainerError"}
    simulated.pass_time(15)
    assert (simulated.containers(), status_of(simulated)["restartCount"]) == ({"c": "running"}, 2)
    assert simulated.ready


def test_one_container_of_pod_fails():
    simulated = simulated_pod(container("a"), container("b"), fail_start__b="true")
    assert simulated.containers() == {"a": "running", "b": "RunContainerError"}
    others = simulated_pod(container("a"), container("b"), fail_start="true", fail_start__a="false")
    assert others.containers() == {"a": "running", "b": "RunContainerError"}


def test_pod_that_is_never_restarted_fails():
    simulated = simulated_pod(policy="Never", fail_start="true")
    assert simulated.status["phase"] == "Failed"
    assert simulated.containers() == {"c": 128}


def test_new_image_fails_at_its_start():
    simulated = simulated_pod()
    simulated.annotate(fail_start="true")
    assert simulated.ready, "it runs already"
    simulated.change(containers=[container(image="nginx:1.26")])
    assert simulated.containers() == {"c": "RunContainerError"}
    assert status_of(simulated)["lastState"]["terminated"]["reason"] == "StartError"


@pytest.mark.parametrize("name", [FAIL, f"{FAIL}.c"])
def test_value_that_is_not_boolean_is_a_problem(name):
    script = script_of({name: "yes"})
    assert script.problems == (f"{name}: 'yes': must be true or false",)
    assert not script.fails_at_start("c", 0)


def test_suffix_without_a_field_is_a_problem():
    assert script_of({"mockube.dev/answer": "x"}).problems == ("mockube.dev/answer: 'x': unknown annotation",)
