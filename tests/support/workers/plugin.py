"""Run tests in forked workers (`--workers`), and repeat at the end, alone and at most twice, those that failed.

The tests are collected once, and everything is imported once: a worker is a fork, which begins at once and shares the memory.
A test that fails beside the others and passes alone is flaky: its name is printed at the end and written to a file. A run
with few flaky tests passes, unless one of them was flaky in the run before, too: such a test is to be mended.
"""

import math
import os
import signal
from collections import deque
from collections.abc import Collection, Iterable
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from mockube.component_base.clock import RealClock

from . import worker as messages
from .schedule import Purpose, Schedule
from .worker import Message, run_worker

AT_MOST_FLAKY = 3
"""The number of flaky tests with which a run passes."""
AT_MOST_REPEATED = 12
"""The number of failed tests that are repeated: more of them do not fail by chance."""
REPETITIONS = 2
"""How often a test that failed is repeated before it has failed: machines are slow for seconds, too."""
FLAKY = "flaky"
FLAKY_FILE = "MOCKUBE_FLAKY_TESTS"
"""The variable that names the file with the flaky tests of the last run."""
COSTS = "costs.json"
CLOCK = RealClock()

Reports = list[pytest.TestReport]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers",
        metavar="N",
        help="run tests in N forked workers; auto: one for each processor, and two more if all tests are run",
    )
    parser.addoption(
        "--minutes",
        type=float,
        default=math.inf,
        help="begin no test later; those that were not begun are counted",
    )


def pytest_configure(config: pytest.Config) -> None:
    if (workers := config.getoption("--workers")) and not config.option.usepdb:
        config.pluginmanager.register(Workers(config, _purposes(config, workers)), "workers")


def runs_every_folder(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS


def _purposes(config: pytest.Config, workers: str) -> list[Purpose]:
    if workers != "auto":
        if not workers.isdecimal() or int(workers) < 1:
            raise pytest.UsageError(f"--workers is a number of processes, or auto: {workers}")
        return [Purpose.GENERAL] * int(workers)
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    others = [Purpose.WAITING, Purpose.BACKGROUND] if runs_every_folder(config) else []
    return [Purpose.GENERAL] * processors + others


class Worker(msgspec.Struct, frozen=True):
    """What the parent knows of a worker."""

    number: int
    pid: int
    connection: Connection
    purpose: Purpose
    tests: deque[int]
    """The tests that it got and has not ended; the first one runs."""


class Workers:
    """The plugin."""

    def __init__(self, config: pytest.Config, purposes: list[Purpose]) -> None:
        self._config = config
        self._purposes = purposes
        self._workers: dict[Connection, Worker] = {}
        self._started = 0
        self._failed: dict[int, Reports] = {}
        """The tests that failed and will be repeated, of which pytest does not yet know."""
        self._repetitions = 0
        self._flaky: dict[int, Reports] = {}
        """The failures of the tests that passed when they were repeated."""
        self._costs: dict[str, float] = {}
        self._deadline = CLOCK.monotonic() + 60 * config.getoption("--minutes")
        self._not_begun = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or self._config.option.collectonly:
            return None
        if terminal := self._config.pluginmanager.getplugin("terminalreporter"):
            terminal.showfspath = False  # tests of several modules run at once
        try:
            self._run_tests(session, range(len(session.items)), self._purposes)
        except BaseException:
            self._report_failed()  # an interrupt: they will not be repeated
            raise
        else:
            self._repeat_failed(session)
        finally:
            self._kill_workers()
        self._write_costs()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        return (FLAKY, "f", "FLAKY") if getattr(report, "is_flaky", False) else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        flaky = terminalreporter.stats.get(FLAKY, ())
        for report in flaky:
            terminalreporter.write_sep("_", f"{report.nodeid} failed, and passed alone", yellow=True)
            report.toterminal(terminalreporter._tw)
        for nodeid in dict.fromkeys(report.nodeid for report in flaky):
            terminalreporter.write_line(f"flaky: {nodeid}")
        if self._not_begun:
            terminalreporter.write_line(f"tests that were not begun in time: {self._not_begun}")

    def _run_tests(self, session: pytest.Session, tests: Iterable[int], purposes: list[Purpose]) -> None:
        schedule = Schedule((number, session.items[number].nodeid) for number in tests)
        for purpose in purposes:
            self._start_worker(session, purpose)
        while self._workers:
            for connection in wait([*self._workers]):
                worker = self._workers[connection]
                if (message := _received(worker.connection)) is None:
                    self._handle_end(session, schedule, worker)
                else:
                    self._handle_message(session, schedule, worker, message)
        self._not_begun += len(schedule)

    def _start_worker(self, session: pytest.Session, purpose: Purpose) -> None:
        session.config._tmp_path_factory.getbasetemp()
        here, there = Pipe()
        self._started += 1
        pid = os.fork()
        if pid == 0:
            run_worker(session, there, self._started, purpose, [here, *self._workers])
        there.close()
        self._workers[here] = Worker(self._started, pid, here, purpose, deque())

    def _handle_message(
        self, session: pytest.Session, schedule: Schedule, worker: Worker, message: Message
    ) -> None:
        arguments = message.arguments
        match message.name:
            case messages.WANTS_TEST:
                self._send_test(session, schedule, worker)
            case messages.RAN_TEST:
                self._costs[session.items[worker.tests[0]].nodeid] = arguments["seconds"]
                self._note_result(worker, [*map(self._read_report, arguments["reports"])])
                self._send_test(session, schedule, worker)
            case messages.FAILED:
                self._note_result(worker, [_failure(session.items[worker.tests[0]], arguments["text"])])
            case "pytest_warning_recorded":
                self._config.hook.pytest_warning_recorded.call_historic(kwargs=arguments)

    def _send_test(self, session: pytest.Session, schedule: Schedule, worker: Worker) -> None:
        is_over = session.shouldfail or session.shouldstop or CLOCK.monotonic() > self._deadline
        number = None if is_over else schedule.next_test(worker.number, worker.purpose)
        if number is not None:
            worker.tests.append(number)
        worker.connection.send(number)

    def _read_report(self, data: dict[str, Any]) -> pytest.TestReport:
        report: pytest.TestReport = self._config.hook.pytest_report_from_serializable(
            config=self._config, data=data
        )
        return report

    def _handle_end(self, session: pytest.Session, schedule: Schedule, worker: Worker) -> None:
        """Replace a worker that ended while it ran a test, which has failed."""
        _, status = os.waitpid(worker.pid, 0)
        worker.connection.close()
        del self._workers[worker.connection]
        if worker.tests and not (session.shouldfail or session.shouldstop):
            ended = f"the worker ended with {os.waitstatus_to_exitcode(status)} while it ran the test"
            self._note_result(worker, [_failure(session.items[worker.tests[0]], ended)])
            schedule.remove_worker(worker.number, worker.tests)
            self._start_worker(session, worker.purpose)

    def _note_result(self, worker: Worker, reports: Reports) -> None:
        """Tell pytest the reports of the test that has ended, unless it will be repeated."""
        number = worker.tests.popleft()
        has_failed = any(report.failed for report in reports)
        if number in self._failed and not has_failed:
            self._flaky[number] = self._failed.pop(number)
        elif has_failed and self._repetitions < REPETITIONS and self._may_repeat:
            self._failed[number] = reports
        else:
            self._report(reports)

    @property
    def _may_repeat(self) -> bool:
        return len(self._failed) <= AT_MOST_REPEATED and not self._config.getvalue("maxfail")

    def _report(self, reports: Reports) -> None:
        hook, of_test = self._config.hook, {"nodeid": reports[0].nodeid, "location": reports[0].location}
        hook.pytest_runtest_logstart(**of_test)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(**of_test)

    def _report_failed(self) -> None:
        for reports in self._failed.values():
            self._report(reports)

    def _repeat_failed(self, session: pytest.Session) -> None:
        if not self._may_repeat or session.shouldstop:
            self._report_failed()
            return
        self._deadline = math.inf
        while self._failed and self._repetitions < REPETITIONS and not session.shouldstop:
            self._repetitions += 1
            self._run_tests(session, sorted(self._failed), [Purpose.GENERAL])
        if self._repetitions < REPETITIONS:
            self._report_failed()
        names = {session.items[number].nodeid for number in self._flaky}
        is_allowed = len(names) <= AT_MOST_FLAKY and not names & self._replace_last_flaky(names)
        for reports in self._flaky.values():
            for report in reports:
                if report.failed and is_allowed:
                    report.outcome = "passed"
                    report.is_flaky = True
            self._report(reports)

    @property
    def _cache(self) -> pytest.Cache | None:
        """None with `-p no:cacheprovider`."""
        return getattr(self._config, "cache", None)

    def _replace_last_flaky(self, names: Collection[str]) -> set[str]:
        """Return the flaky tests of the last run of all tests, and note those of this one."""
        cache = self._cache
        if cache is None or not runs_every_folder(self._config):
            return set()
        file = Path(os.environ.get(FLAKY_FILE) or cache.mkdir("workers") / "flaky")
        last = set(file.read_text().splitlines()) if file.exists() else set()
        file.write_text("".join(f"{name}\n" for name in sorted(names)))
        return last

    def _write_costs(self) -> None:
        """Note the processor seconds of each test: `make slow` prints the most expensive ones."""
        if self._cache is not None:
            file = self._cache.mkdir("workers") / COSTS
            known = orjson.loads(file.read_bytes()) if file.exists() else {}
            file.write_bytes(orjson.dumps({**known, **self._costs}))

    def _kill_workers(self) -> None:
        """End the workers of a run that was interrupted, or that has an error of its own."""
        for worker in self._workers.values():
            worker.connection.close()
            os.kill(worker.pid, signal.SIGINT)
        for worker in self._workers.values():
            os.waitpid(worker.pid, 0)
        self._workers.clear()


def _received(connection: Connection) -> Message | None:
    """Return a message, or None if the worker has ended."""
    try:
        message: Message = connection.recv()
    except (EOFError, ConnectionResetError):
        return None
    return message


def _failure(item: pytest.Item, text: str) -> pytest.TestReport:
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
