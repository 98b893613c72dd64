"""client-go and controller-runtime: each check of the program in `go/` is a test."""

import subprocess

import pytest

from tests.support.processes import go_programs
from tests.support.processes.process import ApiServerProcess

pytestmark = pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)

CHECKS = (
    "configmaps",
    "pods",
    "deployments",
    "leases",
    "protobuf-is-spoken",
    "pager",
    "page-of-one-moment",
    "watch-resumes",
    "watch-retries",
    "informer-follows",
    "informer-resumes-a-broken-watch",
    "informer-lists-again-when-it-is-too-late",
    "dynamic-client",
    "metadata-client",
    "discovery-is-aggregated",
    "mapper-knows-short-names",
    "open-api-has-every-group",
    "leader-election",
    "controller-runtime-client",
    "controller-runtime-manager",
)


@pytest.fixture(scope="session")
def clients(go_program):
    """Return a function that runs the program with arguments."""

    def run(*arguments):
        return subprocess.run(
            [go_program, *arguments], capture_output=True, text=True, timeout=100, check=False
        )

    return run


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A restarted server, so that resource versions from before the restart are too old to watch from."""
    folder = tmp_path_factory.mktemp("server")
    with ApiServerProcess(folder, f"--data-dir={folder / 'data'}") as first:
        assert first.stop() == 0
    with ApiServerProcess(folder, f"--data-dir={folder / 'data'}") as running:
        yield running


def test_every_check_of_go_program_has_a_test(clients):
    assert clients("--list").stdout.split() == list(CHECKS)


@pytest.mark.parametrize("name", CHECKS)
def test_go_check_passes(clients, server, name):
    done = clients("--kubeconfig", server.kubeconfig, name)
    assert (done.returncode, done.stdout) == (0, f"ok {name}\n"), done.stderr
