"""Workers with a purpose get the tests for it, what fails is repeated alone, and a worker that ends is replaced."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.support.workers import worker
from tests.support.workers.schedule import Purpose, Schedule, purpose_of
from tools.packages import ROOT

OTHERS = [
    f"tests/cli/test_{module}.py::test_{number}" for module in ("up", "run", "lint") for number in range(3)
]
COMPUTING = [f"tests/property/test_patterns.py::test_{number}" for number in range(8)]
CONVERSATIONS = [f"tests/conformance/test_conversations.py::test_{number}" for number in range(4)]
TESTS = [*OTHERS[:3], *COMPUTING, *CONVERSATIONS, *OTHERS[3:]]
FIRST, SECOND, WAITING, BACKGROUND = range(4)
PURPOSES = {
    FIRST: Purpose.GENERAL,
    SECOND: Purpose.GENERAL,
    WAITING: Purpose.WAITING,
    BACKGROUND: Purpose.BACKGROUND,
}


class Run:
    def __init__(self, tests):
        self._tests = tests
        self.schedule = Schedule(enumerate(tests))

    def next_test(self, worker):
        number = self.schedule.next_test(worker, PURPOSES[worker])
        return None if number is None else self._tests[number]

    def next_tests(self, worker, count):
        return [self.next_test(worker) for _ in range(count)]

    def rest(self, worker):
        return [*iter(lambda: self.next_test(worker), None)]


def test_workers_get_the_tests_for_their_purpose():
    run = Run(TESTS)
    assert run.next_tests(BACKGROUND, 9) == [*COMPUTING, None]
    assert run.next_tests(WAITING, 4) == CONVERSATIONS
    assert run.rest(FIRST) == OTHERS


def test_workers_take_one_module_after_the_other():
    run = Run(TESTS)
    assert [run.next_test(FIRST), run.next_test(SECOND)] == [OTHERS[0], OTHERS[3]]
    assert run.next_tests(SECOND, 3) == OTHERS[4:7]
    assert run.next_tests(FIRST, 2) == OTHERS[1:3]


def test_worker_without_a_module_takes_half_of_the_longest():
    run = Run(TESTS)
    assert run.next_test(BACKGROUND) == COMPUTING[0]
    assert run.rest(FIRST)[len(OTHERS) :] == [*CONVERSATIONS, *COMPUTING[4:], *COMPUTING[2:4], COMPUTING[1]]
    assert run.next_test(BACKGROUND) is None


def test_worker_of_waiting_tests_takes_others_after_them():
    run = Run(TESTS)
    assert run.next_tests(WAITING, 5) == [*CONVERSATIONS, OTHERS[0]]


def test_worker_in_background_takes_no_other_tests():
    assert Run(OTHERS).next_test(BACKGROUND) is None


def test_others_run_what_an_ended_worker_did_not_begin():
    run = Run(OTHERS)
    assert run.next_test(FIRST) == OTHERS[0]
    begun, following = 0, run.schedule.next_test(FIRST, Purpose.GENERAL)
    assert begun != following
    run.schedule.remove_worker(FIRST, [following])
    assert run.rest(SECOND) == OTHERS[1:]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        pytest.param("tests/unit/apiserver/test_a.py::test_a", Purpose.BACKGROUND, id="unit test"),
        pytest.param(
            "tests/unit/apiserver/test_dangerous_mutants.py::test_a", Purpose.GENERAL, id="starts processes"
        ),
        pytest.param("tests/integration/test_a.py::test_a", Purpose.GENERAL, id="integration test"),
        pytest.param(
            "tests/conformance/test_conversations.py::test_a[api/crd]", Purpose.WAITING, id="mostly waits"
        ),
        pytest.param("tests/docs/test_pages.py::test_a[README.md]", Purpose.WAITING, id="page"),
        pytest.param(
            "tests/deploy/test_processes.py::test_killed_servers", Purpose.GENERAL, id="another test there"
        ),
    ],
)
def test_folder_or_module_decides(test, expected):
    assert purpose_of(test) == expected


@pytest.fixture
def run_tests(tmp_path):
    """Run a module of tests in two workers; return what pytest prints, without what depends on the machine."""

    def run(text, *arguments):
        (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
        (tmp_path / "test_some.py").write_text(f"import os, pathlib, warnings, pytest\n{text}")
        plugins = ("-p", "tests.support.workers.plugin", "-p", "no:randomly", "-p", "no:mockube")
        command = [sys.executable, "-m", "pytest", *plugins, "--workers=2", "-q", "-ra", *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    return run


class Answers:
    """The parent of a worker, which has a test or None for each message, and then None."""

    def __init__(self, *numbers):
        self._numbers = [*numbers]

    def send(self, message):
        self.last = message

    def recv(self):
        return self._numbers.pop(0) if self._numbers else None


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param((0, 1, 2), id="always a test"),
        pytest.param((None, 0, 1, 2), id="none at first"),
        pytest.param((0, None, 1, 2), id="one that another worker has left"),
        pytest.param((0, 1, None, 2), id="one left at the end"),
    ],
)
def test_worker_runs_each_test_that_it_gets(answers):
    ran = []

    def run(item, nextitem):
        ran.append(item)

    hook = SimpleNamespace(pytest_runtest_protocol=run)
    session = SimpleNamespace(items=["a", "b", "c"], config=SimpleNamespace(hook=hook))
    reporter = SimpleNamespace(take_reports=list)
    worker.run_tests(session, Answers(*answers), reporter)
    assert ran == ["a", "b", "c"]


FLAKY = """
def test_{name}():
    mark = pathlib.Path(__file__).with_name("{name}")
    if not mark.exists():
        mark.touch()
        raise ValueError("first time")
