"""A real server process for real clients; each test has a namespace of its own."""

import itertools

import pytest

from tests.support.process import ApiServerProcess

_numbers = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ApiServerProcess(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def namespace():
    return f"test-{next(_numbers)}"
