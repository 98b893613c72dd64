"""The pytest plugin: a fixture `mockube` that gives a fresh `mockube.Cluster`, and words about it where a test fails.

pytest loads it by itself wherever mockube is installed, so all that a cluster needs is imported on first use.
Settings of pytest: `mockube_scope` is the scope of a cluster: `function`, which is the default, or a `class`,
`module`, `package` or `session`; `mockube_nodes`, `mockube_packs` and `mockube_version` configure it. A marker sets
it for one test, or for all of a module: `@pytest.mark.mockube(nodes=5)`.
"""

import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from mockube.cluster import Cluster

FIXTURE: Final = "mockube"
SCOPE, NODES, PACKS = "mockube_scope", "mockube_nodes", "mockube_packs"
VERSION: Final = "mockube_version"
OPTIONS: Final = ("nodes", "packs", "version", "flags", "manager_flags", "images")
"""The options of the marker."""
MARKER: Final = f"mockube({', '.join(f'{option}=...' for option in OPTIONS)}): options of the cluster of the fixture `mockube`"
NAMES: Final = ("mockube", "mockube.testing")
"""By which pytest may know this file: where it is installed, and where a conftest.py names it."""


class _PlainFinder(MetaPathFinder):
    """Finds the modules of mockube as they are.

    pytest rewrites the assertions in all modules of a package with a plugin. Of mockube that takes ten times as long as their
    import, in each run where the result cannot be written beside the files.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(fullname, path, target) if fullname.startswith("mockube.") else None


_FINDER: Final = _PlainFinder()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addini(
        SCOPE, "scope of a cluster: function, class, module, package or session", default="function"
    )
    parser.addini(NODES, "how many nodes a cluster has (3)", default="")
    parser.addini(PACKS, "kinds that a cluster serves besides Kubernetes' own (kruise)", default=None)
    parser.addini(VERSION, "minor release of Kubernetes of a cluster (1.36)", default="")
    for name in NAMES:
        if pluginmanager.get_plugin(name) is None:
            pluginmanager.set_blocked(name)
    sys.meta_path.insert(0, _FINDER)  # as early as that, since a conftest.py may import mockube


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def pytest_unconfigure() -> None:
    sys.meta_path.remove(_FINDER)


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 - pytest hands it in by name
    return config.getini(SCOPE)


@pytest.fixture(scope=_scope)
def mockube(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """A control plane of one's own, inside this process."""
    options = _options(request)
    from mockube.cluster import Cluster  # noqa: PLC0415 - see the top

    with Cluster(**options) as cluster:
        yield cluster


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Of the settings, and over them of the marker that is nearest."""
    options: dict[str, Any] = {}
    nodes, packs = request.config.getini(NODES), request.config.getini(PACKS)
    if nodes:
        if not nodes.isdecimal():
            pytest.fail(f"{NODES} must be a number, not {nodes!r}", pytrace=False)
        options["nodes"] = int(nodes)
    if packs is not None:
        options["packs"] = packs
    if version := request.config.getini(VERSION):
        options["version"] = version
    marker = request.node.get_closest_marker(FIXTURE)
    if marker is None:
        return options
    strange = [
        repr(argument)
        for argument in (*marker.args, *(name for name in marker.kwargs if name not in OPTIONS))
    ]
    if strange:
        takes = ", ".join(OPTIONS)
        pytest.fail(f"the marker mockube takes {takes}, not {', '.join(strange)}", pytrace=False)
    return {**options, **marker.kwargs}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test cannot set options of a cluster that is not its own."""
    scope = item.config.getini(SCOPE)
    own = any(marker.name == FIXTURE for marker in item.own_markers)
    if own and scope != "function" and FIXTURE in getattr(item, "fixturenames", ()):
        pytest.fail(
            f"the marker mockube cannot be on a test if {SCOPE} is {scope}: set it on the {scope}, as pytestmark",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    cluster = getattr(item, "funcargs", {}).get(FIXTURE)
    if report.failed and cluster is not None:
        from mockube.embedded.failure_report import account  # noqa: PLC0415 - see the top

        report.sections += account(cluster)
    return report
