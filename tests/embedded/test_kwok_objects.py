"""kwok's Logs, Exec, Attach and PortForward objects, tested with real clients."""

import os
import re
import socket

import orjson
import pytest
from kubernetes import client as official
from kubernetes import watch
from kubernetes.stream import portforward, stream

from mockube import Cluster

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KINDS = {
    "logs": "Logs",
    "clusterlogs": "ClusterLogs",
    "clusterexecs": "ClusterExec",
    "clusterattaches": "ClusterAttach",
    "clusterportforwards": "ClusterPortForward",
    "metrics": "Metric",
}


def define(cluster):
    anything = "{type: object, x-kubernetes-preserve-unknown-fields: true}"
    for plural, kind in KINDS.items():
        scope = "Cluster" if kind.startswith("Cluster") or kind == "Metric" else "Namespaced"
        cluster.apply(f"""
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.kwok.x-k8s.io}}
spec:
  group: kwok.x-k8s.io
  scope: {scope}
  names: {{plural: {plural}, kind: {kind}}}
  versions: [{{name: v1alpha1, served: true, storage: true, schema: {{openAPIV3Schema: {anything}}}}}]
""")
        cluster.wait("CustomResourceDefinition", f"{plural}.kwok.x-k8s.io", "Established")


def kwok(cluster, kind, name, spec):
    cluster.apply(
        f"{{apiVersion: kwok.x-k8s.io/v1alpha1, kind: {kind}, metadata: {{name: {name}}}, spec: {spec}}}"
    )


def run_pods(cluster, *names):
    for name in names:
        cluster.apply(
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c, image: i}}]}}}}"
        )
    for name in names:
        cluster.wait("Pod", name, "Ready")
    return official.CoreV1Api(cluster.kubernetes())


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, manager_flags=["--allow-host-access"]) as started:
        define(started)
        yield started


def test_logs_object_of_pod_precedes_cluster_logs(cluster, tmp_path):
    pods = run_pods(cluster, "own", "selected", "other")
    (tmp_path / "one").write_text("2030-01-01T00:00:00Z stdout F of the pod\n")
    (tmp_path / "all").write_text("of all\nlast\n")
    kwok(cluster, "Logs", "own", f"{{logs: [{{logsFile: {tmp_path}/one, follow: false}}]}}")
    selector = "{matchNames: [own, selected]}"
    kwok(cluster, "ClusterLogs", "all", f"{{selector: {selector}, logs: [{{logsFile: {tmp_path}/all}}]}}")
    assert pods.read_namespaced_pod_log("own", "default") == "of the pod\n"
    assert pods.read_namespaced_pod_log("selected", "default", tail_lines=1) == "last\n"
    assert "is simulated" in pods.read_namespaced_pod_log("other", "default")
    lines = watch.Watch().stream(pods.read_namespaced_pod_log, "selected", "default", tail_lines=1)
    assert next(lines) == "last"
    with (tmp_path / "all").open("a") as file:
        file.write("written later\n")
    cluster.advance(2)
    assert next(lines) == "written later"


def test_exec_object_runs_command_on_host(cluster, tmp_path):
    pods = run_pods(cluster, "commands")
    local = f"{{workDir: {tmp_path}, envs: [{{name: WORD, value: hello}}]}}"
    kwok(cluster, "ClusterExec", "all", f"{{execs: [{{containers: [c], local: {local}}}]}}")
    said = stream(
        pods.connect_get_namespaced_pod_exec,
        "commands",
        "default",
        command=["sh", "-c", "echo $WORD; pwd"],
        stdout=True,
    )
    assert said == f"hello\n{os.path.realpath(tmp_path)}\n"


def test_port_forward_object_redirects_port(cluster):
    pods = run_pods(cluster, "ports")
    with socket.create_server(("127.0.0.1", 0)) as server:
        target = f"{{address: 127.0.0.1, port: {server.getsockname()[1]}}}"
        kwok(cluster, "ClusterPortForward", "all", f"{{forwards: [{{ports: [80], target: {target}}}]}}")
        forwarded = portforward(pods.connect_get_namespaced_pod_portforward, "ports", "default", ports="80")
        connection = forwarded.socket(80)
        connection.sendall(b"ping")
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(4) == b"ping"
            accepted.sendall(b"pong")
        assert connection.recv(4) == b"pong"
        connection.close()


