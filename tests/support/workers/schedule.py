"""Which worker runs which test next: one in the background, one for tests that mostly wait, and general ones.

Tests that start processes wait much of their time, and fail when they wait too long for a processor: as many of them run at
once as there are processors. The worker in the background has the lowest priority, and uses the time in which they wait: its tests
need a processor and wait for nothing. Tests that mostly wait need few of a processor's seconds: one of them runs beside the others.
The worker for these takes other tests when it has run them.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum, auto
from itertools import groupby

FOLDERS = (
    "tests/architecture/",
    "tests/fuzz/",
    "tests/property/",
    "tests/unit/apimachinery/",
    "tests/unit/apiserver/",
    "tests/unit/container_runtime/simulated/",
    "tests/unit/controller_manager/",
    "tests/unit/scheduler/",
)
"""Folders whose tests need a processor only."""
WITH_LIMITS = (
    "tests/property/test_store_machine.py",
    "tests/unit/apiserver/test_dangerous_mutants.py",
    "tests/unit/apiserver/tracing/test_exporter.py",
)
"""Modules in these folders whose processes and connections must not be short of time."""
MOSTLY_WAITING = (
    "tests/cli/test_test_operator.py",
    "tests/conformance/test_conversations.py",
    "tests/conformance/test_sessions.py",
    "tests/deploy/test_processes.py::test_standby_manager_leads_after_leader_is_killed",
    "tests/docs/test_pages.py",
)
"""Tests that wait for half of their time or longer, some with pauses that are recorded, and have much patience otherwise."""


class Purpose(Enum):
    GENERAL = auto()
    WAITING = auto()
    BACKGROUND = auto()


TAKES = {
    Purpose.GENERAL: (Purpose.GENERAL, Purpose.WAITING, Purpose.BACKGROUND),
    Purpose.WAITING: (Purpose.WAITING, Purpose.GENERAL, Purpose.BACKGROUND),
    Purpose.BACKGROUND: (Purpose.BACKGROUND,),
}
"""The tests that a worker takes, those for its purpose first."""


def purpose_of(nodeid: str) -> Purpose:
    if nodeid.startswith(FOLDERS) and not nodeid.startswith(WITH_LIMITS):
        return Purpose.BACKGROUND
    return Purpose.WAITING if nodeid.startswith(MOSTLY_WAITING) else Purpose.GENERAL


class Schedule:
    """A worker runs one module after the other, in the order of the collection, and at last half of another one's module.

    A test is its number in the collection and its id.
    """

    def __init__(self, tests: Iterable[tuple[int, str]]) -> None:
        self._modules: dict[Purpose, deque[deque[int]]] = {purpose: deque() for purpose in Purpose}
        self._tests: dict[int, deque[int]] = {}
        """The tests of the module that a worker runs, by the worker's number."""

        def module_and_purpose(numbered: tuple[int, str]) -> tuple[str, Purpose]:
            return numbered[1].partition("::")[0], purpose_of(numbered[1])

        for (_, purpose), module in groupby(tests, key=module_and_purpose):
            self._modules[purpose].append(deque(number for number, _ in module))

    def __len__(self) -> int:
        """Return the number of tests that no worker got."""
        modules = [*self._tests.values(), *(module for kind in self._modules.values() for module in kind)]
        return sum(map(len, modules))

    def next_test(self, worker: int, purpose: Purpose) -> int | None:
        """Return the test that the worker runs next; None if nothing is left for it."""
        tests = self._tests.get(worker)
        if not tests:
            tests = self._tests[worker] = self._next_module(purpose)
        return tests.popleft() if tests else None

    def remove_worker(self, worker: int, not_begun: Iterable[int]) -> None:
        """Leave to others what an ended worker had got and not begun, and the rest of its module."""
        if left := deque([*not_begun, *self._tests.pop(worker, ())]):
            self._modules[Purpose.GENERAL].appendleft(left)

    def _next_module(self, purpose: Purpose) -> deque[int]:
        for kind in TAKES[purpose]:
            if self._modules[kind]:
                return self._modules[kind].popleft()
        return deque() if purpose is Purpose.BACKGROUND else self._half_of_longest()

    def _half_of_longest(self) -> deque[int]:
        """Take the second half of the tests that another worker has left."""
        longest = max(self._tests.values(), key=len, default=deque())
        taken = [longest.pop() for _ in range((len(longest) + 1) // 2)]
        return deque(reversed(taken))
