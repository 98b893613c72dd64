"""What every test has: how hard hypothesis tries, and every implementation of the KV contract.

HYPOTHESIS_PROFILE chooses how hard: `dev`, which `make check` uses, is quick, `ci` has three times as many cases, both make
the same choices every time; `release` makes ten times as many and others each time, `long` is for a night.
"""

import os
import signal
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests.support.stores import backends

pytest_plugins = [
    "tests.support.workers.plugin",
    "tests.support.memory",
    "tests.support.packs",
    "tests.support.tiers",
    "tests.support.stores.etcd_fixtures",
    "tests.support.documents.page_summary",
]

PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=20, stateful_step_count=30, derandomize=True, **PATIENT)
settings.register_profile("ci", max_examples=60, stateful_step_count=40, derandomize=True, **PATIENT)
settings.register_profile("release", max_examples=600, stateful_step_count=60, **PATIENT)
settings.register_profile("long", max_examples=5_000, stateful_step_count=100, **PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Tests send these signals to programs, which would inherit that `nohup make test &` ignores them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


SECONDS_OF_LONG_TEST = 120


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the modules of long tests, the longest first, so that no worker waits at the end for another one's last test."""

    def seconds_of_long(item):
        """Return how long the test may take, 1 if only a marker says that it is long, or 0."""
        limit = item.get_closest_marker("timeout")
        if limit and limit.args[0] > SECONDS_OF_LONG_TEST:
            return limit.args[0]
        return 1 if item.get_closest_marker("slow") else 0

    longest = Counter()
    for item in items:
        longest[item.path] = max(longest[item.path], seconds_of_long(item))
    items.sort(key=lambda item: longest[item.path], reverse=True)


@pytest.fixture(params=backends.EVERY)
async def backend(request, tmp_path):
    """Each implementation of the contract in turn, empty."""
    match request.param:
        case "memory":
            opened = backends.memory()
        case "later":
            opened = backends.later()
        case "durable":
            opened = backends.durable(tmp_path / "store")
        case "etcd":
            opened = backends.etcd(request.getfixturevalue("shared_etcd_url"))
    async with opened as backend:
        yield backend


@pytest.fixture
def store(backend):
    return backend.store


def pytest_terminal_summary(terminalreporter):
    """How many tests of the contract each implementation passed."""
    passed = [report.nodeid for report in terminalreporter.stats.get("passed", ())]
    backend_of = [
        nodeid.partition("[")[2].rstrip("]").partition("-")[0]
        for nodeid in passed
        if "tests/contract/" in nodeid
    ]
    counts = Counter(backend_of)
    passed_counts = ", ".join(
        f"{name} {counts[name]}" for name in (*backends.EMBEDDED, "etcd") if counts[name]
    )
    if passed_counts:
        terminalreporter.write_line(f"tests of the store's contract passed: {passed_counts}")
