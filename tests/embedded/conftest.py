"""The tests of a file share one cluster; its recorded calls are cleared before each test."""

import pytest

from mockube import Cluster


@pytest.fixture(scope="module")
def shared():
    with Cluster(nodes=2) as started:
        yield started


@pytest.fixture
def cluster(shared):
    shared.forget_calls()
    return shared
