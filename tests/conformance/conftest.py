"""Fixtures: the server and the controller manager as processes, with three simulated nodes, as in the recordings."""

import pytest

from tests.support.processes.process import ApiServerProcess, ManagerProcess
from tests.support.recorded.recordings import FOLDER

TOKENS = FOLDER / "tokens.csv"
AS_RECORDED = (
    "--simulate-kubelet-details=false",
    "--controllers=*,-service-lb-controller,-simulated-storage-class",
)
"""The nodes of the recordings were kwok's, in a cluster without cloud provider."""


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory):
    """The server, whose audit log is beside its kubeconfig as `audit`; each controller has its own account."""
    folder = tmp_path_factory.mktemp("control-plane")
    arguments = ("--token-auth-file", TOKENS, "--service-cluster-ip-range", "10.0.0.0/16")
    with (
        ApiServerProcess(folder, *arguments, "--audit-log-path", folder / "audit") as server,
        ManagerProcess(
            server.kubeconfig, "--simulate-nodes=3", "--use-service-account-credentials", *AS_RECORDED
        ),
    ):
        yield server