def test_host_access_objects_are_refused_without_flag(tmp_path):
    with Cluster(nodes=1) as cluster:
        define(cluster)
        pods = run_pods(cluster, "p")
        kwok(cluster, "ClusterLogs", "all", f"{{logs: [{{logsFile: {tmp_path}/secret}}]}}")
        kwok(cluster, "ClusterExec", "all", "{execs: [{local: {}}]}")
        problem = (
            "'all' uses files, commands or ports of the kubelet's machine, which needs --allow-host-access"
        )
        with pytest.raises(official.ApiException, match=problem):
            pods.read_namespaced_pod_log("p", "default")
        with pytest.raises(official.ApiException, match="403"):
            stream(pods.connect_get_namespaced_pod_exec, "p", "default", command=["id"], stdout=True)


METRIC = """
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Metric
metadata: {name: mine}
spec:
  path: /metrics/nodes/{nodeName}/mine
  metrics:
  - {name: up, kind: gauge, dimension: node, value: '1'}
  - name: pod_bytes
    help: "what a pod\n  uses"
    kind: gauge
    dimension: pod
    labels: [{name: pod, value: pod.metadata.name}]
    value: 'pod.Usage("memory") + 0.5'
  - name: cpu_total
    kind: counter
    dimension: container
    labels: [{name: container, value: container.name}, {name: quoted, value: '"a\\"b"'}]
    value: 'pod.CumulativeUsage("cpu", container.name)'
  - name: sizes
    kind: histogram
    dimension: node
    labels: [{name: node, value: node.metadata.name}]
    buckets: [{le: 10, value: "4"}, {le: 1, value: "2"}, {le: 5, value: "1", hidden: true}]
  - {name: no_kind, kind: summary, dimension: node, value: "1"}
  - {name: wrong, kind: gauge, dimension: node, value: 'nothing.at.all'}
"""


def node_page(nodes, page):
    """Return the JSON of an endpoint of the simulated node, read through the node proxy."""
    return orjson.loads(nodes.connect_get_node_proxy_with_path("node-1", page, _preload_content=False).data)


def test_node_metrics_are_those_of_metric_objects_or_kubelet():
    with Cluster(nodes=1) as cluster:
        define(cluster)
        nodes = official.CoreV1Api(cluster.kubernetes())
        usage = {"kwok.x-k8s.io/usage-cpu": "250m", "kwok.x-k8s.io/usage-memory": "1Ki"}
        one = {"containers": [{"name": "c", "image": "i"}]}
        nodes.create_namespaced_pod("default", {"metadata": {"name": "p", "annotations": usage}, "spec": one})
        cluster.wait("Pod", "p", "Ready")
        cluster.advance(8)
        found = nodes.connect_get_node_proxy_with_path("node-1", "metrics/resource")
        assert 'pod_memory_working_set_bytes{namespace="default",pod="p"} 1024\n' in found
        assert 'container_cpu_usage_seconds_total{container="c",namespace="default",pod="p"} ' in found
        assert 2 <= float(re.search(r"\nnode_cpu_usage_seconds_total (\S+)\n", found)[1]) < 4
        assert "resource_scrape_error 0\n" in found
        found = nodes.connect_get_node_proxy_with_path("node-1", "metrics/cadvisor")
        assert re.search(r'container_memory_working_set_bytes{container="c",.*pod="p"} 1024\n', found)
        assert "kubelet_running_pods 1\n" in nodes.connect_get_node_proxy_with_path("node-1", "metrics")
        summary = node_page(nodes, "stats/summary")
        assert [one["podRef"]["name"] for one in summary["pods"]] == ["p"]
        assert summary["node"]["memory"]["workingSetBytes"] == 1024
        assert node_page(nodes, "configz")["kubeletconfig"]["maxPods"] == 1100
        cluster.apply(METRIC)
        cluster.advance(20)
        found = nodes.connect_get_node_proxy_with_path("node-1", "metrics/nodes/node-1/mine").splitlines()
        cpu = found.pop(2)
        assert cpu.startswith('cpu_total{container="c",quoted="a\\"b"} ')
        assert 7 <= float(cpu.rpartition(" ")[2]) < 9
        assert found == [
            "# HELP cpu_total ",
            "# TYPE cpu_total counter",
            "# HELP pod_bytes what a pod uses",
            "# TYPE pod_bytes gauge",
            'pod_bytes{pod="p"} 1024.5',
            "# HELP sizes ",
            "# TYPE sizes histogram",
            'sizes_bucket{node="node-1",le="1"} 2',
            'sizes_bucket{node="node-1",le="10"} 7',
            'sizes_bucket{node="node-1",le="+Inf"} 7',
            'sizes_sum{node="node-1"} 47',
            'sizes_count{node="node-1"} 7',
            "# HELP up ",
            "# TYPE up gauge",
            "up 1",
        ]
        with pytest.raises(official.ApiException, match="404"):
            nodes.connect_get_node_proxy_with_path("node-1", "metrics/nodes/node-2/mine")
