"""A simulated kubelet restarts a container when the image of its pod changes."""

from tests.support.controllers.pods import SimulatedPod, container, pod


def test_changed_image_restarts_container():
    simulated = SimulatedPod(pod()).pass_time(5).change(containers=[container(image="nginx:1.26")])
    status = simulated.status["containerStatuses"][0]
    assert (status["image"], status["restartCount"]) == ("nginx:1.26", 1)
    assert status["lastState"]["terminated"]["exitCode"] == 0
    assert simulated.status["observedGeneration"] == 2
    assert simulated.condition("Ready")["observedGeneration"] == 2


def test_changed_image_ends_crash_loop_backoff():
    failing = container("c", "sh", "-c", "exit 1")
    simulated = SimulatedPod(pod(failing)).pass_time(60)
    assert simulated.containers() == {"c": "CrashLoopBackOff"}
    restarts = simulated.status["containerStatuses"][0]["restartCount"]
    status = simulated.change(containers=[container(image="nginx:1.26")]).status["containerStatuses"][0]
    assert (status["image"], status["restartCount"]) == ("nginx:1.26", restarts + 1)
    assert simulated.ready
