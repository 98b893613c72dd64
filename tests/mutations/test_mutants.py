"""Every mutant is killed by a unit test that is marked with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutations.mutants import DANGEROUS, EQUIVALENT, MUTANTS

ROOT = Path(__file__).parents[2]
SECONDS = 240


def test_tables_name_mutants():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    assert {*EQUIVALENT, *DANGEROUS} <= set(names)
    assert not DANGEROUS & EQUIVALENT.keys()


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
def test_unit_tests_kill_every_mutant():
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutations"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
