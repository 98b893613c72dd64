"""The launcher executes a command in its place, also for a container."""

import subprocess

import pytest

from mockube.component_base import launcher
from mockube.container_runtime.process import container_launcher


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
