"""The pytest plugin: the fixtures `mockube`, `async_mockube`, `mockube_fork` and `mockube_factory`, and a report about the cluster of a failed test.

pytest loads the plugin wherever mockube is installed, so modules that a cluster needs are imported on first use.
Settings of pytest: `mockube_scope` is the scope of the fixture (`function` by default, `class`, `module`, `package` or
`session`); `mockube_nodes`, `mockube_packs` and `mockube_version` configure the cluster; with `mockube_as_default`, client
libraries use it by default, as in `with mockube.as_default():`. A marker configures it for one test or for a module:
`@pytest.mark.mockube(nodes=5)`.
"""

import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

if TYPE_CHECKING:
    from mockube.cluster import AsyncCluster, Cluster
    from mockube.failure_report import LinesOf
    from mockube.forked_cluster import ForkedCluster

MakeCluster: TypeAlias = "Callable[..., Cluster]"

FIXTURE: Final = "mockube"
SCOPE, NODES, PACKS = "mockube_scope", "mockube_nodes", "mockube_packs"
VERSION, AS_DEFAULT = "mockube_version", "mockube_as_default"
DEFAULT_OPTION: Final = "as_default"
OPTIONS: Final = (
    "nodes", "packs", "version", "flags", "manager_flags", "images", "unknown_programs", "profile", "control_planes",
    "seed", DEFAULT_OPTION
)  # fmt: skip
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
REPORT_OPTION: Final = "--mockube-report"
PAGE_TITLE: Final = ": report"
"""The end of the title of the section with the path of a page."""
_CLUSTERS: Final = pytest.StashKey["list[Cluster]"]()
"""The clusters that a test made."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addini(
        SCOPE, "scope of a cluster: function, class, module, package or session", default="function"
    )
    parser.addini(NODES, "nodes of a cluster: a number, pools or a file of pools (3)", default="")
    parser.addini(
        PACKS,
        "packs of kinds to serve besides those of Kubernetes (those that come with mockube)",
        default=None,
    )
    parser.addini(VERSION, "minor release of Kubernetes that a cluster has (the newest)", default="")
    parser.addini(
        AS_DEFAULT,
        "whether client libraries use the cluster of the fixture by default, instead of your own (false)",
        type="bool",
        default=False,
    )
    parser.getgroup("mockube").addoption(
        REPORT_OPTION,
        metavar="DIR",
        help="write a page about the cluster of each failed test to this folder; clusters keep all of their history for it",
    )
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
    is_default = _pop_default(options, request)
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(_new_cluster(options))
        except Exception as error:  # noqa: BLE001 - it is reported without frames
            pytest.fail(f"the cluster did not start: {error}", pytrace=False)
        if is_default:
            stack.enter_context(cluster.as_default())
        yield cluster


def _new_cluster(options: dict[str, Any]) -> "Cluster":
    __tracebackhide__ = True
    from mockube.cluster import Cluster  # noqa: PLC0415 - see the top

    return Cluster(**options)


@pytest.fixture(scope=_scope)
def async_mockube(mockube: "Cluster") -> "AsyncCluster":
    """The cluster of the fixture `mockube`, with asynchronous methods."""
    return mockube.awaited


@pytest.fixture
def mockube_fork(request: pytest.FixtureRequest, mockube: "Cluster") -> "Iterator[ForkedCluster]":
    """A fork of the cluster of the fixture `mockube`, for one test: no other test gets what it changes.

    With a `mockube_scope` of several tests, a fixture of that scope arranges the cluster once.
    """
    with ExitStack() as stack:
        try:
            fork = stack.enter_context(mockube.fork())
        except Exception as error:  # noqa: BLE001 - it is reported without frames
            pytest.fail(str(error), pytrace=False)
        if _pop_default(_options(request), request):
            stack.enter_context(fork.as_default())
        yield fork


def _pop_default(options: dict[str, Any], request: pytest.FixtureRequest) -> bool:
    """Return whether a cluster is the default, by the option that is removed, or by the setting."""
    is_default = options.pop(DEFAULT_OPTION, request.config.getini(AS_DEFAULT))
    if not isinstance(is_default, bool):
        pytest.fail(f"{DEFAULT_OPTION} must be a bool, not {is_default!r}", pytrace=False)
    return is_default


@pytest.fixture
def mockube_factory(request: pytest.FixtureRequest) -> "Iterator[MakeCluster]":
    """A function that starts one more cluster, with the options of `Cluster`; all of them stop at the end of the test."""
    with ExitStack() as stack:
        clusters: list[Cluster] = []
        request.node.stash[_CLUSTERS] = clusters

        def make_cluster(**options: Any) -> "Cluster":
            __tracebackhide__ = True
            common = _options(request)
            common.pop(DEFAULT_OPTION, None)  # it is about the cluster of the fixture `mockube`
            cluster = stack.enter_context(_new_cluster({**common, **options}))
            clusters.append(cluster)
            return cluster

        yield make_cluster


def _options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the options of the settings, which the nearest marker overrides."""
    options: dict[str, Any] = {}
    nodes, packs = request.config.getini(NODES), request.config.getini(PACKS)
    if nodes:
        options["nodes"] = _check_nodes(nodes)
    if packs is not None:
        options["packs"] = packs
    if version := request.config.getini(VERSION):
        options["version"] = version
    marker = request.node.get_closest_marker(FIXTURE)
    if marker is None:
        return _with_history(options, request.config)
    unknown = [
        repr(argument)
        for argument in (*marker.args, *(name for name in marker.kwargs if name not in OPTIONS))
    ]
    if unknown:
        accepted = ", ".join(OPTIONS)
        pytest.fail(f"the marker mockube takes {accepted}, not {', '.join(unknown)}", pytrace=False)
    return _with_history({**options, **marker.kwargs}, request.config)


