"""Which tests a run runs: those of `make check`, of `make test`, or those that are left for `make test-rest`; `make test-all` runs all.

`make check` is what to run before each commit: the unit tests and those of the contract of run-times, less those with the marker
`thorough`, which start processes or whole clusters, search many cases or need large inputs, and those with an etcd. `make test` is what a contributor must
know before a proposal: it takes minutes and needs Python only. It leaves out OF_REST, and tests with the marker `timed`, which measure
the processor's time: what they find depends on the machine, too. None of these runs tests with the marker `release`,
which install programs of others, compile their libraries or start a dozen clusters. A run without a tier that names files or tests runs all of these.
"""

import os
import re

import pytest

RELEASE = "release"
TIMED = "timed"
THOROUGH = ("thorough", "etcd")
"""Markers of unit tests that `make check` leaves out."""
UNIT = re.compile(r"tests/(unit|(packs|extras)/[^/]+/unit|contract/container_runtime)/")
"""What begins the name of a unit test."""
OF_REST = (
    # Other programs: a browser, Docker, Go, Java, helm, kubectl, wheels, and the commands of the guides.
    "tests/clients/",
    "tests/deploy/",
    "tests/docs/test_packs.py",
    "tests/docs/test_programs.py",
    "tests/docs/test_pages.py",
    "tests/docs/test_pictures.py",
    "tests/examples/",
    "tests/packs/kruise/clients/",
    # Whole clusters, most of them in processes of their own, and conversations with them in real time.
    "tests/cli/",
    "tests/conformance/test_conversations.py",
    "tests/conformance/test_sessions.py",
    "tests/conformance/test_trails.py",
    "tests/embedded/",
    "tests/integration/test_manager_process.py",
    "tests/integration/test_process.py",
    "tests/integration/test_process_tasks.py",
    "tests/packs/kruise/integration/",
    # Every write with a fault, memory, and costs that must grow with the size of the input only.
    "tests/fuzz/",
    "tests/integration/test_api_memory.py",
    "tests/integration/test_cluster_disturbed.py",
    "tests/integration/test_event_loop.py",
    "tests/integration/test_process_memory.py",
    "tests/integration/test_workloads_disturbed.py",
    "tests/property/test_linear_",
    "tests/property/test_long_shell_work.py",
    "tests/property/test_patterns.py",
)
"""Beginnings of the names of tests that need other programs, or that take long and fail seldom alone."""
OF_TEST = (
    "tests/cli/test_command.py",
    "tests/embedded/test_calls.py",
    "tests/embedded/test_cluster.py",
    "tests/embedded/test_exec.py",
    "tests/embedded/test_object_methods.py",
)
"""Tests of whole clusters that `make test` runs nevertheless."""
_HAS_TIMED = b"pytest.mark.timed"
TIERS = {"check": {"check"}, "test": {"check", "test"}, "rest": {"rest"}}
"""The tests that a run runs, by its tier: each test has one."""


def pytest_addoption(parser):
    parser.addoption(
        "--tier", choices=[*TIERS], help="the tests of `make check`, `make test` or `make test-rest`"
    )


def pytest_ignore_collect(collection_path, config):
    """Leave out modules of which the run runs nothing: `make test-rest` would import those of 38,000 other tests."""
    tier = _tier(config)
    if tier is None or collection_path.suffix != ".py":
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    if tier == "rest":
        return None if is_of_rest(name) or _HAS_TIMED in collection_path.read_bytes() else True
    return True if is_of_rest(name) else None


def pytest_collection_modifyitems(config, items):
    if (tier := _tier(config)) is None:
        return
    chosen, others = [], []
    for item in items:
        (chosen if tier_of(item) in TIERS[tier] else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen


def _tier(config):
    """Return the tier whose tests are run, or None if all that are named are."""
    names_tests = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    tier = config.getoption("--tier") or (None if names_tests else "test")
    return None if os.environ.get("MOCKUBE_FULL_SIZE") else tier


def is_of_rest(name):
    return name.startswith(OF_REST) and not name.startswith(OF_TEST)


def tier_of(item):
    if item.get_closest_marker(RELEASE):
        return None
    if is_of_rest(item.nodeid) or item.get_closest_marker(TIMED):
        return "rest"
    is_thorough = any(map(item.get_closest_marker, THOROUGH))
    return "check" if UNIT.match(item.nodeid) and not is_thorough else "test"
