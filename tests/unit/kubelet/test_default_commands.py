"""A container without a command does what its image does without a terminal: most shells end at once."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod


def simulated(image, policy="Always", annotations=None, labels=None, **fields):
    described = container("c", image=image, **fields)
    subject = SimulatedPod(
        pod(described, policy=policy, annotations=annotations, labels=labels),
        context=node_context(details=True),
    )
    return subject.pass_time(5)


def state(subject):
    (status,) = subject.status["containerStatuses"]
    waiting, ended = status["state"].get("waiting"), status["state"].get("terminated")
    return (waiting or ended or {"reason": "Running"})["reason"]


def messages(subject):
    return [event.message for event in subject.events if event.reason == "EndsAtOnce"]


@pytest.mark.parametrize(
    "image", ["busybox", "alpine:3", "debian", "ubuntu", "bash", "golang:1", "python", "node"]
)
@pytest.mark.parametrize(
    ("policy", "phase", "reason"),
    [
        ("Always", "Running", "CrashLoopBackOff"),
        ("OnFailure", "Succeeded", "Completed"),
        ("Never", "Succeeded", "Completed"),
    ],
)
def test_shell_without_input_ends_at_once(image, policy, phase, reason):
    subject = simulated(image, policy)
    assert (subject.status["phase"], state(subject)) == (phase, reason)


@pytest.mark.parametrize("image", ["busybox", "ubuntu", "python", "docker:cli"])
@pytest.mark.parametrize("field", ["stdin", "tty"])
def test_shell_with_terminal_or_input_waits(image, field):
    subject = simulated(image, **{field: True})
    # A container that reads input runs in real time, which the pod's status awaits.
    assert (state(subject), messages(subject)) == ("Running", [])


@pytest.mark.parametrize(
    ("image", "policy", "code"),
    [
        ("curlimages/curl", "Never", 2),
        ("maven:3", "Never", 1),
        ("r-base", "OnFailure", 2),
        ("alpine/git", "Never", 0),
    ],
)
def test_program_that_prints_its_usage_ends_with_its_exit_code(image, policy, code):
    subject = simulated(image, policy)
    (status,) = subject.status["containerStatuses"]
    end = status["state"].get("terminated") or status["lastState"]["terminated"]
    assert end["exitCode"] == code


def test_interpreter_with_input_is_not_simulated():
    subject = simulated("python:3.12", stdin=True, tty=True)
    warnings = [event.message for event in subject.events if event.reason == "NotSimulated"]
    end = "the container runs without it until it is stopped"
    assert warnings == [f"python3 of the image python:3.12 is not simulated: {end}"]


def test_event_names_image_command_and_remedy():
    (message,) = messages(simulated("busybox:1.37"))
    end = "it ends at once with exit code 0 because it has no standard input"
    remedy = 'To let it run, set a command such as ["sleep", "infinity"]'
    assert message == f"The image busybox:1.37 runs sh if its pod has no command: {end}. {remedy}"
    (message,) = messages(simulated("alpine/git"))
    assert message.startswith(
        "The image alpine/git runs git --help if its pod has no command: it ends at once with exit code 0. "
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"command": ["sleep", "infinity"]},
        {"args": ["sleep", "infinity"]},
        {"annotations": {"mockube.dev/run": "sleep infinity"}},
        {"annotations": {"mockube.dev/exit-after": "1h"}},
    ],
)
def test_command_or_annotation_lets_container_run_without_event(fields):
    subject = simulated("busybox", **fields)
    assert (state(subject), messages(subject)) == ("Running", [])


def test_server_and_unknown_image_run_without_command():
    assert [state(simulated(image)) for image in ("nginx", "redis", "example.org/own", "calico/node")] == [
        "Running"
    ] * 4


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
@pytest.mark.parametrize(
    ("image", "fields"),
    [
        ("nginx", {}),
        ("redis:7", {"args": ["--port", "6380"]}),
        ("redis:7", {"command": ["redis-server"]}),
        ("httpd", {"command": ["httpd-foreground"]}),
        ("postgres:16", {"env": [{"name": "POSTGRES_PASSWORD", "value": "x"}]}),
    ],
)
def test_server_of_known_image_runs_on_in_job(image, fields, policy):
    subject = simulated(image, policy, labels={"batch.kubernetes.io/job-name": "j"}, **fields)
    assert state(subject) == "Running"


def test_job_ends_by_assumption_if_its_command_is_unknown():
    labels = {"batch.kubernetes.io/job-name": "j"}
    for image, arguments in (("example.org/team/nginx", []), ("mongo:7", ["nope"])):
        assert state(simulated(image, "Never", labels=labels, args=arguments)) == "NotSimulated"


def test_command_that_reads_terminal_waits_for_input():
    assert state(simulated("jenkins/inbound-agent", command=["cat"], tty=True)) == "Running"
    assert state(simulated("jenkins/inbound-agent", command=["cat"])) == "CrashLoopBackOff"
    assert state(simulated("busybox", command=["sh", "-c", "read line; exit 3"], tty=True)) == "Running"


def test_message_of_failed_default_command_is_its_log():
    subject = simulated("maven", "Never", terminationMessagePolicy="FallbackToLogsOnError")
    (status,) = subject.status["containerStatuses"]
    assert "No goals have been specified" in status["state"]["terminated"]["message"]
