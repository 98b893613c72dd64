"""A program that is not simulated succeeds with a warning, or fails if a flag or an annotation says so."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from mockube.apimachinery.pods import assumption_of
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.images.live import live_images
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.simulated.predictions import SimulatedPredictions
from mockube.container_runtime.simulated.programs.commands import host_of, main_process
from mockube.container_runtime.simulated.shell.process import Output
from mockube.container_runtime.unknown_programs import UnknownPrograms
from mockube.kubelet.pod_lifecycle.unknown_programs import LiveAssumptions
from mockube.kubelet.step_effects import EmitEvent
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod
from tests.support.images import IMAGES

IMAGE = "example.com/app:1"
"""An image whose programs nobody knows."""
CONTEXT = node_context(details=True)


def with_unknown(default="assume", of_namespace=None):
    """Return a context in which the flag and the namespace say what becomes of unknown programs."""
    annotations = {} if of_namespace is None else {"mockube.dev/unknown-programs": of_namespace}
    images = ImageTable(unknown_programs=UnknownPrograms(default, lambda _: annotations))
    return replace(CONTEXT, predictions=SimulatedPredictions(images))


FAILING = with_unknown("fail")
WAITING = with_unknown("wait")
FAIL = {"mockube.dev/unknown-programs": "fail"}


def ended(subject):
    return end(subject).get("exitCode")


def end(subject):
    return subject.status["containerStatuses"][0]["state"].get("terminated") or {}


def simulated(*command, context=CONTEXT, annotations=None, **spec):
    described = container("c", *command, image=IMAGE)
    return SimulatedPod(
        pod(described, restartPolicy="Never", annotations=annotations, **spec), context=context
    ).pass_time(60)


def not_simulated(subject):
    return [(event.message, event.part) for event in subject.events if event.reason == "NotSimulated"]


def test_unknown_program_succeeds_with_warning_that_names_it():
    subject = simulated("sh", "-c", "echo a; make all; exit 3")
    assert ended(subject) == 0
    message = (
        "make of the image example.com/app:1 is not simulated: the container ends with exit code 0 without it"
    )
    assert not_simulated(subject) == [(message, "spec.containers{c}")]
    assert (end(subject)["reason"], end(subject)["message"]) == ("NotSimulated", message)


@pytest.mark.parametrize(("context", "code"), [(CONTEXT, 0), (FAILING, 127)])
def test_unknown_image_ends_with_reason_that_names_it(context, code):
    labels = {"batch.kubernetes.io/job-name": "j"}
    described = pod(container(image=IMAGE), restartPolicy="Never", labels=labels)
    subject = SimulatedPod(described, context=context).pass_time(60)
    text = (
        f"the image example.com/app:1 is not simulated: the container ends with exit code {code} without it"
    )
    assert (end(subject)["exitCode"], end(subject)["reason"], end(subject)["message"]) == (
        code,
        "NotSimulated",
        text,
    )


def test_simulated_program_has_no_warning():
    subject = simulated("sh", "-c", "echo a; exit 3")
    assert (end(subject)["reason"], not_simulated(subject)) == ("Error", [])
    assert assumption_of(subject.pod) == ""


def test_condition_keeps_what_is_not_simulated_after_its_events():
    probe = {"exec": {"command": ["check"]}}
    described = {**container("c", "serve", image=IMAGE), "readinessProbe": probe}
    subject = SimulatedPod(pod(described), context=CONTEXT).pass_time(7200)
    messages = [text for text, _ in not_simulated(subject)]
    assert len(messages) == 2
    assert subject.ready
    assert assumption_of(subject.pod) == "; ".join(messages)


def test_condition_has_what_commands_in_real_time_reported_once():
    reported = EmitEvent("Warning", "NotSimulated", "serve is not simulated", "spec.containers{c}")
    context = replace(CONTEXT, live_assumptions=[reported, reported])
    subject = SimulatedPod(pod(container("c", "sleep", "inf")), context=context).pass_time(60)
    assert assumption_of(subject.pod) == "serve is not simulated"
    assert not_simulated(subject) == []


def test_loop_that_runs_unknown_programs_is_noted_a_few_times():
    noted = LiveAssumptions()
    loop = [EmitEvent("Warning", "NotSimulated", f"program-{number}") for number in range(1000)]
    assert [noted.add(loop[0]), noted.add(loop[0]), noted.add(loop[1])] == [True, False, True]
    assert sum(map(noted.add, loop)) + 2 == len(noted.events) == 20


def test_arguments_of_unknown_program_are_not_its_name():
    described = {**container(image=IMAGE), "args": ["--v=2"]}
    subject = SimulatedPod(pod(described), context=CONTEXT).pass_time(60)
    message = (
        "the image example.com/app:1 is not simulated: the container runs without it until it is stopped"
    )
    assert [event_message for event_message, _ in not_simulated(subject)] == [message]


def test_option_in_a_variable_is_no_name_of_a_program():
    described = {**container(image=IMAGE, env=[{"name": "X", "value": "-g"}]), "args": ["$(X)", "serve"]}
    ((message, _),) = not_simulated(SimulatedPod(pod(described), context=CONTEXT).pass_time(60))
    assert message.startswith("the image example.com/app:1 is not simulated: ")


@pytest.mark.parametrize(
    "command",
    [
        ["dumb-init", "--single-child", "--verbose", "--rewrite", "15:3", "--"],
        ["dumb-init", "--rewrite=15:3"],
        ["dumb-init", "-cvr", "15:3"],
        ["tini", "-sgwe", "143", "-p", "SIGTERM", "--"],
        ["stdbuf", "--output=L"],
        ["nice", "--adjustment", "5"],
    ],
)
def test_program_behind_the_options_of_another_one_runs(command):
    assert ended(simulated(*command, "sh", "-c", "exit 3")) == 3


@pytest.mark.parametrize(
    ("context", "annotations"),
    [
        (FAILING, None),
        (CONTEXT, FAIL),
        (with_unknown("assume", "fail"), None),
        (with_unknown("wait", "fail"), None),
    ],
)
def test_unknown_program_fails_if_flag_or_annotation_says_so(context, annotations):
    assert ended(simulated("make", context=context, annotations=annotations)) == 127
    assert ended(simulated("sh", "-c", "make || exit 5", context=context, annotations=annotations)) == 5
    assert ended(simulated("sh", "-c", "make; true", context=context, annotations=annotations)) == 0


def test_unknown_program_that_fails_has_the_same_warning():
    for command, code in ((["make"], 127), (["sh", "-c", "make || exit 5"], 5)):
        message = f"make of the image example.com/app:1 is not simulated: the container ends with exit code {code} without it"
        assert [text for text, _ in not_simulated(simulated(*command, context=FAILING))] == [message]
    assert not_simulated(simulated("sh", "-c", "echo a; exit 3", context=FAILING)) == []


def test_annotation_takes_precedence_over_flag():
    for value in ("assume", "succeed"):
        annotations = {"mockube.dev/unknown-programs": value}
        for context in (FAILING, with_unknown("wait", "fail")):
            assert ended(simulated("make", context=context, annotations=annotations)) == 0


def test_invalid_annotation_of_namespace_says_nothing():
    assert ended(simulated("make", context=with_unknown("fail", "maybe"))) == 127


def waiting(subject):
    return subject.status["containerStatuses"][0]["state"].get("waiting") or {}


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (container("c", "sh", "-c", "make", image=IMAGE), "make of the image example.com/app:1"),
        (container("c", image=IMAGE), "the image example.com/app:1"),
        (
            container("c", "sleep", "inf", readinessProbe={"exec": {"command": ["/opt/check"]}}, image=IMAGE),
            "/opt/check of the image example.com/app:1",
        ),
        (
            container(
                "c", "sleep", "inf", lifecycle={"preStop": {"exec": {"command": ["/opt/stop"]}}}, image=IMAGE
            ),
            "/opt/stop of the image example.com/app:1",
        ),
    ],
)
def test_container_waits_for_what_is_not_simulated(described, message):
    subject = SimulatedPod(pod(described), context=WAITING).pass_time(7200)
    text = f"{message} is not simulated: the container waits until it is"
    assert (subject.phase, waiting(subject)) == ("Pending", {"reason": "NotSimulated", "message": text})
    events = [*not_simulated(subject), *((each.message, each.part) for each in subject.unknown_images)]
    assert events == [(text, "spec.containers{c}")]
    assert (assumption_of(subject.pod), subject.ready) == ("", False)


def test_simulated_program_does_not_wait():
    assert ended(simulated("sh", "-c", "exit 3", context=WAITING)) == 3


def test_container_starts_when_its_image_becomes_known():
    images = ImageTable(unknown_programs=UnknownPrograms("wait"))
    context = replace(CONTEXT, predictions=SimulatedPredictions(images))
    subject = SimulatedPod(pod(container("c", image=IMAGE)), context=context).pass_time(60)
    assert waiting(subject)["reason"] == "NotSimulated"
    images.set_live(
        live_images({"data": {"images.yaml": "app: {names: [example.com/app], ports: {8080: {}}}"}})
    )
    subject.pass_time(60)
    assert (subject.phase, subject.ready, assumption_of(subject.pod)) == ("Running", True, "")


def test_invalid_annotation_is_reported():
    subject = simulated("true", annotations={"mockube.dev/unknown-programs": "maybe"})
    assert [event.reason for event in subject.events if event.type == "Warning"] == ["InvalidAnnotation"]


def test_hostname_is_that_of_the_pod():
    subject = simulated("sh", "-c", "[ $(hostname) = $HOSTNAME ] && [ $HOSTNAME != localhost ]")
    assert ended(subject) == 0


def probed(*command):
    return container("c", image=IMAGE, readinessProbe={"exec": {"command": [*command]}, "periodSeconds": 5})


def probe_of(described, context, annotations):
    subject = SimulatedPod(pod(described, annotations=annotations), context=context).pass_time(60)
    failures = [event.message for event in subject.events if event.reason == "Unhealthy"]
    return subject.status["containerStatuses"][0]["ready"], failures


@pytest.mark.parametrize(("context", "annotations"), [(FAILING, None), (CONTEXT, FAIL)])
@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["check-health", "--all"], "mockube: check-health is not simulated\n"),
        (["/opt/check-health"], "mockube: /opt/check-health is not simulated\n"),
        (["sh", "-c", "check-health && true"], "sh: 1: check-health: not found\n"),
    ],
)
def test_probe_with_unknown_program_fails_if_flag_or_annotation_says_so(
    command, output, context, annotations
):
    failures = [f"Readiness probe failed: {output}"]
    assert probe_of(probed(*command), context, annotations) == (False, failures)
    assert probe_of(probed(*command), CONTEXT, None) == (True, [])


def test_probe_and_hook_with_unknown_program_have_a_warning():
    lifecycle = {
        "preStop": {"exec": {"command": ["/opt/stop"]}},
        "postStart": {"exec": {"command": ["true"]}},
    }
    described = {**probed("check-health", "--all"), "lifecycle": lifecycle}
    for context, end in ((CONTEXT, "succeeds"), (FAILING, "fails")):
        subject = SimulatedPod(pod(described), context=context)
        messages = {message for message, _ in not_simulated(subject) if "its" in message}
        assert messages == {
            f"check-health of the image example.com/app:1 is not simulated: its readinessProbe {end} without it",
            f"/opt/stop of the image example.com/app:1 is not simulated: its preStop {end} without it",
        }


def test_probe_of_file_that_the_image_may_have_does_not_fail():
    assert probe_of(probed("test", "-f", "/app/ready"), FAILING, None) == (True, [])


def test_probe_reads_files_of_a_command_whose_unknown_program_fails():
    script = "prepare || touch /tmp/failed; sleep 600"
    described = container(
        *("c", "sh", "-c", script),
        image=IMAGE,
        readinessProbe={"exec": {"command": ["test", "!", "-f", "/tmp/failed"]}, "periodSeconds": 5},
    )
    assert probe_of(described, FAILING, None) == (False, ["Readiness probe failed: "])


def test_hook_with_unknown_program_fails_if_flag_says_so():
    described = container("c", image=IMAGE, lifecycle={"postStart": {"exec": {"command": ["register"]}}})
    for context, fails in ((FAILING, True), (CONTEXT, False)):
        subject = SimulatedPod(pod(described), context=context).pass_time(5)
        reasons = [event.reason for event in subject.events]
        assert ("FailedPostStartHook" in reasons) is fails


@pytest.mark.parametrize(
    ("image", "script", "is_named"),
    [
        ("mysql:9", "sleep 1; exec mysqld --nonsense", False),
        ("mysql:9", "exec mysqld --max-connections=9", False),
        ("percona:8", "exec mysqld --max-connections=9", True),
        ("redis:8", "redis-server --nonsense & sleep inf", False),
        ("redis:8", 'exec /usr/local/bin/redis-server "$@"', False),
        ("redis:8", "exec redis-server --help", True),
        ("mysql:9", "exec mysqld", False),
        ("busybox", "exec httpd -f -p 80", False),
        ("hashicorp/http-echo", "exec http-echo -text=a", False),
    ],
)
def test_server_that_a_script_calls_is_assumed_only_if_its_options_are_not_listed(image, script, is_named):
    variable = {"name": "MYSQL_ROOT_PASSWORD", "value": "x"}
    described = container("c", "sh", "-c", script, image=image, env=[variable])
    subject = SimulatedPod(pod(described), context=CONTEXT).pass_time(60)
    assert bool(not_simulated(subject)) is is_named
    assert bool(assumption_of(subject.pod)) is is_named


SERVERS = (
    "haproxy:3.2",
    "haproxytech/haproxy-alpine:3.2",
    "envoyproxy/envoy:v1.34.0",
    "quay.io/keycloak/keycloak:26.0",
    "us-docker.pkg.dev/google-samples/containers/gke/gb-frontend:v5",
    "gcr.io/google_samples/gb-redisslave:v3",
)
"""Images of the table without logs and ports: their programs are known by name, and not simulated."""
BROKEN = References(config_maps={"m": {"data": {"haproxy.cfg": "defalts\n", "envoy.yaml": "foo: 1\n"}}})
FOLDERS = ("/usr/local/etc/haproxy", "/etc/envoy")


def server(image, policy="Always", **fields):
    mounts = [{"name": "v", "mountPath": path} for path in FOLDERS]
    subject = {**container(image=image, volumeMounts=mounts), **fields}
    volume = {"name": "v", "configMap": {"name": "m", "optional": True}}
    return pod(subject, volumes=[volume], restartPolicy=policy)


@pytest.mark.parametrize("fields", [{}, {"args": ["-f", FOLDERS[0]]}])
@pytest.mark.parametrize("image", SERVERS)
def test_server_of_known_image_that_is_not_simulated_is_ready_by_assumption(image, fields):
    subject = SimulatedPod(server(image, **fields), context=CONTEXT).pass_time(60)
    assert subject.ready
    end = "is not simulated: the container runs without it until it is stopped"
    assert assumption_of(subject.pod) == f"the image {image} {end}"


@pytest.mark.parametrize("fields", [{}, {"args": ["-f", FOLDERS[0]]}])
@pytest.mark.parametrize("image", SERVERS)
def test_log_of_server_that_is_not_simulated_claims_nothing(image, fields):
    tree = server(image, **fields)
    (subject,) = tree["spec"]["containers"]
    host = host_of(IMAGES, tree, subject, BROKEN, datetime(2030, 1, 1, tzinfo=UTC))
    effects = [*main_process(IMAGES, tree, subject, BROKEN, host)]
    log = b"".join(effect.data for effect in effects if isinstance(effect, Output)).decode()
    assert log == f"mockube: container c is simulated: the image {image} does not run\n"


@pytest.mark.parametrize("field", ["command", "args"])
@pytest.mark.parametrize("image", SERVERS)
def test_server_that_is_not_simulated_fails_with_a_command_if_unknown_programs_fail(image, field):
    tree = server(image, "Never", **{field: ["haproxy", "-f", FOLDERS[0]]})
    assert ended(SimulatedPod(tree, context=FAILING)) == 127
