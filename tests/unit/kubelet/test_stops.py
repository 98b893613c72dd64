"""How long deleted pods take to stop, and with which exit codes: the first process of a container ignores most signals."""

import pytest

from mockube.container_runtime.behavior import KILLED
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

TRAP = "trap 'echo bye; exit 3' TERM; "


def simulated(*containers, **spec):
    return SimulatedPod(pod(*containers, **spec), context=node_context(details=True))


def sleeper(name="c", *argv, **fields):
    return container(name, *(argv or ("sleep", "1d")), image="busybox", **fields)


def stop_of(subject, *, after=100, grace=30):
    """Delete a pod; return after how many seconds it is gone, and the exit codes of its containers."""
    subject.pass_time(after).delete(grace=grace)
    begin = subject.now
    subject.pass_time(300)
    assert subject.removed
    ends = [status["state"]["terminated"] for status in subject.status["containerStatuses"]]
    finished = max(end["finishedAt"] for end in ends)
    return finished, [end["exitCode"] for end in ends], begin


@pytest.mark.parametrize(
    ("described", "grace", "seconds", "code"),
    [
        pytest.param(sleeper(), 30, 30, KILLED, id="sleep"),
        pytest.param(sleeper(), 5, 5, KILLED, id="sleep, with a shorter grace period"),
        pytest.param(
            sleeper("c", "sh", "-c", "while true; do date; sleep 5; done"), 30, 30, KILLED, id="loop"
        ),
        pytest.param(sleeper("c", "tail", "-f", "/dev/null"), 30, 30, KILLED, id="tail"),
        pytest.param(
            sleeper("c", "sleep", "110"), 30, 10, 0, id="a program that ends within the grace period"
        ),
        pytest.param(sleeper("c", "sh", "-c", TRAP + "sleep 1d & wait"), 30, 0, 3, id="trap while it waits"),
        pytest.param(
            sleeper("c", "sh", "-c", TRAP + "sleep 1d"), 30, 30, KILLED, id="trap after its program"
        ),
        pytest.param(
            sleeper("c", "sh", "-c", TRAP + "while :; do sleep 7; done"),
            30,
            5,
            3,
            id="trap after an iteration",
        ),
        pytest.param(sleeper("c", "sh", "-c", "trap '' TERM; sleep 1d & wait"), 30, 30, KILLED, id="ignored"),
        pytest.param(
            sleeper("c", "sh", "-c", "trap 'tail /dev/zero' TERM; sleep 1d & wait"),
            30,
            0,
            KILLED,
            id="trap that needs more memory than there is",
        ),
        pytest.param(container(image="nginx"), 30, 0, 0, id="server"),
        pytest.param(container(image="registry.k8s.io/pause:3.10"), 30, 0, 0, id="pause"),
        pytest.param(container("c", "serve", image="app"), 30, 0, 0, id="not simulated"),
    ],
)
def test_program_decides_how_its_container_stops(described, grace, seconds, code):
    subject = simulated(described)
    begin = subject.pass_time(100).now
    subject.delete(grace=grace)
    if seconds:
        assert not subject.pass_time(seconds - 1).removed
        assert [event.message for event in subject.events if event.reason == "Killing"] == [
            "Stopping container c"
        ]
        subject.pass_time(1)
    assert subject.removed
    assert (subject.now - begin).total_seconds() == seconds
    assert subject.containers() == {"c": code}
    assert [event.reason for event in subject.events].count("Killing") == 1


def test_longest_end_counts():
    subject = simulated(container("web", image="nginx"), sleeper("c")).pass_time(10).delete()
    assert not subject.pass_time(29).removed
    assert subject.pass_time(1).removed
    assert subject.containers() == {"web": 0, "c": KILLED}


@pytest.mark.parametrize("field", ["hostPID", "shareProcessNamespace"])
def test_process_that_is_not_the_first_of_its_namespace_ends_at_once(field):
    subject = simulated(sleeper(), **{field: True}).pass_time(10).delete()
    assert subject.removed
    assert subject.containers() == {"c": 128 + 15}


def test_hook_that_takes_a_part_of_the_grace_period_leaves_the_rest():
    lifecycle = {"preStop": {"sleep": {"seconds": 10}}}
    subject = simulated(sleeper(lifecycle=lifecycle)).pass_time(10).delete(grace=15)
    assert not subject.pass_time(14).removed
    assert subject.pass_time(1).removed
    server = simulated(container(image="nginx", lifecycle=lifecycle)).pass_time(10).delete(grace=15)
    assert not server.pass_time(9).removed
    assert server.pass_time(1).removed
    assert server.containers() == {"c": 0}


def test_sidecar_stops_after_the_main_containers():
    sidecar = sleeper("log", "sh", "-c", TRAP + "sleep 1d & wait", restartPolicy="Always")
    subject = simulated(sleeper("c", "sleep", "20"), init=[sidecar]).pass_time(10).delete()
    assert not subject.pass_time(9).removed
    assert subject.pass_time(1).removed
    assert subject.containers("initContainerStatuses") == {"log": 3}


def test_unhealthy_container_is_killed_after_the_grace_period_of_its_probe():
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    described = sleeper(livenessProbe={**probe, "terminationGracePeriodSeconds": 5})
    subject = simulated(described).pass_time(1)
    assert [event.reason for event in subject.events][-2:] == ["Unhealthy", "Killing"]
    assert subject.status["containerStatuses"][0]["restartCount"] == 0
    assert subject.pass_time(5).status["containerStatuses"][0]["restartCount"] == 1
    end = subject.status["containerStatuses"][0]["lastState"]["terminated"]
    assert end["exitCode"] == KILLED
