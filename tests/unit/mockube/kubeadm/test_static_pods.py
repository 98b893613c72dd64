"""The manifests of the control plane: commands with the flags in use, and the probes of each minor release."""

import pytest

from mockube.apimachinery.schema import minors
from mockube.apimachinery.yaml_decode import load
from mockube.kubeadm.static_pods import ControlPlaneFlags, manifests
from mockube.launch import values_of


def pod(name, minor=minors.NEWEST, **flags):
    texts = manifests(ControlPlaneFlags(minor=minor, **flags), "control-plane-1")
    return load(texts[f"/etc/kubernetes/manifests/{name}.yaml"].encode()).tree


def container(name, minor=minors.NEWEST, **flags):
    return pod(name, minor, **flags)["spec"]["containers"][0]


def test_command_has_the_flags_in_use_and_none_of_mockube():
    server = (
        "--secure-port=7443",
        "--event-ttl=5m",
        "--packs=kruise",
        "--data-dir",
        "/x",
        "--authorization-mode=RBAC",
    )
    command = container("kube-apiserver", server=server)["command"]
    assert command[0] == "kube-apiserver"
    assert command[1:] == sorted(command[1:])
    assert {"--secure-port=7443", "--event-ttl=5m", "--authorization-mode=RBAC"} <= {*command}
    assert not [word for word in command if "packs" in word or "data-dir" in word]


def members_of_etcd(node, names_before):
    """Return the flags about the members of etcd."""
    texts = manifests(ControlPlaneFlags(minor=minors.NEWEST), node, names_before)
    command = load(texts["/etc/kubernetes/manifests/etcd.yaml"].encode()).tree["spec"]["containers"][0][
        "command"
    ]
    return [word for word in command if word.startswith("--initial-cluster")]


def test_etcd_of_the_first_node_begins_a_cluster():
    assert members_of_etcd("control-plane-1", ()) == [
        "--initial-cluster=control-plane-1=https://$(NODE_IP):2380"
    ]


def test_etcd_of_a_later_node_joins_the_members_that_are_there():
    assert members_of_etcd("control-plane-3", ("control-plane-1", "control-plane-2")) == [
        (
            "--initial-cluster=control-plane-1=https://$(NODE_IP:control-plane-1):2380,"
            "control-plane-2=https://$(NODE_IP:control-plane-2):2380,control-plane-3=https://$(NODE_IP):2380"
        ),
        "--initial-cluster-state=existing",
    ]


def test_free_port_is_shown_as_the_default_one():
    assert container("kube-apiserver", server=("--secure-port", "0"))["ports"][0]["containerPort"] == 6443


def test_values_of_flags_are_the_last_ones():
    assert values_of(["--a=1", "--b", "2", "--c", "--a=3"]) == {"a": "3", "b": "2", "c": "true"}


def test_pod_is_critical_and_in_the_network_of_its_node():
    spec = pod("kube-scheduler")["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["hostNetwork"]) == (
        "system-node-critical",
        2000001000,
        True,
    )


@pytest.mark.parametrize(
    ("minor", "port", "paths"),
    [
        ("1.30", 2381, ("/health?exclude=NOSPACE&serializable=true", None)),
        ("1.33", 2381, ("/livez", "/readyz")),
        ("1.34", "probe-port", ("/livez", "/readyz")),
    ],
)
def test_probes_of_etcd_are_those_of_the_minor(minor, port, paths):
    etcd = container("etcd", minor)
    ready = (etcd.get("readinessProbe") or {}).get("httpGet", {}).get("path")
    assert (etcd["livenessProbe"]["httpGet"]["port"], (etcd["livenessProbe"]["httpGet"]["path"], ready)) == (
        port,
        paths,
    )
    has_new_flags = "--feature-gates=InitialCorruptCheck=true" in etcd["command"]
    assert has_new_flags is (minor == "1.34")


@pytest.mark.parametrize(("minor", "path"), [("1.31", "/healthz"), ("1.32", "/livez")])
def test_probe_of_the_scheduler_is_that_of_the_minor(minor, path):
    scheduler = container("kube-scheduler", minor)
    assert scheduler["livenessProbe"]["httpGet"]["path"] == path
    assert ("readinessProbe" in scheduler) is (minor == "1.32")
