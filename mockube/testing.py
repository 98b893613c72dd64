"""The pytest plugin: a fixture `mockube` that returns a new `mockube.Cluster`, and a report about it if a test fails.

pytest loads the plugin wherever mockube is installed, so modules that a cluster needs are imported on first use.
Settings of pytest: `mockube_scope` is the scope of the fixture (`function` by default, `class`, `module`, `package` or
`session`); `mockube_nodes`, `mockube_packs` and `mockube_version` configure the cluster. A marker configures it for one
test or for a module: `@pytest.mark.mockube(nodes=5)`.
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
"""The names by which pytest registers this plugin: from its entry point, and from a conftest.py."""


class _PlainFinder(MetaPathFinder):
    """A finder that imports the modules of mockube without pytest's assertion rewriting.

    pytest rewrites the assertions in all modules of a package with a plugin. For mockube that takes ten times as long as the
    import, in each run in which the result cannot be cached beside the files.
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
    parser.addini(NODES, "number of nodes of a cluster (3)", default="")
    parser.addini(
        PACKS,
        "packs of kinds to serve besides those of Kubernetes (those that come with mockube)",
        default=None,
    )
    parser.addini(VERSION, "minor release of Kubernetes that a cluster has (the newest)", default="")
    for name in NAMES:
        if pluginmanager.get_plugin(name) is None:
            pluginmanager.set_blocked(name)
    sys.meta_path.insert(0, _FINDER)  # before any conftest.py, which may import mockube


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def pytest_unconfigure() -> None:
    sys.meta_path.remove(_FINDER)


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001 - pytest hands it in by name
    return config.getini(SCOPE)


@pytest.fixture(scope=_scope)
def mockube(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """A control plane inside this process, for one test or scope."""
    options = _options(request)
    from mockube.cluster import Cluster  # noqa: PLC0415 - see the top

    with Cluster(**options) as cluster:
        yield cluster


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the options of the settings, which the nearest marker overrides."""
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
    unknown = [
        repr(argument)
        for argument in (*marker.args, *(name for name in marker.kwargs if name not in OPTIONS))
    ]
    if unknown:
        accepted = ", ".join(OPTIONS)
        pytest.fail(f"the marker mockube takes {accepted}, not {', '.join(unknown)}", pytrace=False)
    return {**options, **marker.kwargs}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a marker on a test whose cluster is shared with other tests."""
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
        from mockube.failure_report import failure_sections  # noqa: PLC0415 - see the top

        report.sections += failure_sections(cluster)
    return report
