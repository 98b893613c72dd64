"""Windows, on which the command and the import of `Cluster` say what to do instead, and what Linux says of processes."""

import os
import subprocess
import sys

import pytest

from mockube.component_base.operating_system import (
    UnsupportedSystem,
    check_system,
    parse_process_stat,
    read_process_stat,
)

PRETEND_TO_BE_WINDOWS = """
import signal, subprocess, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty", "uvloop"):
    sys.modules[name] = None
for name in ("SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
    delattr(signal, name)
sys.platform = "win32"
"""


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_supported_systems_are_accepted(platform):
    check_system(platform)


def test_windows_is_refused_with_what_to_do():
    with pytest.raises(UnsupportedSystem, match="WSL 2"):
        check_system("win32")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "program",
    [
        pytest.param("from mockube.cli.main import main; sys.exit(main(['up']))", id="command"),
        pytest.param("from mockube import Cluster", id="library"),
    ],
)
def test_program_on_windows_ends_with_the_refusal(program):
    done = subprocess.run(
        [sys.executable, "-c", PRETEND_TO_BE_WINDOWS + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "WSL 2" in done.stderr.splitlines()[-1]


@pytest.mark.thorough
def test_cluster_starts_without_uvloop():
    program = "import sys; sys.modules['uvloop'] = None\nfrom mockube import Cluster\nwith Cluster(nodes=0): print('ready')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "ready\n"


def test_name_of_a_process_may_have_spaces_and_parentheses():
    numbers = " ".join(map(str, range(2, 53)))
    stat = parse_process_stat(f"7 (a) S 1 (b) S {numbers}\n")
    assert stat == (2, 12, 13, "20", 21, 22)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_stat_of_a_process_has_its_parent():
    assert read_process_stat(os.getpid()).parent == os.getppid()
