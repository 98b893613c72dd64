"""Which tests a run of all folders runs: those of `make test`, or those that are left for `make test-rest`; `make test-all` runs all.

`make test` is what a contributor must know before a proposal: it takes minutes and needs Python only. It leaves out LONG. Neither of the
two runs tests with the marker `release`, which install programs of others, compile their libraries or start a dozen clusters. A run that
names files or tests runs all of these.
"""

import os

import pytest

MARKER = "release"
LONG = (
    "tests/clients/",
    "tests/conformance/test_conversations.py",
    "tests/conformance/test_sessions.py",
    "tests/deploy/",
    "tests/docs/test_pages.py",
    "tests/docs/test_pictures.py",
    "tests/examples/",
    "tests/packs/kruise/clients/",
)
"""Modules and folders whose tests need other programs, such as a browser, Go, kubectl or Docker, or take long."""
TIERS = ("test", "rest")


def pytest_addoption(parser):
    parser.addoption(
        "--tier", choices=TIERS, default="test", help="the tests of `make test`, or those of `make test-rest`"
    )


def pytest_collection_modifyitems(config, items):
    if os.environ.get("MOCKUBE_FULL_SIZE") or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    tier = config.getoption("--tier")
    chosen, others = [], []
    for item in items:
        (chosen if tier_of(item) == tier else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen


def tier_of(item):
    if item.get_closest_marker(MARKER) is not None:
        return None
    return "rest" if item.nodeid.startswith(LONG) else "test"
