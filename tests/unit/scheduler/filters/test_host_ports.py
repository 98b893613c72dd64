"""Nodes on which another pod uses a host port."""

import pytest

from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.filters.host_ports import node_ports
from tests.support.controllers.scheduler_objects import info, node, pod, rejections, snapshot


def with_port(name, port, *, ip=None, protocol="TCP", **fields):
    host_port = {"hostPort": port, "protocol": protocol, **({"hostIP": ip} if ip else {})}
    return pod(name, **{"containers": [{"name": "c", "ports": [host_port]}], **fields})


@pytest.mark.parametrize(
    ("wanted", "is_free"),
    [
        pytest.param({"port": 80}, False, id="same port"),
        pytest.param({"port": 81}, True, id="other port"),
        pytest.param({"port": 80, "protocol": "UDP"}, True, id="other protocol"),
        pytest.param({"port": 80, "ip": "10.0.0.1"}, False, id="same address"),
        pytest.param({"port": 80, "ip": "10.0.0.2"}, True, id="other address"),
    ],
)
def test_node_with_host_port_in_use_is_rejected(wanted, is_free):
    running = [with_port("old", 80, ip="10.0.0.1", nodeName="a"), pod("plain", nodeName="a")]
    state = snapshot([node(), node("b")], running)
    in_use = Rejection(("node(s) didn't have free ports for the requested pod ports",))
    assert rejections(node_ports, with_port("web", **wanted), state) == ({} if is_free else {"a": in_use})


def test_pod_without_host_ports_needs_no_check_of_ports():
    assert node_ports(info(pod()), snapshot([node()])) is None
