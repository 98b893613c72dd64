"""What a run of mutants reports: a kill by a test, a test that does not end, and a mutant that survives."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = """
import itertools, os, signal, time
import pytest
import subject

@pytest.mark.kills("fails", "loops")
def test_subject():
    for _ in itertools.count():
        if subject.ends:
            break
    assert subject.is_right

@pytest.mark.kills("stops itself")
def test_that_stops_a_process():
    if subject.stops:
        os.kill(0, signal.SIGSTOP)

@pytest.mark.kills("leaves a process")
def test_that_starts_a_process():
    if not subject.is_tidy and not os.fork():
        signal.pause()
    assert subject.is_tidy

def test_that_needs_time():
    end = time.process_time() + 1.1
    while time.process_time() < end:
        pass
"""
RUN = """
import sys
import pytest, subject
from tests.mutations import run
from tests.mutations.mutants import Mutant

run.CPU_SECONDS = 1

def change(name, value):
    return lambda: setattr(subject, name, value)

mutants = [
    Mutant("nothing", lambda: None), Mutant("fails", change("is_right", False)), Mutant("loops", change("ends", False)),
    Mutant("leaves a process", change("is_tidy", False)), Mutant("stops itself", change("stops", True)),
]
outcomes = []
subject_of_run = run.MarkedTests(mutants, [mutant.name for mutant in mutants], every_test=True)
mutation_run = run.MutationRun(subject_of_run, outcomes.append)
pytest.main(["-qq", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-p", "no:xdist", sys.argv[1]], plugins=[mutation_run])
assert not mutation_run.problems, mutation_run.problems
for each in outcomes:
    print(each.mutant, each.is_killed, each.has_ended, each.test.partition("::")[2])
"""


@pytest.mark.slow
def test_test_that_does_not_end_is_told_from_one_that_fails_and_from_slow_ones(tmp_path):
    """The last test needs more CPU time than that by which a fast one may be longer on a mutant."""
    (tmp_path / "subject.py").write_text("is_right = ends = is_tidy = True\nstops = False\n")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers = kills\nasyncio_default_fixture_loop_scope = function\n"
    )
    (tmp_path / "test_subject.py").write_text(TESTS)
    run = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.stdout.splitlines()[-5:] == [
        "nothing False True ",
        "fails True True test_subject",
        "loops True False test_subject",
        "leaves a process True True test_that_starts_a_process",
        "stops itself True False test_that_stops_a_process",
    ], run.stdout + run.stderr
