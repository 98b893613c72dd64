"""The sockets that listen on a node, by the flags of its programs, and the processes that they belong to."""

import pytest

from mockube.container_runtime.node_processes import container_processes
from mockube.kubelet.node_machine.machine_network import sockets

AT = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:01:00Z"


def pod(name, *command, started=AT, **container):
    """Return a pod in the network of its node with one container; one that does not run is not `started`."""
    state = {"running": {"startedAt": started}} if started else {"waiting": {}}
    return {
        "metadata": {"name": name, "namespace": "kube-system", "uid": name},
        "spec": {
            "hostNetwork": True,
            "containers": [{"name": name, "image": name, "command": list(command), **container}],
        },
        "status": {"containerStatuses": [{"name": name, "state": state}]},
    }


def listening(*pods):
    """Return where containers of pods listen."""
    units = ("kubelet", "containerd")
    return [f"{each['address']}:{each['port']}" for each in sockets(pods, units) if each["program"] != "sshd"]


@pytest.mark.parametrize(
    ("command", "addresses"),
    [
        (["kube-apiserver", "--secure-port=8443"], ["*:8443"]),
        (["kube-apiserver", "--bind-address=::"], ["*:6443"]),
        (["kube-controller-manager", "--bind-address=127.0.0.1"], ["127.0.0.1:10257"]),
        (["kube-scheduler", "--bind-address=127.0.0.1", "--secure-port=0"], []),
        (["kube-scheduler"], ["*:10259"]),
        (
            [
                "etcd",
                "--listen-client-urls=https://127.0.0.1:2379,https://172.18.0.2:2379",
                "--listen-peer-urls=https://172.18.0.2:2380",
                "--listen-metrics-urls=http://127.0.0.1:2381",
            ],
            ["127.0.0.1:2379", "172.18.0.2:2379", "172.18.0.2:2380", "127.0.0.1:2381"],
        ),
        (["etcd", "--listen-client-urls=nonsense,https://a:b"], []),
        (["/usr/local/bin/kube-proxy", "--config=/x"], ["127.0.0.1:10249", "*:10256"]),
    ],
)
def test_program_of_the_control_plane_listens_where_its_flags_say(command, addresses):
    probe_port = [{"name": "probe-port", "containerPort": 1}]
    assert listening(pod("p", *command, ports=probe_port)) == addresses


def test_other_program_in_the_network_of_the_node_listens_on_its_ports():
    exporter = pod("exporter", ports=[{"containerPort": 9100}])
    assert listening(exporter) == ["*:9100"]


def test_container_that_does_not_run_listens_on_nothing():
    assert listening(pod("kube-proxy", "kube-proxy", started="")) == []


def test_process_of_a_socket_is_that_of_the_container():
    pods = [
        pod("late", "kube-scheduler", started=LATER),
        pod("waits", "sleep", started=""),
        pod("etcd", "etcd", "--listen-metrics-urls=http://127.0.0.1:2381"),
    ]
    pids = {each.container["name"]: each.pid for each in container_processes(pods)}
    assert pids == {"etcd": 1200, "late": 1240}
    assert {each["program"]: each["pid"] for each in sockets(pods, ())} == {
        "containerd": 503, "kubelet": 742, "sshd": 610, **pids,
    }  # fmt: skip


def test_process_that_starts_later_changes_the_numbers_of_none():
    first = pod("b", "etcd")
    assert (
        container_processes([pod("a", "sleep", started=LATER), first])[0].pid
        == container_processes([first])[0].pid
    )
