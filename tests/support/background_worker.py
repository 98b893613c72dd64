"""A worker of pytest-xdist with the lowest priority, for tests that need a processor and wait for nothing.

Tests that start processes wait much of their time, and fail when they wait too long for a processor: as many of them run at
once as there are processors. The worker in the background uses the time in which they wait.
"""

import os

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
NICENESS = 19
TIMES_LONGER = 10
"""How much longer a test may take in the background."""

_SETTING = "is_in_background"
_HAS_BACKGROUND = pytest.StashKey[bool]()
_FEWEST = 2
"""A worker begins a test when it knows the next one, or that there is none."""


def needs_processor_only(nodeid):
    return nodeid.startswith(FOLDERS) and not nodeid.startswith(WITH_LIMITS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Add the worker to those of `-n auto` if every folder is tested; otherwise it would only collect tests once more."""
    has_every_folder = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    is_configured = config.option.dist != "worksteal" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    if is_configured or not has_every_folder:
        return None
    config.stash[_HAS_BACKGROUND] = True
    has_affinity = hasattr(os, "sched_getaffinity")
    return 1 + (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    is_last = node.gateway.id == f"gw{len(node.config.option.tx) - 1}"
    node.workerinput[_SETTING] = is_last and node.config.stash.get(_HAS_BACKGROUND, False)


def pytest_collection_finish(session):
    """Lower the priority when the tests are collected, for which the other workers wait."""
    if not getattr(session.config, "workerinput", {}).get(_SETTING):
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
    return BackgroundScheduling(config, log) if config.stash.get(_HAS_BACKGROUND, False) else None


class BackgroundScheduling(WorkStealingScheduling):
    """Workers take half of another one's tests when they have no more; the one in the background never does."""

    def check_schedule(self):
        for node, queue in self.node2pending.items():
            if node.workerinput[_SETTING] and not node.shutting_down and len(queue) < _FEWEST:
                self._send_to_background(node)
        super().check_schedule()

    def _send_to_background(self, node):
        self.pending.sort(key=self._is_for_background, reverse=True)
        self._send_tests(node, sum(map(self._is_for_background, self.pending)))
        if len(self.node2pending[node]) < _FEWEST:
            node.shutdown()  # after its last test

    def _is_for_background(self, index):
        return needs_processor_only(self.collection[index])
