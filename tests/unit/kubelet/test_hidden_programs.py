"""A volume that is mounted over the folder of a program hides it: the container does not start, or its script goes on without it."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

CONTEXT = node_context(details=True)
RUNC = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: error during container init: exec: "
)
SH = ("sh", "-c", "exit 3")


def ended(path, *command, image="busybox", volume=None, init=(), **fields):
    """Return the end of a container with a volume, which is empty unless another one is given."""
    mounts = [{"name": "v", "mountPath": path}]
    described = container("c", *command, image=image, volumeMounts=mounts, **fields)
    volumes = [{"name": "v", **(volume or {"emptyDir": {}})}]
    subject = SimulatedPod(
        pod(described, policy="Never", volumes=volumes, init=init), context=CONTEXT
    ).pass_time(60)
    state = subject.status["containerStatuses"][0]["state"]
    end = state.get("terminated") or {}
    return end.get("exitCode"), (end.get("message") or "").removeprefix(RUNC)


@pytest.mark.parametrize(
    ("image", "path", "command", "message"),
    [
        ("busybox", "/bin", SH, '"sh": executable file not found in $PATH'),
        ("busybox", "/bin/", ("/bin/sh", "-c", "true"), '"/bin/sh": stat /bin/sh: no such file or directory'),
        ("alpine:3.20", "/usr/bin", ("awk", "1"), '"awk": executable file not found in $PATH'),
        ("alpine:3.20", "/usr", ("awk", "1"), '"awk": executable file not found in $PATH'),
        ("debian:12", "/usr/bin", SH, '"sh": executable file not found in $PATH'),
        ("debian:12", "/bin", ("/usr/bin/sh",), '"/usr/bin/sh": stat /usr/bin/sh: no such file or directory'),
        ("debian:12", "/usr/sbin", ("useradd", "a"), '"useradd": executable file not found in $PATH'),
        (
            "python:3.12",
            "/usr/local/bin",
            ("python", "-c", "1"),
            '"python": executable file not found in $PATH',
        ),
        ("nginx:1.27", "/usr/sbin", ("nginx", "-v"), '"nginx": executable file not found in $PATH'),
        ("redis:8", "/usr/local/bin", (), '"docker-entrypoint.sh": executable file not found in $PATH'),
        ("example.com/app:1", "/opt", ("/opt/run",), '"/opt/run": stat /opt/run: no such file or directory'),
    ],
)
def test_container_whose_program_is_hidden_does_not_start(image, path, command, message):
    assert ended(path, *command, image=image) == (128, message)


@pytest.mark.parametrize(
    ("image", "path", "command", "code"),
    [
        ("busybox", "/usr/bin", SH, 3),
        ("alpine:3.20", "/usr/bin", SH, 3),
        ("debian:12", "/usr/sbin", SH, 3),
        ("debian:12", "/usr/local/bin", SH, 3),
        ("python:3.12", "/usr/local/bin", ("python3", "-c", "exit(3)"), 3),  # Debian's own is in /usr/bin.
        ("python:3.12", "/usr/local/bin", SH, 3),
        ("postgres:17", "/usr/local/bin", SH, 3),
    ],
)
def test_program_in_another_folder_runs(image, path, command, code):
    assert ended(path, *command, image=image)[0] == code


@pytest.mark.parametrize("command", ["awk 1", "/usr/bin/awk 1", "env awk 1", "exec awk 1", "a=aw; ${a}k 1"])
def test_script_goes_on_without_a_hidden_program(command):
    assert ended("/usr/bin", "sh", "-c", f"{command}; exit $?", image="alpine:3.20")[0] == 127


def test_program_that_a_container_puts_into_the_volume_is_there():
    mounts = [{"name": "v", "mountPath": "/work"}]
    copied = container("i", "cp", "/bin/busybox", "/work/sh", image="busybox", volumeMounts=mounts)
    assert ended("/bin", *SH, image="busybox", init=[copied])[0] == 3
    script = container(
        "i",
        "sh",
        "-c",
        "printf '#!/bin/sh\\nexit 4' > /work/run; chmod +x /work/run",
        image="busybox",
        volumeMounts=mounts,
    )
    assert ended("/opt", "/opt/run", image="busybox", init=[script])[0] == 4


def test_server_without_its_program_ends():
    assert ended("/usr/sbin", image="nginx:1.27") == (127, "")
    policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    assert (
        ended("/usr/sbin", image="nginx:1.27", **policy)[1]
        == "/docker-entrypoint.sh: exec: nginx: not found\n"
    )
    assert ended("/usr/local/sbin", image="nginx:1.27") == (None, "")
    maps = {"configMap": {"name": "m", "optional": True}}
    assert ended("/usr/sbin", image="nginx:1.27", volume=maps) == (None, "")


def test_probe_whose_program_is_hidden_fails():
    mounts = [{"name": "v", "mountPath": "/usr/bin"}]
    probe = {"exec": {"command": ["awk", "BEGIN {}"]}}
    described = container("c", "sleep", "inf", image="alpine:3.20", volumeMounts=mounts, readinessProbe=probe)
    volumes = [{"name": "v", "emptyDir": {}}]
    subject = SimulatedPod(pod(described, volumes=volumes), context=CONTEXT).pass_time(60)
    assert not subject.ready
    assert any('exec: "awk": executable file not found in $PATH' in each.message for each in subject.events)
