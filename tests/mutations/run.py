"""Run the tests of each mutant in a forked process, after one collection: a mutant that no test notices survives."""

import gc
import math
import os
import resource
import signal
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

import msgspec
import pytest
from _pytest.runner import runtestprotocol
from msgspec import Struct

from .mutants import Mutant

MARKER = "kills"
CPU_SECONDS, SECONDS, TIMES_LONGER = 2, 20, 5
"""A test that takes so much longer on a mutant than without one does not end: it repeats a write for ever, or waits in vain."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What the tests of a mutant noticed: nothing, if it survived."""

    mutant: str
    test: str = ""
    """The test that failed, or that did not end."""
    problem: str = ""
    has_ended: bool = True
    is_killed: bool = False
    """Whether a test failed or did not end."""
    cpu_seconds: dict[str, float] = {}
    """What each test needed."""


class Work(NamedTuple):
    """A mutant and the tests that may notice it."""

    mutant: Mutant
    tests: Sequence[pytest.Item]
    limits: Mapping[str, float]
    """The CPU seconds that each test needs without a mutant."""


class Subject(Protocol):
    """What is changed: the server or another package."""

    def works(self, items: Sequence[pytest.Item], problems: list[str]) -> Sequence[Work]:
        """Return the mutants with their tests, which are some of the collected ones, and note why they prove nothing."""


class MutationRun:
    """A pytest plugin that runs mutants in place of the collected tests."""

    def __init__(self, subject: Subject, note: Callable[[Outcome], object]) -> None:
        self._subject = subject
        self._note = note
        self.problems: list[str] = []
        """Why the run proves nothing: tests that fail without a mutant, or marks that name no mutant."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        works = self._subject.works(session.items, self.problems)
        gc.collect()
        gc.freeze()
        killers = {}
        for work in works:
            outcome = run_forked(work)
            self._note(outcome)
            killers.update({item.nodeid: item for item in work.tests if item.nodeid == outcome.test})
        for killer in killers.values():
            if problem := run_forked(unchanged([killer])).problem:
                self.problems.append(f"{killer.nodeid} fails without a mutant: {problem}")
        return True


class MarkedTests:
    """Mutants of which each has tests that are marked with it. `every_test` tries all tests."""

    def __init__(self, mutants: Sequence[Mutant], known: Iterable[str], *, every_test: bool = False) -> None:
        self._mutants = mutants
        self._known = frozenset(known)
        self._every_test = every_test

    def works(self, items: Sequence[pytest.Item], problems: list[str]) -> Sequence[Work]:
        tests = self._tests_by_mutant(items, problems)
        needed = {item.nodeid: item for mutant in self._mutants for item in tests.get(mutant.name, ())}
        usual = run_forked(unchanged([*needed.values()]))
        if usual.problem:
            problems.append(f"{usual.test} fails without a mutant: {usual.problem}")
            return []
        return [Work(mutant, tests.get(mutant.name, ()), usual.cpu_seconds) for mutant in self._mutants]

    def _tests_by_mutant(
        self, items: Sequence[pytest.Item], problems: list[str]
    ) -> dict[str, Sequence[pytest.Item]]:
        if self._every_test:
            return {mutant.name: items for mutant in self._mutants}
        tests = defaultdict[str, list[pytest.Item]](list)
        for item in items:
            for mark in item.iter_markers(MARKER):
                for name in mark.args:
                    tests[name].append(item)
        problems += [f"no mutant is called {name!r}" for name in sorted(tests.keys() - self._known)]
        return {**tests}


def unchanged(tests: Sequence[pytest.Item]) -> Work:
    return Work(Mutant("no mutant", lambda: None), tests, {})


def run_forked(work: Work) -> Outcome:
    # Processes of a test that a mutant leaves behind would keep a pipe open.
    with tempfile.TemporaryFile() as file:
        child = os.fork()
        if child == 0:
            # It never returns: nothing of this process, such as pytest's report, may run twice.
            try:
                os.setpgid(0, 0)
                _run_here(work, file.fileno())
            except BaseException:  # noqa: BLE001 - it is printed
                traceback.print_exc()
            finally:
                os._exit(0)
        # A mutant may stop itself, and then gets no signal of a limit.
        _, status = os.waitpid(child, os.WUNTRACED)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if os.WIFSTOPPED(status):
            os.waitpid(child, 0)
        file.seek(0)
        lines = file.read().splitlines()
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in lines]
    if outcomes and outcomes[-1].has_ended:
        return outcomes[-1]
    test = outcomes[-1].test if outcomes else ""
    problem = "the test did not come to its end" if test else "the mutant could not be made"
    return Outcome(mutant=work.mutant.name, test=test, problem=problem, has_ended=False, is_killed=bool(test))


def _run_here(work: Work, writer: int) -> None:
    """Write a line for each test that begins, so that the parent knows the one that does not end, and one at the end."""

    def report(outcome: Outcome) -> None:
        os.write(writer, msgspec.json.encode(outcome) + b"\n")

    name = work.mutant.name
    work.mutant.apply()
    cpu_seconds: dict[str, float] = {}
    for item in work.tests:
        report(Outcome(mutant=name, test=item.nodeid, has_ended=False))
        began = time.process_time()
        if item.nodeid in work.limits:
            _limit(work.limits[item.nodeid])
        for result in runtestprotocol(item, log=False, nextitem=None):
            if result.failed:
                problem = _problem(result)
                report(Outcome(mutant=name, test=item.nodeid, problem=problem, is_killed=True))
                return
        cpu_seconds[item.nodeid] = time.process_time() - began
    report(Outcome(mutant=name, cpu_seconds=cpu_seconds))


def _limit(usual_seconds: float) -> None:
    """End this process if the next test takes much longer than it usually does."""
    seconds = CPU_SECONDS + TIMES_LONGER * usual_seconds
    end = math.ceil(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
    signal.alarm(SECONDS + math.ceil(seconds))


def _problem(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else crash.message
    return text.partition("\n")[0][:200] or "it failed"
