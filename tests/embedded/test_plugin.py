"""The pytest plugin, in a separate pytest process."""

import os
import re
import subprocess
import sys

import pytest

from tools.packages import ROOT

SETTINGS = ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"]

CLUSTERS = """
import pytest

def test_one(mockube):
    print("served at", mockube.url)

def test_another(mockube):
    mockube.wait("Node", "node-3", "Ready")
    print("served at", mockube.url)
"""
POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}"


@pytest.fixture
def run(tmp_path):
    """Run pytest on a file with this text, with all installed plugins."""

    def run(text, *arguments, **files):
        for name, content in {"test_mine": text, **files}.items():
            (tmp_path / f"{name}.py").write_text(content)
        command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *SETTINGS]
        return subprocess.run(
            [*command, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )

    return run


@pytest.mark.parametrize(
    ("settings", "clusters"),
    [
        pytest.param([], 2, id="one cluster per test by default"),
        pytest.param(["-o", "mockube_scope=module"], 1, id="one cluster per module"),
        pytest.param(
            ["-o", "mockube_scope=session", "-n", "2"],
            2,
            id="one cluster per xdist worker",
            marks=pytest.mark.release,
        ),
    ],
)
def test_fixture_starts_fresh_cluster(run, settings, clusters):
    answer = run(CLUSTERS, "-rP", *settings)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    served = {line.partition("served at ")[2] for line in answer.stdout.splitlines() if "served at" in line}
    assert len(served) == clusters


def test_marker_and_settings_configure_cluster(run):
    text = """
import pytest

def test_settings(mockube):
    assert len(mockube.list("Node")) == 2

@pytest.mark.mockube(nodes=4, flags=["--etcd-prefix=/mine"])
def test_marker(mockube):
    assert len(mockube.list("Node")) == 4
"""
    answer = run(text, "--strict-markers", "-o", "mockube_nodes=2", "-o", "mockube_packs=")
    assert answer.returncode == 0, answer.stdout + answer.stderr


OPTIONS = "the marker mockube takes nodes, packs, version, flags, manager_flags, images, unknown_programs, profile, control_planes, seed, as_default, not"
WRONG = """
import pytest

@pytest.mark.mockube(nodess=4)
def test_unknown_marker_option_is_refused(mockube):
    pass

@pytest.mark.mockube(4)
def test_positional_marker_argument_is_refused(mockube):
    pass
"""


@pytest.mark.parametrize(
    ("settings", "problems"),
    [
        pytest.param([], [f"{OPTIONS} 'nodess'", f"{OPTIONS} 4"], id="invalid markers"),
        pytest.param(
            ["-o", "mockube_nodes=few"],
            ['mockube_nodes: "few" is neither a number of nodes nor pools'],
            id="setting is neither a number nor pools",
        ),
        pytest.param(
            ["-o", "mockube_scope=module"],
            ["mockube_scope is module: set it on the module, as pytestmark"],
            id="marker on a test with module scope",
        ),
    ],
)
def test_invalid_marker_or_setting_is_reported_in_one_line(run, settings, problems):
    answer = run(WRONG, *settings)
    assert answer.returncode == 1
    for problem in problems:
        assert problem in answer.stdout
    assert "Traceback" not in answer.stdout


AS_DEFAULT = """
import os
import re
import kubernetes.client
import pytest

def is_default(cluster):
    host = kubernetes.client.ApiClient().configuration.host
    assert (host == cluster.url) == (os.environ.get("KUBECONFIG") == str(cluster.kubeconfig))
    return host == cluster.url

def test_setting(mockube, pytestconfig, mockube_factory):
    assert is_default(mockube) == pytestconfig.getini("mockube_as_default")
    assert not is_default(mockube_factory())

@pytest.fixture
def former():
    yield
    assert "KUBECONFIG" not in os.environ
"""
MARKED = """
@pytest.mark.mockube(as_default=True)
def test_marker(former, mockube, mockube_factory):
    assert is_default(mockube)
    assert not is_default(mockube_factory())

@pytest.mark.mockube(as_default=False)
def test_contrary_marker(former, mockube):
    assert not is_default(mockube)
"""


@pytest.mark.parametrize("setting", ["true", "false"])
@pytest.mark.parametrize(
    ("scope", "text"),
    [("function", AS_DEFAULT + MARKED), pytest.param("session", AS_DEFAULT, marks=pytest.mark.release)],
)
def test_cluster_of_fixture_can_be_default(run, monkeypatch, setting, scope, text):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    answer = run(text, "-o", f"mockube_as_default={setting}", "-o", f"mockube_scope={scope}")
    assert answer.returncode == 0, answer.stdout + answer.stderr


FORKS = """
import os
import re
import pytest

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}}"

@pytest.fixture(scope="session", autouse=True)
def arranged(mockube):
    mockube.apply(CONFIG_MAP.replace("NAME", "arranged"))
    print("arranged once")

@pytest.mark.parametrize("number", [1, 2])
def test_fork(mockube_fork, mockube, number):
    names = {each["metadata"]["name"] for each in mockube_fork.list("ConfigMap")}
    assert names == {"arranged", "kube-root-ca.crt"}
    mockube_fork.apply(CONFIG_MAP.replace("NAME", "mine"))
    assert mockube_fork.url != mockube.url
    assert (os.environ.get("KUBECONFIG") == str(mockube_fork.kubeconfig)) is IS_DEFAULT

def test_failure(mockube_fork):
    mockube_fork.list("Secret")
    assert False
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks are supported on Linux only")
@pytest.mark.parametrize("is_default", [False, True])
def test_cluster_is_arranged_once_and_forked_for_each_test(run, monkeypatch, is_default):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    settings = ["-o", "mockube_scope=session", "-o", f"mockube_as_default={str(is_default).lower()}", "-rP"]
    answer = run(FORKS.replace("IS_DEFAULT", str(is_default)), *settings)
    assert "2 passed, 1 failed" in answer.stdout.replace("1 failed, 2 passed", "2 passed, 1 failed"), (
        answer.stdout
    )
    assert answer.stdout.count("arranged once") == 1
    assert "list /api/v1/namespaces/default/secrets" in answer.stdout.partition("mockube_fork: calls")[2]


@pytest.mark.skipif(sys.platform != "linux", reason="forks are supported on Linux only")
def test_cluster_that_cannot_be_forked_is_reported_in_one_line(run, tmp_path):
    text = f"""
import pytest

pytestmark = pytest.mark.mockube(flags=["--audit-log-path={tmp_path / "audit"}"])

def test_fork(mockube_fork):
    pass
"""
    answer = run(text)
    assert (
        "the cluster cannot be forked: --audit-log-path: the fork would write to the same file"
        in answer.stdout
    )
    assert "Traceback" not in answer.stdout


def test_module_can_be_marked(run):
    text = """
import pytest

pytestmark = pytest.mark.mockube(nodes=1)

def test_mine(mockube):
    assert len(mockube.list("Node")) == 1
"""
    answer = run(text, "-o", "mockube_scope=module")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_asynchronous_test_can_use_fixture(run):
    text = """
async def test_waiting_in_the_loop(mockube):
    assert len(mockube.list("Node")) == 3

async def test_awaiting(async_mockube, mockube):
    assert len(await async_mockube.list("Node")) == 3
    assert async_mockube.url == mockube.url
"""
    answer = run(text)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_failed_test_reports_events_calls_and_logs(run):
    text = f"""
import logging

def test_mine(mockube):
    mockube.apply({POD!r}.replace("image: a", "image: a, resources: {{requests: {{cpu: 1000}}}}"))
    mockube.wait("Pod", "a", "PodScheduled=False")
    mockube.advance(1)
    mockube._context.call(lambda: logging.getLogger("mockube.apiserver").error("it hurts"))
    assert False

def test_none_of_it_is_told_of_what_passes(mockube):
    pass
"""
    answer = run(text)
    assert answer.returncode == 1
    assert "mockube: events" in answer.stdout
    assert "Warning FailedScheduling pod/a: 0/3 nodes are available" in answer.stdout
    assert "node/node-1" not in answer.stdout, "nodes are healthy"
    assert "mockube: calls" in answer.stdout
    assert " 201 patch /api/v1/namespaces/default/pods/a" in answer.stdout
    assert "mockube: warnings and errors" in answer.stdout
    assert "it hurts" in answer.stdout
    assert answer.stdout.count("mockube: calls") == 1


def test_failure_report_is_printed_despite_further_faults(run):
    text = """
def test_mine(mockube):
    mockube.inject(delay=600.0)
    mockube.inject(user="*", status=500)
    assert False

def test_forgotten(mockube):
    mockube._plane.recorder.dropped_count = 7
    assert False

def test_after_its_end(mockube):
    mockube.stop()
    assert False
"""
    answer = run(text)
    assert answer.returncode == 1
    assert answer.stdout.splitlines()[-1].startswith("3 failed in "), "the report itself warned"
    assert "the cluster was stopped" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        pytest.param([], {}, id="installed"),
        pytest.param(
            [], {"conftest": 'pytest_plugins = ["mockube.testing"]'}, id="installed and in pytest_plugins"
        ),
        pytest.param(["-p", "mockube.testing"], {}, id="installed and loaded by flag"),
    ],
)
def test_plugin_is_loaded_once(run, arguments, files):
    text = "def test_mine(pytestconfig):\n    assert pytestconfig.getini('mockube_scope') == 'function'\n"
    answer = run(text, *arguments, **files)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_plugin_can_be_disabled(run):
    answer = run("def test_mine(mockube):\n    pass\n", "-p", "no:mockube")
    assert answer.returncode == 1
    assert "fixture 'mockube' not found" in answer.stdout


def test_unused_plugin_imports_nothing():
    program = (
        "import pytest, sys; before = {*sys.modules}; import mockube.testing; print(*{*sys.modules} - before)"
    )
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert {*answer.stdout.split()} == {
        "mockube",
        "mockube.component_base",
        "mockube.component_base.operating_system",
        "mockube.exports",
        "mockube.testing",
    }


@pytest.mark.release
def test_plugin_works_with_xdist_and_randomly(run):
    text = """
import pytest

@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", range(4))
def test_mine(mockube, number):
    assert len(mockube.list("Node")) == 3
"""
    answer = run(text, "-n", "2", "-p", "randomly", "--timeout=60")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_modules_of_mockube_are_imported_as_they_are(run):
    """Assertion rewriting takes seconds, and is repeated in each run without a writable bytecode cache."""
    answer = run(
        """
        def test_one(mockube):
            from mockube import cluster
            from mockube.apiserver import app
            assert {type(one.__loader__).__name__ for one in (cluster, app)} == {"SourceFileLoader"}
        """.replace("\n        ", "\n")
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_failed_wait_is_reported_without_frames_of_mockube(run):
    text = """
def test_mine(mockube):
    mockube.wait("Pod", "a", "Ready", timeout=0.1)

def test_mistake(mockube):
    mockube.get("Deploymnet", "web")

def test_unknown_verb(mockube):
    mockube.inject(verb="updat", status=409)
"""
    answer = run(text, "-o", "mockube_scope=module", "-o", "mockube_nodes=1")
    assert answer.returncode == 1
    assert (
        "WaitFailed: Pod a in namespace default was not created within 0.1 s: there are no pods"
        in answer.stdout
    )
    assert 'did you mean "Deployment"?' in answer.stdout
    assert "/mockube/" not in answer.stdout, answer.stdout
    assert "direct cause" not in answer.stdout
    assert "mockube: events" not in answer.stdout


def test_cluster_that_does_not_start_is_reported_in_few_lines(run):
    text = """
import pytest

@pytest.mark.mockube(flags=["--bogus"])
def test_flag(mockube):
    pass

@pytest.mark.mockube(nodes=3.5)
def test_type(mockube):
    pass

@pytest.mark.mockube(as_default="yes")
def test_default(mockube):
    pass
"""
    answer = run(text)
    assert answer.returncode == 1
    assert "the cluster did not start: " in answer.stdout
    assert "unrecognized arguments: --bogus" in answer.stdout
    assert (
        "the cluster did not start: nodes must be an int, a str, a Path or a list of dicts, not 3.5"
        in answer.stdout
    )
    assert "as_default must be a bool, not 'yes'" in answer.stdout
    assert "Traceback" not in answer.stdout
    assert "def mockube" not in answer.stdout


def test_test_can_have_several_clusters(run):
    text = """
def test_mine(mockube, mockube_factory):
    blue, green = mockube_factory(nodes=1), mockube_factory(nodes=2)
    assert [len(cluster.list("Node")) for cluster in (mockube, blue, green)] == [4, 1, 2]
    assert len({cluster.url for cluster in (mockube, blue, green)}) == 3
    assert False
"""
    answer = run(text, "-o", "mockube_nodes=4")
    assert answer.returncode == 1
    for name in ("mockube", "mockube_factory, cluster 1", "mockube_factory, cluster 2"):
        assert f" {name}: calls -" in answer.stdout


def test_fixture_of_wider_scope_can_return_cluster(run):
    text = """
import pytest
from mockube import Cluster

@pytest.fixture(scope="session")
def shared():
    with Cluster(nodes=1) as cluster:
        yield cluster

@pytest.fixture(scope="module")
def shop(shared):
    shared.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    return shared

def test_mine(shop, mockube):
    assert shop.url != mockube.url
    shop.get("Namespace", "shop")

def test_failure(shop):
    assert False
"""
    answer = run(text)
    assert "1 failed, 1 passed" in answer.stdout
    assert " shop: calls -" in answer.stdout


def test_unittest_can_use_cluster(run):
    text = """
import unittest
from mockube import Cluster

class ShopTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(nodes=1))

    def test_mine(self):
        self.assertEqual(len(self.cluster.list("Node")), 1)

