"""Run the marked tests of each mutant in a forked process, after one collection: a mutant that no test notices survives."""

import gc
import math
import os
import resource
import signal
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pytest
from _pytest.runner import runtestprotocol
from msgspec import Struct

from .mutants import Mutant

MARKER = "kills"
CPU_SECONDS, SECONDS, TIMES_LONGER = 2, 60, 5
"""A test that takes so much longer on a mutant than without one does not end: it repeats a write for ever, or waits in vain."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What the tests of a mutant noticed: nothing, if it survived."""

    mutant: str
    test: str = ""
    """The test that failed, or that did not end."""
    problem: str = ""
    has_ended: bool = True
    is_killed: bool = False
    """Whether a test failed, or a test that is marked with the mutant did not end."""
    cpu_seconds: dict[str, float] = {}
    """What each test needed."""


class MutationRun:
    """A pytest plugin that runs mutants in place of the collected tests. `every_test` runs all tests, not only the marked ones."""

    def __init__(self, mutants: Sequence[Mutant], known: Iterable[str], *, every_test: bool = False) -> None:
        self._mutants = mutants
        self._known = frozenset(known)
        self._every_test = every_test
        self.outcomes: list[Outcome] = []
        self.problems: list[str] = []
        """Why the run proves nothing: tests that fail without a mutant, or marks that name no mutant."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tests = self._tests_by_mutant(session.items)
        needed = {item.nodeid: item for mutant in self._mutants for item in tests.get(mutant.name, ())}
        gc.collect()
        gc.freeze()
        unchanged = _run_forked(Mutant("no mutant", lambda: None), [*needed.values()])
        if unchanged.problem:
            self.problems.append(f"{unchanged.test} fails without a mutant: {unchanged.problem}")
            return True
        self.outcomes = [
            _run_forked(mutant, tests.get(mutant.name, ()), limits=unchanged.cpu_seconds)
            for mutant in self._mutants
        ]
        return True

    def _tests_by_mutant(self, items: Sequence[pytest.Item]) -> dict[str, list[pytest.Item]]:
        if self._every_test:
            return {mutant.name: list(items) for mutant in self._mutants}
        tests: dict[str, list[pytest.Item]] = {}
        for item in items:
            for mark in item.iter_markers(MARKER):
                for name in mark.args:
                    tests.setdefault(name, []).append(item)
        self.problems += [f"no mutant is called {name!r}" for name in sorted(tests.keys() - self._known)]
        return tests


def _run_forked(
    mutant: Mutant, items: Sequence[pytest.Item], *, limits: Mapping[str, float] | None = None
) -> Outcome:
    """Run tests on a mutant. `limits` are the CPU seconds that each test needs without one."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # It never returns: nothing of this process, such as pytest's report, may run twice.
        try:
            _run_here(mutant, items, writer, limits)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        lines = pipe.read().splitlines()
    os.waitpid(child, 0)
    outcomes = [msgspec.json.decode(line, type=Outcome) for line in lines]
    if outcomes and outcomes[-1].has_ended:
        return outcomes[-1]
    running = outcomes[-1].test if outcomes else ""
    marked = {item.nodeid for item in items if _is_marked(item, mutant)}
    return Outcome(
        mutant=mutant.name,
        test=running,
        problem="the test did not come to its end",
        has_ended=False,
        is_killed=running in marked,
    )


def _is_marked(item: pytest.Item, mutant: Mutant) -> bool:
    return any(mutant.name in mark.args for mark in item.iter_markers(MARKER))


def _run_here(
    mutant: Mutant, items: Sequence[pytest.Item], writer: int, limits: Mapping[str, float] | None
) -> None:
    """Write a line for each test that begins, so that the parent knows the one that does not end, and one at the end."""

    def report(outcome: Outcome) -> None:
        os.write(writer, msgspec.json.encode(outcome) + b"\n")

    mutant.apply()
    cpu_seconds: dict[str, float] = {}
    for item in items:
        report(Outcome(mutant=mutant.name, test=item.nodeid, has_ended=False))
        began = time.process_time()
        if limits is not None:
            _limit(limits[item.nodeid])
        for result in runtestprotocol(item, log=False, nextitem=None):
            if result.failed:
                problem = _problem(result)
                report(Outcome(mutant=mutant.name, test=item.nodeid, problem=problem, is_killed=True))
                return
        cpu_seconds[item.nodeid] = time.process_time() - began
    report(Outcome(mutant=mutant.name, cpu_seconds=cpu_seconds))


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
