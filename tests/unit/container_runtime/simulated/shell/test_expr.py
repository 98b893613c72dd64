"""Results of the simulated `expr` command."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.posix_matches import STEPS_PER_COMMAND, SearchSteps
from mockube.container_runtime.simulated.shell.process import Host, Output
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem


def expr(words):
    host = Host(
        hostname="x", files=FileSystem(), now=lambda: datetime(2030, 1, 1, tzinfo=UTC), programs=PROGRAMS
    )
    running, written = run_command(host, ["expr", *words.split()], {}), ""
    while True:
        try:
            effect = next(running)
        except StopIteration as ended:
            return written, ended.value
        written += effect.data.decode() if isinstance(effect, Output) else ""


@pytest.mark.parametrize(
    ("words", "value", "code"),
    [
        ("1 + 2 * 3", "7", 0),
        ("( 1 + 2 ) * 3", "9", 0),
        ("10 - 2 - 3", "5", 0),
        ("-7 / 2", "-3", 0),
        ("-7 % 2", "-1", 0),
        ("4 % 2", "0", 1),
        ("10 > 9", "1", 0),
        ("a > b", "0", 1),
        ("a = a", "1", 0),
        ("1 != 01", "0", 1),
        ("0 | x", "x", 0),
        ("1 & 0", "0", 1),
        ("x", "x", 0),
    ],
)
def test_expr_values(words, value, code):
    assert expr(words) == (f"{value}\n", code)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "syntax error"),
        ("1 +", "syntax error"),
        ("1 2", "syntax error"),
        ("( 1", "syntax error"),
        ("a + 1", "non-integer argument"),
        (f"1{'0' * 30} + 1", "non-integer argument"),
        ("1 / 0", "division by zero"),
        (" ".join(["1"] + ["+ 1"] * 200), "syntax error"),
    ],
)
def test_invalid_expr_is_refused(words, problem):
    assert expr(words) == (f"expr: {problem}\n", 2)


def test_steps_of_searches_that_are_no_whole_command_count_later():
    steps = SearchSteps()
    counts = []
    for _ in range(5):
        steps.add(STEPS_PER_COMMAND // 2)
        counts.append(len([*steps.count()]))
    assert (counts, steps.total) == ([0, 1, 0, 1, 0], 5 * STEPS_PER_COMMAND // 2)
