"""`mockube nodes` prints and sets the number of simulated nodes, and refuses invalid numbers."""

import pytest

from tests.support.processes.commands import Mockube, ask
from tests.support.processes.process import ApiServerProcess, ManagerProcess


@pytest.fixture
def nodes(tmp_path):
    """Run the command; return its exit code, stdout and stderr."""
    mockube = Mockube(tmp_path)

    def run(*arguments):
        done = mockube.run("nodes", *map(str, arguments))
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.slow
def test_node_count_change_survives_manager_restart(tmp_path, nodes):
    simulating = "--simulate-nodes=2"
    with ApiServerProcess(tmp_path) as server:
        asked = ("--kubeconfig", server.kubeconfig)
        with ManagerProcess(server.kubeconfig, simulating) as manager:
            assert nodes("4", *asked) == (0, "4 nodes are ready\n", "")
            assert nodes(*asked) == (0, "4\n", "")
            assert nodes("1", *asked) == (0, "1 node is ready\n", "")
            assert manager.stop() == 0
        with ManagerProcess(server.kubeconfig, simulating):
            assert nodes("2", *asked) == (0, "2 nodes are ready\n", "")
        code, out, err = nodes("3", "--timeout", "10ms", *asked)
    assert (code, out) == (4, "")
    assert "3 were requested: is a controller manager with --simulate-nodes running?" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["many"], '"many" is neither a number of nodes nor pools', id="not a number"),
        pytest.param(["-1"], '"-1" is neither a number of nodes nor pools', id="negative"),
        pytest.param(["15001"], "at most 15000 nodes can have addresses", id="too many"),
        pytest.param(["label=ssd:3"], '"ssd" is not KEY=VALUE', id="invalid label"),
        pytest.param(["zone=b c:3"], '"b c": a valid label must be', id="invalid zone"),
        pytest.param(["pools.yaml"], "pools.yaml: No such file or directory", id="no file"),
    ],
)
def test_invalid_node_count_is_refused(nodes, arguments, message):
    code, out, err = nodes(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_resizing_missing_cluster_names_it(nodes):
    code, _, err = nodes("--name", "none")
    assert (code, err.startswith('mockube: there is no cluster "none"')) == (3, True)


@pytest.mark.slow
def test_deprecated_flags_are_a_pool_and_reported(tmp_path, nodes):
    with ApiServerProcess(tmp_path) as server, ManagerProcess(server.kubeconfig, "--simulate-nodes=1"):
        code, out, err = nodes("2", "--zones=a,b", "--labels=disk=ssd", "--kubeconfig", server.kubeconfig)
        _, node_list = ask(server.kubeconfig, "GET", "/api/v1/nodes")
    assert (code, out) == (0, "2 nodes are ready\n")
    replacement = "use `mockube nodes zone=a,zone=b,label=disk=ssd:2` instead"
    assert err == "".join(
        f"Flag {flag} has been deprecated, {replacement}\n" for flag in ("--zones", "--labels")
    )
    labels = [node["metadata"]["labels"] for node in node_list["items"]]
    assert [(each["topology.kubernetes.io/zone"], each["disk"]) for each in labels] == [
        ("a", "ssd"),
        ("b", "ssd"),
    ]
