"""The listener of all kubelets knows the node of a connection by its client's address, while the socket of the client exists."""

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
