"""What an init container should have written that is not simulated is unknown, and so is what reads it."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

CONTOUR = "ghcr.io/projectcontour/contour:v1.33.0"
CONTEXT = node_context(details=True)


def simulated(*command, writer, image="busybox"):
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/config"}]}
    tree = pod(
        container("c", *command, image=image, **mounts),
        initContainers=[{**writer, "name": "i", **mounts}],
        volumes=[{"name": "v", "emptyDir": {}}],
        policy="Never",
    )
    return SimulatedPod(tree, context=CONTEXT).pass_time(60)


def last_warning(subject):
    messages = [event.message for event in subject.events if event.reason == "NotSimulated"]
    return messages[-1] if messages else ""


UNKNOWN = container("i", "contour", "bootstrap", "/config/envoy.json", image=CONTOUR)


@pytest.mark.parametrize("writer", [UNKNOWN, container("i", image=CONTOUR)])
@pytest.mark.parametrize(
    "script", ["cat /config/x; exit 3", "set -e; . /config/x; exit 3", "grep a /config/a/x || exit 3"]
)
def test_program_that_reads_what_is_unknown_is_not_simulated(script, writer):
    subject = simulated("sh", "-c", script, writer=writer)
    assert subject.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    path = "/config/a/x" if "/a/" in script else "/config/x"
    assert last_warning(subject) == (
        f"what reads {path}, which the image {CONTOUR} was to write, is not simulated: "
        "the container ends with exit code 0 without it"
    )


@pytest.mark.parametrize(
    ("script", "writer"),
    [
        pytest.param("cat /config/x; exit 3", container("i", "true", image="busybox"), id="simulated"),
        pytest.param("echo a > /config/x; cat /config/x; exit 3", UNKNOWN, id="what it writes itself"),
        pytest.param("cat /tmp/x; exit 3", UNKNOWN, id="another folder"),
    ],
)
def test_program_that_reads_what_is_known_is_simulated(script, writer):
    subject = simulated("sh", "-c", script, writer=writer)
    assert subject.status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
