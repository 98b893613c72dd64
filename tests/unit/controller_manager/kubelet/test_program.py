"""A container's command determines its duration and exit code."""

import pytest

from mockube.controller_manager.kubelet.pod_lifecycle.program import KILLED, Program, program_of


def told(*argv, image="busybox"):
    return program_of({"image": image, "command": list(argv)})


@pytest.mark.parametrize(
    ("argv", "seconds", "code"),
    [
        pytest.param(["sleep", "30"], 30, 0, id="sleeps"),
        pytest.param(["/bin/sleep", "1.5m"], 90, 0, id="sleeps minutes, by its path"),
        pytest.param(["sleep", "1h", "30m"], 5400, 0, id="sleeps a sum"),
        pytest.param(["sleep", "infinity"], None, 0, id="sleeps for ever"),
        pytest.param(["sleep", "soon"], 0, 1, id="cannot sleep"),
        pytest.param(["sleep"], 0, 1, id="sleeps without a time"),
        pytest.param(["true"], 0, 0, id="true"),
        pytest.param(["false"], 0, 1, id="false"),
        pytest.param(["tail", "-f", "/dev/null"], None, 0, id="follows nothing"),
        pytest.param(["sh", "-c", "exit 3"], 0, 3, id="exits"),
        pytest.param(["/bin/sh", "-ec", "sleep 5; exit 1"], 5, 1, id="sleeps and exits"),
        pytest.param(["bash", "-c", "echo a && sleep 2 && false"], 2, 1, id="fails in the end"),
        pytest.param(["bash", "-c", "false || sleep 4"], 4, 0, id="sleeps after a failure"),
        pytest.param(["bash", "-c", "true || sleep 4"], 0, 0, id="does not have to sleep"),
        pytest.param(["sh", "-c", "sleep 1\nexit 2; sleep 9"], 1, 2, id="nothing after exit"),
        pytest.param(["sh", "-c", "sleep 1; sleep inf; false"], None, 0, id="nothing after for ever"),
        pytest.param(["sh", "-c", "while true; do date; sleep 1; done"], None, 0, id="a loop"),
        pytest.param(["sh", "-c", "echo 'a; exit 3'"], 0, 0, id="quotes"),
    ],
)
def test_simulated_commands_have_duration_and_exit_code(argv, seconds, code):
    program = told(*argv)
    assert (program.seconds, program.exit_code) == (seconds, code)


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(["nginx", "-g", "daemon off;"], id="a server"),
        pytest.param(["sh"], id="a shell without a script"),
        pytest.param(["sh", "-c", "make && true"], id="an unknown command in a script"),
        pytest.param(["sh", "-c", "echo 'a"], id="an open quotation"),
    ],
)
def test_unknown_commands_are_not_simulated(argv):
    assert told(*argv) is None


@pytest.mark.parametrize(
    ("image", "known"),
    [
        ("registry.k8s.io/pause:3.10", True),
        ("pause", True),
        ("registry.k8s.io/pause-amd64:3.1", True),
        ("nginx", False),
        ("example.com/unpause:1", False),
    ],
)
def test_pause_images_run_forever(image, known):
    assert (program_of({"image": image}) == Program(seconds=None, stop_code=KILLED)) is known


def test_arguments_without_command_are_the_command():
    assert program_of({"image": "busybox", "args": ["sleep", "7"]}).seconds == 7
