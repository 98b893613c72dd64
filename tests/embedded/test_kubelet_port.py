"""Programs in pods reach the kubelets of nodes as metrics-server does: at port 10250 of a node's address, with a token."""

import pytest
from kubernetes import client as official

from mockube import Cluster
from tests.support.pod_network import missing
from tests.support.process_pods import IMAGES, create, is_over, python

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
RIGHTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: scraper}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scraper}
rules: [{apiGroups: [""], resources: [nodes/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scraper}
subjects: [{kind: ServiceAccount, name: scraper, namespace: default}]
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  serviceAccountName: scraper
  containers: [{name: c, image: curlimages/curl, command: [sleep, infinity]}]
"""
TOKEN = "$(cat /var/run/secrets/kubernetes.io/serviceaccount/token)"
SCRAPE = """
import os, ssl, sys, urllib.error, urllib.request
token = open(os.environ["MOCKUBE_ROOT"] + "/var/run/secrets/kubernetes.io/serviceaccount/token").read()
def get(path, **headers):
    request = urllib.request.Request(f"https://{address}:10250{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, context=ssl._create_unverified_context(), timeout=100) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
for address in sys.argv[1:]:
    status, text = get("/metrics/resource", Authorization="Bearer " + token)
    print(status, "node_cpu_usage_seconds_total" in text)
    print(*get("/metrics/resource", Authorization="Bearer wrong"))
    print(*get("/pods", Authorization="Bearer " + token))
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=2, images=IMAGES) as started:
        started.apply(RIGHTS)
        started.wait("Pod", "client", "Ready")
        yield started


def addresses(cluster):
    return {
        node["metadata"]["name"]: node["status"]["addresses"][0]["address"] for node in cluster.list("Node")
    }


def fetch(cluster, address, path, *options):
    command = f"curl -sk -w ' %{{http_code}}' {' '.join(options)} https://{address}:10250{path}"
    return cluster.exec("client", ["sh", "-c", command], timeout=100).stdout


def test_simulated_pod_reads_the_metrics_of_each_node(cluster):
    bearer = f'-H "Authorization: Bearer {TOKEN}"'
    for name, address in addresses(cluster).items():
        text = fetch(cluster, address, "/metrics/resource", bearer)
        assert text.endswith(" 200")
        assert ('pod="client"' in text) is (cluster.get("Pod", "client")["spec"]["nodeName"] == name)


def test_kubelet_authenticates_and_authorizes(cluster):
    address = next(iter(addresses(cluster).values()))
    assert fetch(cluster, address, "/metrics") == "Unauthorized 401"
    assert fetch(cluster, address, "/metrics", "-H 'Authorization: Bearer wrong'") == "Unauthorized 401"
    text = fetch(cluster, address, "/pods", f'-H "Authorization: Bearer {TOKEN}"')
    user = "system:serviceaccount:default:scraper"
    assert text == (f"Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[pods proxy])\n 403")


def test_client_chooses_no_other_node_than_that_of_the_address(cluster):
    (one, address), (other, _) = addresses(cluster).items()
    headers = f'-H "Authorization: Bearer {TOKEN}" -H "Mockube-Node: {other}"'
    text = fetch(cluster, address, "/metrics/resource", headers)
    assert ('pod="client"' in text) is (cluster.get("Pod", "client")["spec"]["nodeName"] == one)


def test_kubelet_that_does_not_run_refuses(cluster):
    own = cluster.get("Pod", "client")["spec"]["nodeName"]
    name, address = next((name, address) for name, address in addresses(cluster).items() if name != own)
    cluster.patch("Node", name, {"metadata": {"annotations": {"mockube.dev/stopped-units": "kubelet"}}})
    result = cluster.exec("client", ["curl", "-sk", f"https://{address}:10250/metrics"], timeout=100)
    assert result.exit_code == 7
    cluster.patch("Node", name, {"metadata": {"annotations": {"mockube.dev/stopped-units": None}}})


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_process_reads_the_metrics_of_each_node(cluster):
    pods = official.CoreV1Api(cluster.kubernetes())
    script = SCRAPE.replace("sys.argv[1:]", repr([*addresses(cluster).values()]))
    name = create(pods, python(script), policy="Never", serviceAccountName="scraper")
    cluster.wait("Pod", name, is_over)
    lines = pods.read_namespaced_pod_log(name, "default").splitlines()
    user = "system:serviceaccount:default:scraper"
    refusal = f"403 Forbidden (user={user}, verb=get, resource=nodes, subresource(s)=[pods proxy])"
    assert [line for line in lines if line] == ["200 True", "401 Unauthorized", refusal] * 2
