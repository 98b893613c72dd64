"""The unit tests notice the most dangerous mistakes in the write and in the filters; `tests/mutations` has all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SECONDS = 100


@pytest.mark.thorough
def test_unit_tests_kill_dangerous_mutants():
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutations", "--package", "server", "--dangerous"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
