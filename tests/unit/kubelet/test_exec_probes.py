"""The commands of exec probes are interpreted, with the files that the container's command writes."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

HEALTHY = "touch /tmp/healthy; sleep 30; rm -f /tmp/healthy; sleep 600"
NOT_FOUND = "cat: can't open '/tmp/healthy': No such file or directory\n"


def probe(*command, **fields):
    return {"exec": {"command": list(command)}, "periodSeconds": 5, "failureThreshold": 3, **fields}


def simulated(probed, *, annotations=None, **spec):
    return SimulatedPod(pod(probed, annotations=annotations, **spec), context=node_context(details=True))


def state_of(simulated_pod):
    status = simulated_pod.status["containerStatuses"][0]
    return status["started"], status["ready"], status["restartCount"]


def warnings(simulated_pod):
    return [event.message for event in simulated_pod.events if event.type == "Warning"]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["false"], ""),
        (["sh", "-c", "echo broken >&2; exit 1"], "broken\n"),
        (["/bin/sh", "-c", "test -n '' || exit 3"], ""),
    ],
)
def test_readiness_command_that_fails_is_never_ready(command, output):
    subject = simulated(container(readinessProbe=probe(*command))).pass_time(60)
    assert state_of(subject) == (True, False, 0)
    assert warnings(subject) == [f"Readiness probe failed: {output}"]
    assert subject.due is None


def test_liveness_command_that_fails_restarts_container():
    subject = simulated(container(livenessProbe=probe("false"))).pass_time(14)
    assert state_of(subject) == (True, True, 0)
    assert state_of(subject.pass_time(1)) == (True, True, 1)


def test_liveness_command_reads_file_that_the_command_removes():
    subject = simulated(
        container("c", "sh", "-c", HEALTHY, image="busybox", livenessProbe=probe("cat", "/tmp/healthy"))
    )
    assert state_of(subject.pass_time(40)) == (True, True, 0)
    assert warnings(subject) == [f"Liveness probe failed: {NOT_FOUND}"]
    assert state_of(subject.pass_time(29)) == (True, True, 0), "its shell ignores SIGTERM"
    assert state_of(subject.pass_time(1)) == (True, True, 1)
    assert warnings(subject) == [f"Liveness probe failed: {NOT_FOUND}"]


def test_readiness_command_follows_file_of_the_command():
    script = "sleep 12; touch /tmp/ready; sleep 20; rm /tmp/ready; sleep 20; touch /tmp/ready; sleep 600"
    subject = simulated(container("c", "sh", "-c", script, readinessProbe=probe("test", "-f", "/tmp/ready")))
    ready_at = [second for second in range(1, 80) if state_of(subject.pass_time(1))[1]]
    assert ready_at == [*range(15, 45), *range(55, 80)]
    assert subject.due is not None  # The command ends.


def test_readiness_command_reads_file_of_volume_of_its_own():
    volume = {"name": "v", "emptyDir": {}}
    probed = container(
        *("c", "sh", "-c", "sleep 7; echo > /data/ready; sleep 600"),
        readinessProbe=probe("cat", "/data/ready"),
        volumeMounts=[{"name": "v", "mountPath": "/data"}],
    )
    subject = simulated(probed, volumes=[volume])
    assert state_of(subject) == (True, False, 0)
    assert state_of(subject.pass_time(10)) == (True, True, 0)


def test_startup_command_starts_container_when_it_succeeds():
    script = "sleep 8; touch /tmp/up; sleep 600"
    subject = simulated(container("c", "sh", "-c", script, startupProbe=probe("cat", "/tmp/up")))
    assert state_of(subject.pass_time(9)) == (False, False, 0)
    assert state_of(subject.pass_time(1)) == (True, True, 0)


def test_command_that_takes_longer_than_its_timeout_fails():
    subject = simulated(container(readinessProbe=probe("sleep", "10", timeoutSeconds=2))).pass_time(60)
    assert state_of(subject) == (True, False, 0)
    timeout = 'command timed out: "sleep 10" timed out after 2s'
    assert warnings(subject) == [f"Readiness probe failed: {timeout}"]


def test_command_makes_container_ready_at_its_end():
    subject = simulated(container(readinessProbe=probe("sleep", "3", timeoutSeconds=4)))
    assert state_of(subject.pass_time(2)) == (True, False, 0)
    assert state_of(subject.pass_time(1)) == (True, True, 0)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["pg_isready"], id="program that is not simulated"),
        pytest.param(["sh", "-c", "exec pg_isready || exit 1"], id="in a script"),
        pytest.param(["sh", "-c", "[ -f /app/ready ] || exit 1"], id="file that the image may have"),
        pytest.param(["test", "-f", "/tmp/ready"], id="file that the program may have written"),
        pytest.param(["sh", "-c", "ls /tmp | grep -q ready"], id="folder whose files are not known"),
        pytest.param(["sh", "-c", 'test -n "$JAVA_HOME"'], id="variable that the image may have"),
    ],
)
def test_command_with_unknown_result_succeeds(command):
    subject = simulated(container(image="example.com/app:1", readinessProbe=probe(*command)))
    assert state_of(subject) == (True, True, 0)


def test_command_uses_variables_of_the_container():
    env = [{"name": "MODE", "value": "broken"}]
    subject = simulated(container(env=env, readinessProbe=probe("sh", "-c", "test $MODE = fine")))
    assert state_of(subject) == (True, False, 0)


def test_script_of_annotation_does_not_make_files_known():
    annotations = {"mockube.dev/run": "sleep infinity"}
    subject = simulated(container(readinessProbe=probe("cat", "/tmp/healthy")), annotations=annotations)
    assert state_of(subject) == (True, True, 0)


def test_annotation_replaces_result_of_command():
    annotations = {"mockube.dev/fail-readiness-after": "1h"}
    subject = simulated(container(readinessProbe=probe("false")), annotations=annotations)
    assert state_of(subject) == (True, True, 0)
