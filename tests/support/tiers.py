"""Which tests `make test` runs, and which are for `make test-rest` and `make test-all`.

`make test` is what a contributor must know before a proposal: it takes minutes and needs Python only. It leaves out the modules of LONG, and
tests with the marker `release`, which install programs of others, compile their libraries or start a dozen clusters. A run that
names files or tests runs all of these. `make test-rest` runs what `make test` leaves out, those for a release last.
"""

import os

import pytest

MARKER = "release"
LONG = ()
"""Modules and folders whose tests need other programs, such as a browser, Go or kubectl, or take long."""
TIERS = ("test", "rest")


def pytest_addoption(parser):
    parser.addoption(
        "--tier", choices=TIERS, default="test", help="the tests of `make test`, or those that it leaves out"
    )


def pytest_collection_modifyitems(config, items):
    if os.environ.get("MOCKUBE_FULL_SIZE") or config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    is_rest = config.getoption("--tier") == "rest"
    chosen, others = [], []
    for item in items:
        (chosen if is_left_out(item) == is_rest else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = sorted(chosen, key=is_for_release)


def is_left_out(item):
    return is_for_release(item) or item.nodeid.startswith(LONG)


def is_for_release(item):
    return item.get_closest_marker(MARKER) is not None
