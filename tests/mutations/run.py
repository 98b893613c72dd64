"""Run the marked tests of each mutant in a forked process, after one collection: a mutant that no test notices survives."""

import gc
import os
import resource
import signal
from collections.abc import Iterable, Sequence

import msgspec
import pytest
from _pytest.runner import runtestprotocol
from msgspec import Struct

from .mutants import Mutant

MARKER = "kills"
CPU_SECONDS, SECONDS = 2, 60
"""A mutant whose tests take longer is dead: they repeat a write for ever, or wait for what does not happen any more."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What the tests of a mutant noticed: nothing, if it survived."""

    mutant: str
    test: str = ""
    problem: str = ""

    @property
    def is_killed(self) -> bool:
        return bool(self.problem)


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
        unchanged = _run_forked(Mutant("no mutant", lambda: None), [*needed.values()], is_limited=False)
        if unchanged.is_killed:
            self.problems.append(f"{unchanged.test} fails without a mutant: {unchanged.problem}")
            return True
        self.outcomes = [_run_forked(mutant, tests.get(mutant.name, ())) for mutant in self._mutants]
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


def _run_forked(mutant: Mutant, items: Sequence[pytest.Item], *, is_limited: bool = True) -> Outcome:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # It never returns: nothing of this process, such as pytest's report, may run twice.
        try:
            if is_limited:
                resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
                signal.alarm(SECONDS)
            os.write(writer, msgspec.json.encode(_run_here(mutant, items)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        return Outcome(mutant=mutant.name, problem="the tests did not come to their end")
    return msgspec.json.decode(data, type=Outcome)


def _run_here(mutant: Mutant, items: Sequence[pytest.Item]) -> Outcome:
    mutant.apply()
    for item in items:
        for report in runtestprotocol(item, log=False, nextitem=None):
            if report.failed:
                return Outcome(mutant=mutant.name, test=item.nodeid, problem=_problem(report))
    return Outcome(mutant=mutant.name)


def _problem(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(report.longrepr) if crash is None else crash.message
    return text.partition("\n")[0][:200] or "it failed"