"""


@pytest.mark.thorough
def test_passed_skipped_and_failed_tests_are_counted(run_tests):
    code, printed = run_tests("""
@pytest.fixture
def clean():
    yield
    raise OSError("left behind")

@pytest.mark.parametrize("number", range(20))
def test_folder(number, tmp_path):
    assert not [*tmp_path.iterdir()]

def test_end(clean): pass
def test_failure(): print("a hint"); assert 1 == 2
def test_skipped(): pytest.skip("no browser")
def test_warning(): warnings.warn("with care")
""")
    assert code == 1
    assert printed.count("with care") == 2  # the warning, and its line
    assert "a hint" in printed
    for line in (
        ": no browser",
        "ERROR test_some.py::test_end - OSError: left behind",
        "FAILED test_some.py::test_failure - assert 1 == 2",
        "1 failed, 22 passed, 1 skipped, 1 warning, 1 error in",
    ):
        assert line in printed


@pytest.mark.thorough
def test_test_that_passes_alone_is_flaky(run_tests):
    code, printed = run_tests(FLAKY.format(name="race") + "def test_other(): pass")
    assert code == 0
    assert "first time" in printed
    assert "flaky: test_some.py::test_race\n1 passed, 1 flaky in" in printed


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("failures", "code", "ending"),
    [(2, 0, "1 passed, 1 flaky in"), (3, 1, "1 failed, 1 passed in")],
    ids=["passes the second time", "fails each time"],
)
def test_test_is_repeated_twice(run_tests, failures, code, ending):
    text = f"""
def test_race():
    runs = pathlib.Path("runs")
    runs.write_text("1" + (runs.read_text() if runs.exists() else ""))
    assert len(runs.read_text()) > {failures}

def test_other(): pass
"""
    ended, printed = run_tests(text)
    assert ended == code
    assert ending in printed


@pytest.mark.thorough
def test_failure_is_reported_where_nothing_is_kept(run_tests):
    code, printed = run_tests("def test_failure(): assert 1 == 2", "-p", "no:cacheprovider")
    assert code == 1
    assert "1 failed in" in printed


@pytest.mark.thorough
def test_more_than_three_flaky_tests_fail(run_tests):
    code, printed = run_tests("".join(FLAKY.format(name=f"race_{number}") for number in range(4)))
    assert code == 1
    assert "4 failed in" in printed


@pytest.mark.thorough
def test_test_that_ends_its_worker_fails(run_tests):
    code, printed = run_tests("def test_end(): os._exit(3)\n" + "def test_other(): pass\n")
    assert code == 1
    assert "the worker ended with 3 while it ran the test" in printed
    assert "1 failed, 1 passed in" in printed


@pytest.mark.thorough
def test_test_that_takes_too_long_fails(run_tests):
    code, printed = run_tests("@pytest.mark.timeout(0.1)\ndef test_long():\n    while True: pass\n")
    assert code == 1
    assert "Timeout (>0.1s) from pytest-timeout" in printed


@pytest.mark.thorough
def test_interrupted_run_reports_what_failed(run_tests):
    code, printed = run_tests(
        "def test_first(): assert 1 == 2\n"
        "def test_second():\n    import signal, time\n    os.kill(os.getppid(), signal.SIGINT)\n    time.sleep(60)\n",
        "--workers=1",  # one begins the second test when the result of the first is known
    )
    assert code == 2
    assert "FAILED test_some.py::test_first - assert 1 == 2" in printed


@pytest.mark.thorough
def test_tests_that_are_not_begun_in_time_are_counted(run_tests):
    code, printed = run_tests(
        "@pytest.mark.parametrize('n', range(9))\ndef test_some(n): pass\n", "--minutes=0"
    )
    assert code == 0
    assert "tests that were not begun in time: 9" in printed


@pytest.mark.thorough
def test_first_failure_ends_the_run_if_asked(run_tests):
    later = "".join(f"def test_{number}(): pass\n" for number in range(200))
    code, printed = run_tests(f"def test_first(): assert 0\n{later}", "-x")
    assert code == 1
    assert "stopping after 1 failures" in printed
    assert "200 passed" not in printed
