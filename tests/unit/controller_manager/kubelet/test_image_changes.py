"""A simulated kubelet restarts a container when the image of its pod changes."""

from tests.support.controllers.pods import SimulatedPod, container, pod


def test_changed_image_restarts_container():
    world = SimulatedPod(pod()).pass_time(5).change(containers=[container(image="nginx:1.26")])
    status = world.status["containerStatuses"][0]
    assert (status["image"], status["restartCount"]) == ("nginx:1.26", 1)
    assert status["lastState"]["terminated"]["exitCode"] == 0
    assert world.status["observedGeneration"] == 2
    assert world.condition("Ready")["observedGeneration"] == 2


def test_changed_image_ends_crash_loop_backoff():
    failing = container("c", "sh", "-c", "exit 1")
    world = SimulatedPod(pod(failing)).pass_time(60)
    assert world.containers() == {"c": "CrashLoopBackOff"}
    restarts = world.status["containerStatuses"][0]["restartCount"]
    status = world.change(containers=[container(image="nginx:1.26")]).status["containerStatuses"][0]
    assert (status["image"], status["restartCount"]) == ("nginx:1.26", restarts + 1)
    assert world.ready
