"""One cluster for the tests of a file, each of which sees its own calls and its own faults only."""

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
