"""The pytest plugin: a fixture `mockube` that gives a fresh `mockube.Cluster`.

Named in the `conftest.py` at the root of the tests: `pytest_plugins = ["mockube.testing"]`. `mockube_scope` in pytest's
settings says for whom a cluster is: each `function`, which is the default, or a `class`, `module`, `package` or `session`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from mockube.cluster import Cluster

SCOPE = "mockube_scope"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        SCOPE, "whom a cluster of the fixture `mockube` is for: function, module ...", default="function"
    )


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 - pytest hands it in by name
    return config.getini(SCOPE)


@pytest.fixture(scope=_scope)
def mockube() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster
