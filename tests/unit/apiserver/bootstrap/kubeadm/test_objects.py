"""The objects that kubeadm creates, for each minor release."""

from datetime import UTC, datetime

import pytest

from mockube.apimachinery import kubeadm_releases as releases
from mockube.apimachinery.ip_addresses import dns_address
from mockube.apimachinery.schema import minors
from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.bootstrap.kubeadm.objects import DATA, ClusterFacts, objects
from tools.kubeadm_objects import encoded_objects


def made(minor=minors.NEWEST, **facts):
    """Return the objects by kind and name."""
    values = {
        "server": "https://127.0.0.1:6443",
        "authority": b"ca",
        "service_network": "10.96.0.0/12",
        "pod_network": "10.244.0.0/16",
        "token": ("abcdef", "0123456789abcdef"),
        "now": datetime(2026, 1, 1, tzinfo=UTC),
        **facts,
    }
    return {
        (tree["kind"], tree["metadata"]["name"]): tree
        for tree in objects(ClusterFacts(minor=minor, **values))
    }


def test_data_is_that_of_the_manifests():
    assert DATA.read_bytes() == encoded_objects()


@pytest.mark.parametrize("minor", minors.MINORS)
def test_images_are_those_of_the_minor(minor):
    trees = made(minor)
    [coredns] = trees["Deployment", "coredns"]["spec"]["template"]["spec"]["containers"]
    assert coredns["image"] == f"registry.k8s.io/coredns/coredns:{releases.VERSIONS[minor].coredns}"
    [proxy] = trees["DaemonSet", "kube-proxy"]["spec"]["template"]["spec"]["containers"]
    assert proxy["image"] == f"registry.k8s.io/kube-proxy:v{minors.RELEASES[minor]}"
    assert "--hostname-override=$(NODE_NAME)" in proxy["command"]


@pytest.mark.parametrize(("minor", "api"), [("1.30", "v1beta3"), ("1.31", "v1beta4"), ("1.37", "v1beta4")])
def test_uploaded_configuration_has_the_version_and_the_networks(minor, api):
    text = made(minor)["ConfigMap", "kubeadm-config"]["data"]["ClusterConfiguration"]
    configuration = load(text.encode()).tree
    assert configuration["apiVersion"] == f"kubeadm.k8s.io/{api}"
    assert configuration["networking"] == {
        "dnsDomain": "cluster.local",
        "podSubnet": "10.244.0.0/16",
        "serviceSubnet": "10.96.0.0/12",
    }
    assert ("encryptionAlgorithm" in configuration) is (api == "v1beta4")
    assert configuration["kubernetesVersion"] == f"v{minors.RELEASES[minor]}"


def test_embedded_documents_are_yaml():
    trees = made()
    for name, key in (
        ("kubelet-config", "kubelet"),
        ("kube-proxy", "config.conf"),
        ("kube-proxy", "kubeconfig.conf"),
    ):
        tree = load(trees["ConfigMap", name]["data"][key].encode()).tree
        assert tree["apiVersion"]
    assert load(trees["ConfigMap", "kube-proxy"]["data"]["config.conf"].encode()).tree["mode"] == "iptables"
    info = load(trees["ConfigMap", "cluster-info"]["data"]["kubeconfig"].encode()).tree
    assert info["clusters"] == [
        {"cluster": {"certificate-authority-data": "Y2E=", "server": "https://127.0.0.1:6443"}, "name": ""}
    ]


def test_token_expires_after_a_day():
    secret = made()["Secret", "bootstrap-token-abcdef"]
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    assert secret["stringData"]["expiration"] == "2026-01-02T00:00:00Z"
    assert secret["stringData"]["token-secret"] == "0123456789abcdef"


def test_older_coredns_has_numbers_for_probe_ports():
    [old] = made("1.33")["Deployment", "coredns"]["spec"]["template"]["spec"]["containers"]
    [new] = made("1.34")["Deployment", "coredns"]["spec"]["template"]["spec"]["containers"]
    assert (old["readinessProbe"]["httpGet"]["port"], len(old["ports"])) == (8181, 3)
    assert (new["readinessProbe"]["httpGet"]["port"], len(new["ports"])) == ("readiness-probe", 5)


@pytest.mark.parametrize(("minor", "limits"), [("1.30", False), ("1.31", True)])
def test_corefile_of_a_minor_limits_the_cache_or_not(minor, limits):
    assert (
        "disable success cluster.local" in made(minor)["ConfigMap", "coredns"]["data"]["Corefile"]
    ) is limits


def test_service_of_dns_has_the_tenth_address():
    assert made()["Service", "kube-dns"]["spec"]["clusterIP"] == "10.96.0.10"
    assert dns_address("10.0.0.0/24,fd00::/108") == "10.0.0.10"
    with pytest.raises(ValueError, match="has no room for the address of kube-dns"):
        dns_address("10.0.0.0/29")
