"""A preimported program waits for a command before it runs."""

import os
import subprocess
import sys

import pytest

from mockube.processes.control_plane import preimport_command
from mockube.processes.preimport import START
from tools.packages import ROOT

PROGRAM = """
import os, sys, threading
print("imported", os.getpriority(os.PRIO_PROCESS, 0), flush=True)
def main(arguments):
    print(*arguments, os.getpriority(os.PRIO_PROCESS, 0), threading.current_thread().name)
    return 7
"""


@pytest.mark.parametrize(
    ("command", "code", "printed"),
    [
        pytest.param(START, 7, ["imported {nice}", "--v 4 {nice} MainThread"], id="go"),
        pytest.param(b"", 0, ["imported {nice}"], id="stdin closed"),
    ],
)
def test_preimported_program_runs_on_command(tmp_path, command, code, printed):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text(PROGRAM)
    answer = subprocess.run(
        preimport_command([sys.executable, "-P"], "program", ["--v", "4"]),
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        input=command,
        capture_output=True,
        check=False,
    )
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    assert answer.stdout.decode().splitlines() == [line.format(nice=nice) for line in printed]
    assert answer.returncode == code


def test_failed_import_ends_program_with_traceback(tmp_path):
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text("1 / 0")
    answer = subprocess.run(
        preimport_command([sys.executable, "-P"], "program", []),
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    log = answer.stderr.decode()
    assert answer.returncode == 1
    assert "Traceback (most recent call last)" in log
    assert log.endswith("ZeroDivisionError: division by zero\n")
