"""Where the connection of a probe to a host leads: to the pod, to a port of its node, or to nobody knows where."""

import pytest

from mockube.kubelet.pod_lifecycle.port_probes import _target_of
from tests.support.controllers.pods import container, pod

IP = "10.244.0.7"
LOCAL = "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "port", "expected"),
    [
        ("", 80, (IP, 80, "", "")),
        (IP, 80, (IP, 80, "", "")),
        (LOCAL, 8080, (LOCAL, 80, "", "")),
        (LOCAL, 9090, (LOCAL, 0, "dial tcp 127.0.0.1:9090: connect: connection refused", "")),
        ("localhost", 9090, ("localhost", 0, "dial tcp [::1]:9090: connect: connection refused", "")),
        (LOCAL, 10247, (LOCAL, 0, "dial tcp 127.0.0.1:10247: connect: connection refused", "")),
        (LOCAL, 10248, (LOCAL, 0, "", "port 10248 of the node")),
        (LOCAL, 10259, (LOCAL, 0, "", "port 10259 of the node")),
        ("web", 80, ("web", 0, "dial tcp: lookup web: no such host", "")),
        ("web.ns.svc", 80, ("web.ns.svc", 0, "dial tcp: lookup web.ns.svc: no such host", "")),
        (
            "web.cluster.local.",
            80,
            ("web.cluster.local.", 0, "dial tcp: lookup web.cluster.local.: no such host", ""),
        ),
        ("example.com", 80, ("example.com", 0, "", "the host example.com")),
        ("10.0.0.9", 80, ("10.0.0.9", 0, "", "the host 10.0.0.9")),
        ("fd00::9", 80, ("fd00::9", 0, "", "the host fd00::9")),
    ],
)
def test_target_is_that_of_the_host(host, port, expected):
    mapped = pod(container(ports=[{"containerPort": 81}, {"containerPort": 80, "hostPort": 8080}]))
    found = _target_of(mapped, host, port, IP)
    assert (found.host, found.port, found.dial_error, found.unknown) == expected


@pytest.mark.parametrize(("host", "port"), [(LOCAL, 9090), (LOCAL, 10250), ("::1", 80)])
def test_pod_in_the_network_of_its_node_is_there_itself(host, port):
    found = _target_of(pod(hostNetwork=True), host, port, IP)
    assert (found.host, found.port, found.dial_error, found.unknown) == (host, port, "", "")
