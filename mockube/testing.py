"""The pytest plugin: a fixture `mockube` that gives a fresh `mockube.Cluster`.

Named in the `conftest.py` at the root of the tests: `pytest_plugins = ["mockube.testing"]`. `mockube_scope` in pytest's
settings says for whom a cluster is: each `function`, which is the default, or a `class`, `module`, `package` or `session`.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mockube.cluster import Cluster

SCOPE = "mockube_scope"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        SCOPE, "whom a cluster of the fixture `mockube` is for: function, module ...", default="function"
    )


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 - pytest hands it in by name
    return config.getini(SCOPE)


@pytest.fixture(scope=_scope)
def mockube() -> "Iterator[Cluster]":
    # Every run of pytest on the machine loads this file: what a cluster needs is imported by those who want one.
    from mockube.cluster import Cluster  # noqa: PLC0415 - see above

    with Cluster() as cluster:
        yield cluster
