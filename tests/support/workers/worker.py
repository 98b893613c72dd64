"""A worker: a fork of the process that collected the tests, which runs those that it is sent, and sends what they report."""

import contextlib
import io
import os
import resource
import signal
import traceback
import warnings
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, NoReturn

import pytest

from .schedule import Purpose, purpose_of

NICENESS = 19
TIMES_LONGER = 10
"""How much longer a test may take in the background."""


class Message(NamedTuple):
    """What a worker sends: the name of a hook with its arguments, or one of the three names below."""

    name: str
    arguments: dict[str, Any]


WANTS_TEST = "wants test"
"""The worker is to be sent the number of its next test, or None."""
RAN_TEST = "ran test"
"""A test has ended, with `reports`, and the worker wants another one; `seconds` are the processor time, with that of processes that it awaited."""
FAILED = "failed"
"""The worker itself ends with an error, whose traceback is `text`."""


def run_worker(
    session: pytest.Session,
    connection: Connection,
    number: int,
    purpose: Purpose,
    foreign: Iterable[Connection],
) -> NoReturn:
    """Run tests until there is none left. `foreign` are the connections of other workers, which end only if each copy is closed."""
    try:
        for other in foreign:
            other.close()
        _leave_terminal(session.config)
        _use_own_folder(session.config, number)
        if purpose is Purpose.BACKGROUND:
            _go_to_background(session)
        reporter = Reporter(session.config, connection)
        session.config.pluginmanager.register(reporter)
        reporter.has_begun = True
        try:
            run_tests(session, connection, reporter)
        finally:
            signal.signal(
                signal.SIGINT, signal.SIG_IGN
            )  # a second interrupt would leave fixtures that are set up
            session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001 - it is sent
        with contextlib.suppress(OSError):
            connection.send(Message(FAILED, {"text": traceback.format_exc()}))
    finally:
        # It never returns: nothing of the process that collected, such as its summary, may run twice.
        os._exit(0)


def run_tests(session: pytest.Session, connection: Connection, reporter: "Reporter") -> None:
    """A test is run when the next one is known, because fixtures that both use stay."""

    def next_test(message: Message) -> int | None:
        connection.send(message)
        number: int | None = connection.recv()
        return number

    got = [next_test(Message(WANTS_TEST, {})), next_test(Message(WANTS_TEST, {}))]
    # After None there may be a test again: one that another worker has left, which ended.
    while tests := [number for number in got if number is not None]:
        item, *following = (session.items[number] for number in tests)
        before = _processor_seconds()
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=next(iter(following), None))
        ran = {"seconds": _processor_seconds() - before, "reports": reporter.take_reports()}
        got = [*tests[1:], next_test(Message(RAN_TEST, ran))]


def _processor_seconds() -> float:
    own, awaited = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + awaited.ru_utime + awaited.ru_stime


class SilentTerminal:
    """Stands for the reporter of the terminal, whose hooks would take time; plugins ask it for its writer."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._tw = reporter._tw
        self._tw._file = io.StringIO()


def _leave_terminal(config: pytest.Config) -> None:
    """Print nothing, and capture what tests print into a file of its own."""
    if terminal := config.pluginmanager.unregister(name="terminalreporter"):
        config.pluginmanager.register(SilentTerminal(terminal), "terminalreporter")
    if capture := config.pluginmanager.getplugin("capturemanager"):
        capture.stop_global_capturing()
        capture.start_global_capturing()


def _use_own_folder(config: pytest.Config, number: int) -> None:
    factory: pytest.TempPathFactory = config._tmp_path_factory
    folder = factory.getbasetemp() / f"worker-{number}"
    folder.mkdir(mode=0o700)
    factory._basetemp = folder


def _go_to_background(session: pytest.Session) -> None:
    os.nice(NICENESS)
    usual = float(session.config.getini("timeout"))
    for item in session.items:
        if purpose_of(item.nodeid) is Purpose.BACKGROUND:
            limit = item.get_closest_marker("timeout")
            seconds = TIMES_LONGER * (limit.args[0] if limit else usual)
            item.add_marker(pytest.mark.timeout(seconds), append=False)


class Reporter:
    """A plugin that keeps the reports of a test until they are sent, and sends warnings."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self._reports: list[dict[str, Any]] = []
        self.has_begun = False
        """Whether tests run: the parent knows the warnings of before, of which a new plugin is notified."""

    def take_reports(self) -> list[dict[str, Any]]:
        taken, self._reports = self._reports, []
        return taken

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._reports.append(data)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        if not self.has_begun:
            return
        # A warning's own class may be one of the test's, which cannot be sent.
        plain = warnings.WarningMessage(
            str(warning_message.message), UserWarning, warning_message.filename, warning_message.lineno
        )
        arguments = {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location}
        self._connection.send(Message("pytest_warning_recorded", arguments))
