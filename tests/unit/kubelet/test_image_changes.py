"""A simulated kubelet restarts a container when the image of its pod changes."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod


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


def image_id(image):
    simulated = SimulatedPod(pod(container("c", image=image)), context=node_context(details=True))
    return simulated.status["containerStatuses"][0]["imageID"]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param("nginx:alpine", "nginx:mainline-alpine", True, id="tags that are no versions"),
        pytest.param("nginx", "nginx:latest", True, id="no tag"),
        pytest.param("nginx:1.28", "nginx:1.29", False, id="versions"),
        pytest.param("nginx:1.28", "nginx:latest", False, id="a version and another tag"),
        pytest.param("nginx:1.28-alpine", "nginx:1.28", False, id="variants of a version"),
        pytest.param("nginx", "redis", False, id="two images"),
        pytest.param("host:5000/app", "host:5000/app:latest", True, id="the port of a registry"),
    ],
)
def test_tags_of_one_image_have_one_id(one, other, is_same):
    assert (image_id(one) == image_id(other)) is is_same


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("app", "docker.io/library/app"),
        ("app:1.2", "docker.io/library/app"),
        ("host:5000/team/app", "host:5000/team/app"),
    ],
)
def test_image_id_has_repository_and_digest_of_reference(name, repository):
    digest = f"sha256:{'a' * 64}"
    assert image_id(f"{name}@{digest}") == f"{repository}@{digest}"
