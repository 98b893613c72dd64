"""The port that a cluster uses, and the error if the port is in use."""

import socket

import pytest

from mockube.clusters import ports
from mockube.clusters.named_cluster import cluster_folder, hold_lock, write_record
from mockube.component_base.clock import SteppedClock
from mockube.failure import Failure
from tests.support.processes.clusters import ready


@pytest.fixture
def used_port():
    with socket.create_server((ports.LOOPBACK, 0)) as listener:
        yield listener.getsockname()[1]


def served_before(folder, port):
    folder.prepare()
    folder.kubeconfig.write_text(f"clusters: [{{name: x, cluster: {{server: 'https://127.0.0.1:{port}'}}}}]")


def test_default_cluster_has_upstreams_port(environment):
    assert ports.default_port(cluster_folder("default", environment), environment) == 6443


def test_other_cluster_reuses_its_previous_port(environment, used_port):
    folder = cluster_folder("other", environment)
    assert ports.default_port(folder, environment) == 0
    served_before(folder, used_port)
    assert ports.default_port(folder, environment) == 0, "another process has the port now"
    served_before(folder, port := _free())
    assert ports.default_port(folder, environment) == port


def test_port_variable_overrides_default(environment):
    with_port = {**environment, ports.PORT_VARIABLE: "7443"}
    assert ports.default_port(cluster_folder("default", environment), with_port) == 7443


def test_free_port_and_port_0_are_accepted(environment):
    ports.check_port_free(ports.LOOPBACK, _free(), environment)
    ports.check_port_free(ports.LOOPBACK, ports.ANY_PORT, environment)


def test_process_using_port_is_named(environment, used_port):
    with pytest.raises(Failure, match=rf"port {used_port} is in use by .*process.*--secure-port=0"):
        ports.check_port_free(ports.LOOPBACK, used_port, environment)


async def test_cluster_using_port_is_named(environment, used_port):
    folder = cluster_folder("one", environment)
    async with hold_lock(folder, SteppedClock()):
        write_record(folder, ready(f"https://127.0.0.1:{used_port}"))
        with pytest.raises(
            Failure, match='in use by the cluster "one" \\(`mockube down --name=one` stops it\\)'
        ):
            ports.check_port_free(ports.LOOPBACK, used_port, environment)


def _free():
    with socket.create_server((ports.LOOPBACK, 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://192.168.1.5:6443", "https://192.168.1.5:7"),
        ("https://[::1]:6443", "https://[::1]:7"),
        ("https://localhost", "https://localhost:7"),
    ],
)
def test_port_of_a_url_is_replaced(url, expected):
    assert ports.with_port(url, 7) == expected
