"""Containers, probes and hooks whose program the image does not have."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

PREFIX = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: "
)


def simulated(*containers, policy="Always", **fields):
    return SimulatedPod(pod(*containers, policy=policy, **fields), context=node_context(details=True))


def end_of(subject):
    status = subject.status["containerStatuses"][0]
    end = status["state"].get("terminated") or status["lastState"].get("terminated") or {}
    return end.get("reason"), end.get("exitCode"), end.get("message")


@pytest.mark.parametrize(
    ("image", "argv", "problem"),
    [
        ("busybox", ["slep", "3600"], 'exec: "slep": executable file not found in $PATH'),
        ("busybox:1.36", ["bash", "-c", "true"], 'exec: "bash": executable file not found in $PATH'),
        ("alpine:3.20", ["curl", "http://web"], 'exec: "curl": executable file not found in $PATH'),
        ("docker.io/library/debian:12", ["ping", "web"], 'exec: "ping": executable file not found in $PATH'),
        ("nginx:1.29-alpine", ["bash"], 'exec: "bash": executable file not found in $PATH'),
        ("python:3.12", ["python4", "-c", "1"], 'exec: "python4": executable file not found in $PATH'),
        ("busybox", ["/app/run"], 'exec: "/app/run": stat /app/run: no such file or directory'),
        ("busybox", ["/usr/bin/wge"], 'exec: "/usr/bin/wge": stat /usr/bin/wge: no such file or directory'),
        ("busybox", ["./run.sh"], 'exec: "./run.sh": stat ./run.sh: no such file or directory'),
        ("gcr.io/distroless/static", ["sh", "-c", "true"], 'exec: "sh": executable file not found in $PATH'),
        ("debian:12", ["/etc"], 'exec: "/etc": is a directory'),
        ("alpine:3", ["/etc/passwd"], 'exec: "/etc/passwd": permission denied'),
        ("hello-world", ["sh"], 'exec: "sh": executable file not found in $PATH'),
    ],
)
def test_program_that_the_image_does_not_have_is_a_start_error(image, argv, problem):
    subject = simulated(container("c", *argv, image=image), policy="Never")
    if problem:
        assert end_of(subject) == ("StartError", 128, PREFIX + problem)
        assert subject.status["phase"] == "Failed"
        assert f"Error: {PREFIX}{problem}" in [e.message for e in subject.events if e.reason == "Failed"]
    else:
        assert end_of(subject)[0] != "StartError"


def test_program_in_arguments_of_an_image_without_entrypoint_is_the_container_command():
    subject = simulated(container(image="busybox", args=["slep", "1d"]))
    assert subject.containers() == {"c": "RunContainerError"}
    assert end_of(subject)[:2] == ("StartError", 128)


@pytest.mark.parametrize(
    ("image", "argv"),
    [
        ("busybox", ["sleep", "3600"]),
        ("busybox", ["/bin/sh", "-c", "sleep 3600"]),
        ("nginx", ["curl-config"]),
        ("registry.example/team/nginx", ["slep"]),
        ("example.com/app:1", ["/app/run"]),
        ("nginx", ["nginx", "-g", "daemon off;"]),
        ("python:3.12", ["flask", "run"]),
        ("node:22", ["npm", "start"]),
    ],
)
def test_program_that_may_be_there_starts(image, argv):
    is_missing = argv == ["curl-config"]
    subject = simulated(container("c", *argv, image=image))
    assert subject.containers() == {"c": "RunContainerError" if is_missing else "running"}


@pytest.mark.parametrize(
    ("image", "argv", "phase"),
    [
        ("postgres:16", ["docker-entrypoint.sh", "postgres"], "Running"),
        ("redis:7-alpine", ["docker-entrypoint.sh", "redis-server"], "Running"),
        ("redis:7", ["docker-entrypoint.sh", "sleep", "1000"], "Running"),
        ("redis:7", ["/usr/local/bin/docker-entrypoint.sh", "sh", "-c", "exit 3"], "Failed"),
        ("redis:7-alpine", ["su-exec", "redis", "true"], "Succeeded"),
        ("node:20-slim", ["docker-entrypoint.sh", "true"], "Succeeded"),
        ("bash:5", ["docker-entrypoint.sh", "bash", "-c", "exit 3"], "Failed"),
        ("postgres:16-alpine", ["bash", "-c", "exit 3"], "Failed"),
        ("nats:2.10-alpine", ["sh", "-c", "exit 3"], "Failed"),
        ("perl:5", ["cpanm", "--version"], "Succeeded"),
        ("ghost:5", ["ghost", "version"], "Succeeded"),
    ],
)
def test_program_of_official_image_is_there(image, argv, phase):
    env = [{"name": "POSTGRES_PASSWORD", "value": "x"}]
    subject = simulated(container("c", *argv, image=image, env=env), policy="Never").pass_time(5)
    assert subject.status["phase"] == phase
    assert end_of(subject)[0] != "StartError"


def test_image_without_command_is_not_created():
    subject = simulated(container("c", image="gcr.io/distroless/static"))
    waiting = subject.status["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CreateContainerError"
    assert waiting["message"].endswith("spec: failed to generate spec: no command specified")
    assert (
        simulated(container("c", "/app", image="gcr.io/distroless/static")).containers()["c"]
        != waiting["reason"]
    )


def test_option_is_no_program_of_image_without_entrypoint():
    subject = simulated(container("c", args=["-c", "print(1)"], image="python:3.12"), policy="Never")
    assert end_of(subject)[2].endswith('exec: "-c": executable file not found in $PATH')


@pytest.mark.parametrize(
    ("image", "fields", "code"),
    [
        ("nginx", {"command": ["nginx"]}, 0),
        ("httpd", {"command": ["httpd"]}, 0),
        ("nginx", {"args": ["nope"]}, 127),
        ("nginx", {"args": ["sleep 1000"]}, 127),
        ("redis:7", {"args": ["nope"]}, 127),
    ],
)
def test_command_of_server_ends_in_background_or_without_program(image, fields, code):
    assert end_of(simulated(container("c", image=image, **fields)).pass_time(5))[:2] == (
        "Error" if code else "Completed",
        code,
    )


@pytest.mark.parametrize(
    ("image", "argv"),
    [("nats:2.10", ["sh"]), ("postgres:16", ["su-exec", "x"]), ("redis:7-alpine", ["bash"])],
)
def test_program_of_another_variant_is_not_there(image, argv):
    assert end_of(simulated(container("c", *argv, image=image), policy="Never"))[0] == "StartError"


def test_program_in_a_volume_may_be_there():
    mount = [{"name": "tools", "mountPath": "/tools"}]
    volumes = [{"name": "tools", "hostPath": {"path": "/opt"}}]
    for argv in (["/tools/run"], ["run"]):
        described = container("c", *argv, image="busybox", volumeMounts=mount)
        described["env"] = [{"name": "PATH", "value": "/tools:/bin"}]
        assert simulated(described, volumes=volumes).containers() == {"c": "running"}


@pytest.mark.parametrize(
    ("image", "script", "code"),
    [
        ("busybox", "wge -q http://web", 127),
        ("busybox", "curl http://web || exit 7", 7),
        ("nginx", "command -v curl && ! command -v ping", 0),
        ("debian:12", "which bash && ! which wget", 0),
        ("alpine", "echo a; bash -c true", 127),
    ],
)
def test_script_goes_on_without_a_program_that_the_image_does_not_have(image, script, code):
    subject = simulated(container("c", "sh", "-c", script, image=image), policy="Never")
    assert end_of(subject)[1] == code
    assert not [event for event in subject.events if event.reason == "NotSimulated"]


def test_script_of_annotation_runs_without_a_shell_in_the_image():
    annotations = {"mockube.dev/run": "sleep 60; slep"}
    subject = simulated(container("c", "slep", image="busybox"), annotations=annotations)
    assert subject.containers() == {"c": "running"}


def test_scripted_run_does_not_need_the_program():
    subject = simulated(container("c", "slep", image="busybox"), annotations={"mockube.dev/exit-after": "1h"})
    assert subject.containers() == {"c": "running"}


def probe(*command):
    return {"exec": {"command": [*command]}, "periodSeconds": 5}


def test_probe_of_a_program_that_the_image_does_not_have_has_no_result():
    described = container(
        image="nginx", readinessProbe=probe("grpc_health_probe"), livenessProbe=probe("/bin/healthz")
    )
    subject = simulated(described).pass_time(120)
    status = subject.status["containerStatuses"][0]
    assert (status["ready"], status["restartCount"]) == (False, 0), "an unknown result is thrown away"
    messages = [event.message for event in subject.events if event.reason == "Unhealthy"]
    unknown = "probe errored and resulted in unknown state: rpc error: code = Unknown desc = failed to exec in container: "
    assert [message.partition("failed to start")[0] for message in messages] == [
        f"Readiness {unknown}",
        f"Liveness {unknown}",
    ]
    assert [message.partition("OCI")[2] for message in messages] == [
        f" runtime exec failed: exec failed: unable to start container process: exec: {problem}"
        for problem in (
            '"grpc_health_probe": executable file not found in $PATH',
            '"/bin/healthz": stat /bin/healthz: no such file or directory',
        )
    ]


def test_probe_whose_script_lacks_a_program_fails():
    subject = simulated(
        container(image="nginx", readinessProbe=probe("sh", "-c", "pin localhost"))
    ).pass_time(60)
    messages = [event.message for event in subject.events if event.reason == "Unhealthy"]
    assert messages == ["Readiness probe failed: sh: 1: pin: not found\n"]


def test_hook_of_a_program_that_the_image_does_not_have_kills_the_container():
    lifecycle = {"postStart": {"exec": {"command": ["regster"]}}}
    subject = simulated(container(image="nginx", lifecycle=lifecycle)).pass_time(1)
    assert "FailedPostStartHook" in [event.reason for event in subject.events]


def test_program_that_was_copied_from_an_image_runs_without_being_simulated():
    mounts = [{"name": "v", "mountPath": "/shared"}]
    copy = container("copy", "cp", "-n", "/usr/local/bin/argocd", "/shared/dex", image="argoproj/argocd:v3", volumeMounts=mounts)  # fmt: skip
    subject = simulated(
        container("c", "/shared/dex", "run", image="dexidp/dex:v2", volumeMounts=mounts),
        initContainers=[copy],
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    assert subject.containers() == {"c": "running"}
    (event,) = [each for each in subject.events if each.reason == "NotSimulated"]
    assert event.message.startswith("/shared/dex of the image dexidp/dex:v2 is not simulated")
