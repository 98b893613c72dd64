"""NetworkPolicies hold for the proxies and the webhooks of an API server that runs on a control-plane node."""

import urllib.request

import pytest
from kubernetes import client as official
from urllib3.exceptions import ReadTimeoutError

from mockube import Cluster
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
OBJECTS = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec: {containers: [{name: c, image: nginx}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
"""
CLOSED = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}
"""


@pytest.fixture(scope="module")
def kubeadm():
    with Cluster(profile="kubeadm", nodes=1) as cluster:
        cluster.apply(OBJECTS)
        cluster.wait("Pod", "web", "Ready")
        yield cluster


@pytest.fixture
def closed(kubeadm):
    """Close the pod while the test runs."""
    kubeadm.apply(CLOSED)
    yield
    kubeadm.delete("NetworkPolicy", "closed")


def proxied(cluster, kind, **options):
    client = cluster.kubernetes()
    client.rest_client.pool_manager.connection_pool_kw["retries"] = False
    core = official.CoreV1Api(client)
    if kind == "pods":
        return core.connect_get_namespaced_pod_proxy_with_path("web", "default", "index.html", **options)
    return core.connect_get_namespaced_service_proxy_with_path("web", "default", "index.html", **options)


@pytest.mark.parametrize("kind", ["pods", "services"])
def test_proxy_of_an_open_pod_is_answered(kubeadm, kind):
    until(lambda: "Welcome to nginx" in proxied(kubeadm, kind), "the answer")


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize("kind", ["pods", "services"])
def test_proxy_of_a_closed_pod_is_not_answered(kubeadm, kind):
    with pytest.raises(ReadTimeoutError, match="timed out"):
        proxied(kubeadm, kind, _request_timeout=2)


@pytest.mark.usefixtures("closed")
def test_policy_that_names_the_control_plane_lets_it_in(kubeadm):
    node = kubeadm.get("Node", "control-plane-1")["status"]["addresses"][0]["address"]
    rule = {"from": [{"ipBlock": {"cidr": f"{node}/32"}}]}
    kubeadm.patch("NetworkPolicy", "closed", {"spec": {"ingress": [rule]}})
    until(lambda: "Welcome to nginx" in proxied(kubeadm, "pods"), "the answer")


@pytest.mark.usefixtures("closed")
def test_port_forward_goes_by_the_kubelet(kubeadm):
    with kubeadm.port_forward("web", 80) as web, urllib.request.urlopen(web.url, timeout=60) as response:
        assert b"Welcome to nginx" in response.read()


def test_api_server_outside_of_the_cluster_is_not_kept_out():
    with Cluster(nodes=1) as cluster:
        cluster.apply(OBJECTS)
        cluster.apply(CLOSED)
        cluster.wait("Pod", "web", "Ready")
        until(lambda: "Welcome to nginx" in proxied(cluster, "pods"), "the answer")
