"""The listener of all kubelets knows the node of a connection by its client's address, while the socket of the client exists."""

from types import SimpleNamespace

import pytest

from mockube.kubelet import node_connections
from mockube.kubelet.node_connections import NodeConnections
from mockube.kubelet.node_objects import SIMULATED_NODE_ANNOTATION


class Nodes:
    def get(self, _, name):
        return {"metadata": {"name": name, "annotations": dict([SIMULATED_NODE_ANNOTATION])}}


def connections():
    made = NodeConnections(Nodes())
    made.listen_at("127.0.0.1", lambda: 10_250)
    return made


async def opened_socket(made, node):
    port = made.port_of(node)
    return await port.open_own_socket(port.host)


async def test_connection_is_to_the_node_of_its_socket_once():
    made = connections()
    with await opened_socket(made, "node-1") as one, await opened_socket(made, "node-2") as other:
        assert made.node_of(other.getsockname()) == "node-2"
        assert made.node_of(one.getsockname()) == "node-1"
        assert made.node_of(one.getsockname()) == ""


async def test_client_with_the_port_of_a_socket_that_is_gone_is_to_no_node():
    made = connections()
    opened = await opened_socket(made, "node-1")
    address = opened.getsockname()
    opened.close()
    del opened
    assert made.node_of(address) == ""


STOPPED = {"mockube.dev/stop-heartbeats": "true"}
SIMULATED = dict([SIMULATED_NODE_ANNOTATION])


@pytest.mark.parametrize(
    ("annotations", "is_reached", "is_disconnected"),
    [
        (None, False, False),
        ({}, False, False),
        (SIMULATED, True, False),
        ({**SIMULATED, **STOPPED}, False, True),
    ],
)
def test_kubelet_that_runs_has_a_port(annotations, is_reached, is_disconnected):
    tree = None if annotations is None else {"metadata": {"name": "n", "annotations": annotations}}
    made = NodeConnections(SimpleNamespace(get=lambda *_: tree))
    assert made.port_of("n") is None
    made.listen_at("0.0.0.0", lambda: 1)
    port = made.port_of("n")
    assert (port is not None, made.is_disconnected("n")) == (is_reached, is_disconnected)
    if port is not None:
        assert (port.host, port.port) == ("127.0.0.1", 1)


async def test_socket_that_was_opened_longest_ago_is_not_expected_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(node_connections, "MAX_EXPECTED", 1)
    made = connections()
    with await opened_socket(made, "node-1") as one, await opened_socket(made, "node-2") as other:
        assert made.node_of(one.getsockname()) == ""
        assert made.node_of(other.getsockname()) == "node-2"


async def test_end_of_a_socket_does_not_forget_another_one_with_its_port():
    made = connections()
    opened = await opened_socket(made, "node-1")
    address = opened.getsockname()
    made._expected[address] = node_connections._Expected("node-2")
    opened.close()
    del opened
    assert made.node_of(address) == "node-2"
    assert made.node_of(None) == ""
