"""Two more workers of pytest-xdist than there are processors: one in the background, and one for tests that mostly wait.

Tests that start processes wait much of their time, and fail when they wait too long for a processor: as many of them run at
once as there are processors. The worker in the background has the lowest priority, and uses the time in which they wait: its tests
need a processor and wait for nothing. Tests that mostly wait need few of a processor's seconds: one of them runs beside the others.
The worker for these takes other tests when it has run them.
"""

import os
from itertools import groupby

import pytest
from xdist.scheduler import WorkStealingScheduling

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
NICENESS = 19
TIMES_LONGER = 10
"""How much longer a test may take in the background."""

BACKGROUND, WAITING, GENERAL = "background", "waiting", "general"
_PURPOSE = "purpose"
_HAS_PURPOSES = pytest.StashKey[bool]()
_FEWEST = 2
"""A worker begins a test when it knows the next one, or that there is none."""


def needs_processor_only(nodeid):
    return nodeid.startswith(FOLDERS) and not nodeid.startswith(WITH_LIMITS)


def purpose_of(nodeid):
    if needs_processor_only(nodeid):
        return BACKGROUND
    return WAITING if nodeid.startswith(MOSTLY_WAITING) else GENERAL


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Add the workers to those of `-n auto` if every folder is tested; otherwise they would only collect tests once more."""
    has_every_folder = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    is_configured = config.option.dist != "worksteal" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    if is_configured or not has_every_folder:
        return None
    config.stash[_HAS_PURPOSES] = True
    has_affinity = hasattr(os, "sched_getaffinity")
    return 2 + (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    workers = len(node.config.option.tx)
    last = {f"gw{workers - 1}": BACKGROUND, f"gw{workers - 2}": WAITING}
    has_purposes = node.config.stash.get(_HAS_PURPOSES, False)
    node.workerinput[_PURPOSE] = last.get(node.gateway.id, GENERAL) if has_purposes else GENERAL


def pytest_collection_finish(session):
    """Lower the priority when the tests are collected, for which the other workers wait."""
    if getattr(session.config, "workerinput", {}).get(_PURPOSE) != BACKGROUND:
        return
    os.nice(NICENESS)
    usual = float(session.config.getini("timeout"))
    for item in session.items:
        if needs_processor_only(item.nodeid):
            limit = item.get_closest_marker("timeout")
            seconds = TIMES_LONGER * (limit.args[0] if limit else usual)
            item.add_marker(pytest.mark.timeout(seconds), append=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return PurposeScheduling(config, log) if config.stash.get(_HAS_PURPOSES, False) else None


class PurposeScheduling(WorkStealingScheduling):
    """Workers with a purpose get the tests for it. The one in the background ends after them, and the other one becomes a general one.

    General ones take one module after the other, in the order of the collection, and at last half of another one's tests.
    """

    def check_schedule(self):
        for node in sorted(self.node2pending, key=lambda node: node.workerinput[_PURPOSE] == GENERAL):
            if node.shutting_down:
                continue
            if node.workerinput[_PURPOSE] == GENERAL:
                self._send_modules(node)
            elif len(self.node2pending[node]) < _FEWEST:
                self._send_tests_for_purpose(node)
        super().check_schedule()

    def _send_modules(self, node):
        while self.pending and len(self.node2pending[node]) < _FEWEST:
            _, tests = next(groupby(self.pending, key=self._module))
            self._send_tests(node, len([*tests]))

    def _module(self, index):
        return self.collection[index].partition("::")[0]

    def _send_tests_for_purpose(self, node):
        def is_for_it(index):
            return purpose_of(self.collection[index]) == node.workerinput[_PURPOSE]

        self.pending.sort(key=is_for_it, reverse=True)
        self._send_tests(node, sum(map(is_for_it, self.pending)))
        if len(self.node2pending[node]) >= _FEWEST:
            return
        if node.workerinput[_PURPOSE] == BACKGROUND:
            node.shutdown()  # after its last test
        else:
            node.workerinput[_PURPOSE] = GENERAL
            self._send_modules(node)
