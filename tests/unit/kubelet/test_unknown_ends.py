"""The containers of a stopped pod that still wait end with an unknown result."""

from tests.support.controllers.pods import SimulatedPod, container, pod

UNKNOWN = {
    "exitCode": 137,
    "message": "The container could not be located when the pod was terminated",
    "reason": "ContainerStatusUnknown",
}


def states_of(simulated, field="containerStatuses"):
    return [
        "unknown" if status["state"].get("terminated") == UNKNOWN else next(iter(status["state"]))
        for status in simulated.status[field]
    ]


def test_waiting_container_of_stopped_pod_has_unknown_end():
    waiting = {"mockube.dev/waiting-reason": "ImagePullBackOff"}
    simulated = SimulatedPod(pod(activeDeadlineSeconds=10, annotations=waiting)).pass_time(10)
    assert (simulated.phase, states_of(simulated)) == ("Failed", ["unknown"])


def test_container_in_back_off_has_unknown_end_and_its_last_state():
    simulated = SimulatedPod(pod(container("c", "false"), activeDeadlineSeconds=5)).pass_time(5)
    (status,) = simulated.status["containerStatuses"]
    assert (states_of(simulated), status["lastState"]["terminated"]["exitCode"]) == (["unknown"], 1)


def test_containers_of_uninitialized_stopped_pod_keep_waiting():
    init = [container("a", "true"), container("b", "sleep", "60"), container("d", "true")]
    simulated = SimulatedPod(pod(init=init, activeDeadlineSeconds=10)).pass_time(10 + 30)
    assert states_of(simulated, "initContainerStatuses") == ["terminated", "terminated", "waiting"]
    assert states_of(simulated) == ["waiting"]


def test_first_init_container_of_pod_that_never_started_has_unknown_end():
    waiting = {"mockube.dev/waiting-reason": "ImagePullBackOff"}
    init = [container("a", "true"), container("b", "true")]
    simulated = SimulatedPod(pod(init=init, annotations=waiting, activeDeadlineSeconds=10)).pass_time(10)
    assert states_of(simulated, "initContainerStatuses") == ["unknown", "waiting"]
    assert states_of(simulated) == ["waiting"]