class AwaitedTest(unittest.IsolatedAsyncioTestCase):
    async def test_mine(self):
        cluster = await self.enterAsyncContext(Cluster(nodes=1))
        self.assertEqual(len(await cluster.list("Node")), 1)
"""
    answer = run(text)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_failed_test_has_a_page_and_its_path(run, tmp_path):
    answer = run(
        f"""
import pytest

POD = "{POD}"

@pytest.mark.parametrize("case", ["a/b"])
def test_it(mockube, case):
    mockube.apply(POD)
    assert mockube.get("Pod", "a")["metadata"]["name"] == "b"

def test_that(mockube):
    pass

def test_without_cluster():
    assert False
""",
        "--mockube-report=reports",
    )
    (page,) = (tmp_path / "reports").iterdir()
    assert page.name.startswith("test_mine.py-test_it-a-b--")
    assert " mockube: report -" in answer.stdout
    assert answer.stdout.count(f"\nreports/{page.name}\n") == 2  # in the failure, and in a list at the end
    assert "failed in its call" in page.read_text()


def test_page_that_cannot_be_written_is_reported_and_the_failure_stays(run, tmp_path):
    (tmp_path / "reports").write_text("a file")
    answer = run("def test_it(mockube):\n    assert mockube.url == 1", "--mockube-report=reports")
    assert "AssertionError" in answer.stdout
    assert re.search(r"mockube: report -+\n.*reports", answer.stdout)


def test_no_page_is_written_without_the_option(run):
    answer = run("def test_it(mockube):\n    assert mockube.url == 1")
    assert "mockube: report" not in answer.stdout
