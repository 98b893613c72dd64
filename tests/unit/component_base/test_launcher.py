"""The launcher executes a command in its place, also for a container."""

import subprocess
import sys

import pytest

from mockube.component_base import launcher
from mockube.container_runtime.process import container_launcher


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "code"),
    [("/no/such/command", 127), ("/", 126), (__file__, 126)],
    ids=["none", "folder", "text"],
)
@pytest.mark.parametrize("run_command", [launcher.run_command, container_launcher.run_command])
def test_unstartable_command_has_shells_exit_code(command, code, run_command):
    ended = subprocess.run(run_command([command]), capture_output=True, check=False)
    assert ended.returncode == code
    assert command in ended.stderr.decode()


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="only the kernel of Linux has such a signal")
@pytest.mark.parametrize(
    ("call", "code"),
    [
        pytest.param("execute(['true'], 1)", 137, id="launcher"),
        pytest.param("die_with_parent(1)", 137, id="fork"),
        pytest.param("die_with_parent(1, 15)", 143, id="other signal"),
    ],
)
def test_process_whose_parent_has_died_already_ends(call, code):
    program = f"from mockube.component_base.launcher import *; {call}"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == code