def _with_history(options: dict[str, Any], config: pytest.Config) -> dict[str, Any]:
    """Return options with which a cluster keeps all of its history if reports are written; a flag of the user applies instead."""
    if not config.getoption(REPORT_OPTION):
        return options
    return {**options, "flags": ("--history=all", *options.get("flags", ()))}


def _check_nodes(text: str) -> str:
    from mockube.kubelet.node_pools.flag import read_nodes  # noqa: PLC0415 - see the top

    try:
        read_nodes(text)
    except ArgumentTypeError as error:
        pytest.fail(f"{NODES}: {error}", pytrace=False)
    return text


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
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and "mockube.cluster" in sys.modules:
        from mockube.failure_report import failure_sections  # noqa: PLC0415 - see the top

        error = call.excinfo.value if call.excinfo is not None else None
        for number, (name, cluster) in enumerate(_clusters_of(item), 1):
            page = _page_writer(item, report, call, number)
            report.sections += failure_sections(cluster, error, name, page)
    return report


def pytest_terminal_summary(terminalreporter: "pytest.TerminalReporter", config: pytest.Config) -> None:
    """List the written pages: an option of pytest may hide the sections of failures."""
    if not config.getoption(REPORT_OPTION):
        return
    reports = [report for state in ("failed", "error") for report in terminalreporter.stats.get(state, ())]
    paths = [text for report in reports for title, text in report.sections if title.endswith(PAGE_TITLE)]
    if paths:
        terminalreporter.section("reports of mockube")
        terminalreporter.write_line("\n".join(paths))


def _page_writer(
    item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None], number: int
) -> "LinesOf | None":
    """Return what writes the page of a cluster of a failed test, if that is wanted."""
    folder = item.config.getoption(REPORT_OPTION)
    if not folder:
        return None
    from mockube.failure_report import file_name, page_writer  # noqa: PLC0415 - see the top
    from mockube.report.recording import Subject  # noqa: PLC0415 - see the top

    phase = "" if report.when == "call" else f"-{report.when}"
    path = Path(folder) / file_name(item.nodeid, f"{phase}-{number}" if number > 1 else phase)
    text = "" if call.excinfo is None else call.excinfo.exconly()
    return page_writer(path, Subject(title=item.nodeid, result=f"failed in its {report.when}", text=text))


def _clusters_of(item: pytest.Item) -> "Iterator[tuple[str, Cluster | ForkedCluster]]":
    """Yield the clusters of a test with their names: those that its fixtures returned or made."""
    from mockube.cluster import Cluster, ForkedCluster  # noqa: PLC0415 - see the top

    values = getattr(item, "funcargs", {}).items()
    fixture_names = {value: name for name, value in values if isinstance(value, Cluster | ForkedCluster)}
    for cluster, name in fixture_names.items():  # fixtures may return the cluster of another fixture
        yield name, cluster
    clusters: list[Cluster] = item.stash.get(_CLUSTERS, [])
    for number, cluster in enumerate(clusters, 1):
        yield f"mockube_factory, cluster {number}", cluster
