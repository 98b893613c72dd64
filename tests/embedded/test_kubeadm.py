"""The profile kubeadm: what `kubectl get` shows of the control plane, and that it does what it says."""

import urllib.request
from datetime import datetime

import pytest

from mockube import Cluster
from tests.support.node_shell import on_node
from tests.support.processes.acknowledged_writes import until

SYSTEM = {"namespace": "kube-system"}
STATIC = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


@pytest.fixture(scope="module")
def kubeadm():
    with Cluster(profile="kubeadm", nodes=1) as cluster:
        yield cluster


def is_ready(pod):
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_control_plane_has_the_labels_and_the_taint_of_kubeadm(kubeadm):
    node = kubeadm.get("Node", "control-plane-1")
    labels = node["metadata"]["labels"]
    assert labels["node-role.kubernetes.io/control-plane"] == ""
    assert labels["node.kubernetes.io/exclude-from-external-load-balancers"] == ""
    assert node["spec"]["taints"] == [
        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    ]
    assert kubeadm.get("Node", "node-1")["spec"].get("taints") is None


def test_static_pods_are_ready_at_once_and_outlive_their_deletion(kubeadm):
    for name in STATIC:
        pod = kubeadm.wait("Pod", f"{name}-control-plane-1", is_ready, **SYSTEM)
        assert pod["spec"]["priorityClassName"] == "system-node-critical"
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "Node"
    before = kubeadm.get("Pod", "etcd-control-plane-1", **SYSTEM)
    kubeadm.delete("Pod", "etcd-control-plane-1", **SYSTEM)
    # The kubelet removes the mirror pod shortly after it was deleted, so that clients see the deletion.
    after = kubeadm.wait(
        "Pod",
        "etcd-control-plane-1",
        lambda tree: is_ready(tree) and tree["metadata"]["uid"] != before["metadata"]["uid"],
        **SYSTEM,
    )
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    address = after["status"]["hostIP"]
    assert f"--advertise-client-urls=https://{address}:2379" in after["spec"]["containers"][0]["command"]


def test_log_of_etcd_says_what_there_is_in_its_place(kubeadm):
    kubeadm.wait("Pod", "etcd-control-plane-1", is_ready, **SYSTEM)
    assert "this is not etcd" in kubeadm.logs("etcd-control-plane-1", **SYSTEM)


def test_addons_run_on_all_nodes(kubeadm):
    kubeadm.wait("Deployment", "coredns", lambda tree: tree["status"].get("readyReplicas") == 2, **SYSTEM)
    kubeadm.wait("DaemonSet", "kube-proxy", lambda tree: tree["status"].get("numberReady") == 2, **SYSTEM)
    assert kubeadm.get("Service", "kube-dns", **SYSTEM)["spec"]["clusterIP"] == "10.0.0.10"


def test_bootstrap_token_signs_the_information_of_the_cluster(kubeadm):
    [secret] = [
        each for each in kubeadm.list("Secret", **SYSTEM) if each["type"] == "bootstrap.kubernetes.io/token"
    ]
    token = secret["metadata"]["name"].removeprefix("bootstrap-token-")
    kubeadm.wait(
        "ConfigMap",
        "cluster-info",
        lambda tree: f"jws-kubeconfig-{token}" in tree["data"],
        namespace="kube-public",
    )


METRICS_SERVER = """
apiVersion: v1
kind: Service
metadata: {name: metrics-server, namespace: kube-system}
spec: {ports: [{port: 443, targetPort: https}], selector: {k8s-app: metrics-server}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: metrics-server, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: metrics-server}}
  template:
    metadata: {labels: {k8s-app: metrics-server}}
    spec:
      containers:
        - name: metrics-server
          image: registry.k8s.io/metrics-server/metrics-server:v0.8.1
          args: [--cert-dir=/tmp, --secure-port=10250, --kubelet-insecure-tls]
          ports: [{containerPort: 10250, name: https}]
          readinessProbe: {httpGet: {path: /readyz, port: https, scheme: HTTPS}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system}
"""


def test_metrics_are_served_without_objects_that_a_metrics_server_creates(kubeadm):
    """A chart cannot be installed where its objects exist: as in kind and kubeadm, none of them does."""
    kinds = (
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    )
    names = [each["metadata"]["name"] for kind in kinds for each in kubeadm.list(kind, namespace="")]
    assert [name for name in names if "metrics-server" in name or name.endswith(".metrics.k8s.io")] == []
    assert [each["metadata"]["name"] for each in kubeadm.list("NodeMetrics")]


def test_metrics_come_from_a_metrics_server_that_is_installed(kubeadm):
    def has_status(status):
        return lambda tree: any(
            each["type"] == "Available" and each["status"] == status
            for each in tree["status"].get("conditions", ())
        )

    name = "v1beta1.metrics.k8s.io"
    installed = kubeadm.apply(METRICS_SERVER)
    kubeadm.wait("APIService", name, has_status("True"))
    kubeadm.scale("Deployment", "metrics-server", 0, **SYSTEM)
    found = kubeadm.wait("APIService", name, has_status("False"))
    assert found["status"]["conditions"][0]["reason"] == "MissingEndpoints"
    kubeadm.scale("Deployment", "metrics-server", 1, **SYSTEM)
    kubeadm.wait("APIService", name, has_status("True"))
    kubeadm.delete(installed)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"profile": "kind"}, "profile must be kubeadm or minimal, not 'kind'"),
        ({"profile": "kubeadm", "control_planes": 0}, "control_planes must be from 1 to 15, not 0"),
        ({"control_planes": 3}, "control_planes needs profile='kubeadm'"),
    ],
)
def test_invalid_profile_is_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        Cluster(**options)


CLIENT = """
apiVersion: v1
kind: Pod
metadata: {name: client}
spec: {containers: [{name: c, image: busybox, command: [sleep, "3600"]}]}
"""
KUBERNETES = "kubernetes.default.svc.cluster.local."


def look_up(cluster, name):
    """Return what nslookup prints; a name that nobody resolves ends it with an error."""
    return cluster.exec("client", ["sh", "-c", f"nslookup -type=a -timeout=1 {name}; true"]).stdout


def wait_for_replicas(cluster, count, field="readyReplicas"):
    cluster.wait("Deployment", "coredns", lambda tree: tree["status"].get(field, 0) == count, **SYSTEM)


def test_names_are_resolved_by_the_corefile_of_ready_pods():
    with Cluster(profile="kubeadm", nodes=1) as cluster:
        check_resolution(cluster)


def test_name_servers_count_the_queries_of_pods():
    with Cluster(profile="kubeadm", nodes=1) as cluster:
        cluster.apply(CLIENT)
        cluster.wait("Pod", "client", is_ready)
        wait_for_replicas(cluster, 2)
        for name in (KUBERNETES, KUBERNETES, "missing.default.svc.cluster.local."):
            look_up(cluster, name)
        addresses = [
            pod["status"]["podIP"] for pod in cluster.list("Pod", labels="k8s-app=kube-dns", **SYSTEM)
        ]
        lines = [
            line
            for address in addresses
            for line in cluster.exec(
                "client", ["wget", "-qO-", f"http://{address}:9153/metrics"]
            ).stdout.splitlines()
        ]

        def total(name, *labels):
            found = [
                line
                for line in lines
                if line.startswith(f"{name}{{") and all(each in line for each in labels)
            ]
            return sum(int(line.rpartition(" ")[2]) for line in found)

        assert total("coredns_dns_requests_total", 'type="A"', 'proto="udp"', 'zone="."') == 3
        assert total("coredns_dns_responses_total", 'plugin="kubernetes"', 'rcode="NOERROR"') == 2
        assert total("coredns_dns_responses_total", 'rcode="NXDOMAIN"') == 1


@pytest.mark.parametrize(
    ("networks", "pods", "name_server", "first"),
    [
        ("10.96.0.0/12", "10.128.0.0/9", "10.96.0.10", "10.96.0.1"),
        (
            "fd00:10:96::/112,10.96.0.0/16",
            "fd00:10:244::/56,10.128.0.0/9",
            "fd00:10:96::a",
            "fd00:10:96::1",
        ),
    ],
    ids=["ipv4", "dual-stack"],
)
def test_name_server_has_the_tenth_address_of_the_range_of_services(networks, pods, name_server, first):
    flags, manager_flags = [f"--service-cluster-ip-range={networks}"], [f"--cluster-cidr={pods}"]
    with Cluster(profile="kubeadm", nodes=1, flags=flags, manager_flags=manager_flags) as cluster:
        service = cluster.get("Service", "kube-dns", **SYSTEM)
        assert service["spec"]["clusterIP"] == name_server
        kubelet = cluster.get("ConfigMap", "kubelet-config", **SYSTEM)["data"]["kubelet"]
        assert f"- {name_server}\n" in kubelet
        cluster.apply(CLIENT.replace('sleep, "3600"', 'sh, -c, "cat /etc/resolv.conf; sleep 3600"'))
        cluster.wait("Pod", "client", is_ready)
        assert f"nameserver {name_server}\n" in cluster.logs("client")
        wait_for_replicas(cluster, 2)
        kind = "aaaa" if ":" in first else "a"
        answer = cluster.exec("client", ["nslookup", f"-type={kind}", KUBERNETES]).stdout
        assert f"Address: {first}\n" in answer


def test_advance_of_a_quiet_cluster_leaps(kubeadm):
    before = len(kubeadm.leaps)
    kubeadm.advance(7200)
    seconds = [(leap.end - leap.start).total_seconds() for leap in kubeadm.leaps[before:]]
    assert (
        max(seconds) > 600
    )  # the first and the last one end where the advance does, and where something is due


def check_resolution(kubeadm):
    kubeadm.apply(CLIENT)
    kubeadm.wait("Pod", "client", is_ready)
    wait_for_replicas(kubeadm, 2)
    assert "Address: 10.0.0.1\n" in look_up(kubeadm, KUBERNETES)

    text = kubeadm.get("ConfigMap", "coredns", **SYSTEM)["data"]["Corefile"]
    hosts = text.replace(
        "ready\n", "ready\n    hosts {\n      10.1.2.3 static.example.org\n      fallthrough\n    }\n"
    )
    kubeadm.patch("ConfigMap", "coredns", {"data": {"Corefile": hosts}}, **SYSTEM)
    kubeadm.advance(120)  # the kubelet writes the file, and the plugin reload reads it
    assert "Address: 10.1.2.3\n" in look_up(kubeadm, "static.example.org.")

    kubeadm.patch("ConfigMap", "coredns", {"data": {"Corefile": text.replace("errors", "eror")}}, **SYSTEM)
    kubeadm.advance(120)
    assert "Address: 10.1.2.3\n" in look_up(kubeadm, "static.example.org."), "a mistake changes nothing"
    kubeadm.scale("Deployment", "coredns", 0, **SYSTEM)
    wait_for_replicas(kubeadm, 0)
    assert "no servers could be reached" in look_up(kubeadm, KUBERNETES)

    kubeadm.scale("Deployment", "coredns", 1, **SYSTEM)
    wait_for_replicas(kubeadm, 1, "replicas")
    [pod] = [
        each for each in kubeadm.list("Pod", **SYSTEM) if each["metadata"]["name"].startswith("coredns-")
    ]
    kubeadm.wait(
        "Pod",
        pod["metadata"]["name"],
        lambda tree: tree["status"]["containerStatuses"][0]["restartCount"],
        **SYSTEM,
    )
    log = kubeadm.logs(pod["metadata"]["name"], **SYSTEM)
    assert "Error during parsing: Unknown directive 'eror'" in log
    assert "no servers could be reached" in look_up(kubeadm, KUBERNETES)


def test_node_without_kube_proxy_does_not_see_new_services(kubeadm):
    kubeadm.apply(CLIENT)
    wait_for_replicas(kubeadm, 2)
    kubeadm.wait("Pod", "client", is_ready)
    kubeadm.wait("DaemonSet", "kube-proxy", lambda tree: tree["status"].get("numberReady") == 2, **SYSTEM)
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"none": "none"}}}}}
    kubeadm.patch("DaemonSet", "kube-proxy", selector, **SYSTEM)
    kubeadm.wait(
        "DaemonSet", "kube-proxy", lambda tree: not tree["status"].get("currentNumberScheduled"), **SYSTEM
    )
    name, metadata = {"app": "late"}, {"name": "late", "labels": {"app": "late"}}
    kubeadm.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        }
    )
    kubeadm.wait("Pod", "late", is_ready)
    kubeadm.apply(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "late"},
            "spec": {"selector": name, "ports": [{"port": 80}]},
        }
    )
    fetch = ["wget", "-qO-", "-T", "1", "http://late"]
    assert kubeadm.exec("client", fetch).exit_code == 1
    kubeadm.patch(
        "DaemonSet",
        "kube-proxy",
        {"spec": {"template": {"spec": {"nodeSelector": {"none": None}}}}},
        **SYSTEM,
    )
    kubeadm.wait("DaemonSet", "kube-proxy", lambda tree: tree["status"].get("numberReady") == 2, **SYSTEM)
    assert "Welcome to nginx" in kubeadm.exec("client", fetch).stdout


def test_kube_proxy_with_an_invalid_configuration_restarts_and_says_why(kubeadm):
    names = {each["metadata"]["name"] for each in proxies(kubeadm)}
    good = kubeadm.get("ConfigMap", "kube-proxy", **SYSTEM)["data"]
    kubeadm.patch("ConfigMap", "kube-proxy", {"data": {"config.conf": "kind: [x"}}, **SYSTEM)
    kubeadm.rollout_restart("DaemonSet", "kube-proxy", **SYSTEM)
    until(lambda: {each["metadata"]["name"] for each in proxies(kubeadm)} - names, "a new pod")
    (name,) = {each["metadata"]["name"] for each in proxies(kubeadm)} - names
    kubeadm.wait("Pod", name, lambda tree: tree["status"]["containerStatuses"][0]["restartCount"], **SYSTEM)
    assert '"command failed" err="failed complete: failed to decode: yaml: ' in kubeadm.logs(name, **SYSTEM)
    kubeadm.patch("ConfigMap", "kube-proxy", {"data": good}, **SYSTEM)
    kubeadm.advance(400)
    kubeadm.wait("DaemonSet", "kube-proxy", lambda tree: tree["status"].get("numberReady") == 2, **SYSTEM)


def proxies(cluster):
    return cluster.list("Pod", labels="k8s-app=kube-proxy", **SYSTEM)


def published(cluster, name, **fields):
    """Create a Service for the server, and return its node port."""
    spec = {"type": "NodePort", "selector": {"app": "server"}, "ports": [{"port": 80}], **fields}
    cluster.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
    return cluster.get("Service", name)["spec"]["ports"][0]["nodePort"]


def is_served(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}", timeout=5) as response:
            return b"Welcome to nginx" in response.read()
    except OSError:
        return False


def test_published_ports_follow_kube_proxy():
    proxy = ("DaemonSet", "kube-proxy")
    server = {"metadata": {"name": "server", "labels": {"app": "server"}}}
    with Cluster(profile="kubeadm", nodes=1, manager_flags=["--publish"]) as cluster:
        cluster.wait(*proxy, lambda tree: tree["status"].get("numberReady") == 2, **SYSTEM)
        containers = [{"name": "c", "image": "nginx"}]
        cluster.apply({"apiVersion": "v1", "kind": "Pod", **server, "spec": {"containers": containers}})
        cluster.wait("Pod", "server", is_ready)
        early = published(cluster, "early")
        until(lambda: is_served(early), "a Service")
        template = {"spec": {"template": {"spec": {"nodeSelector": {"none": "none"}}}}}
        cluster.patch(*proxy, template, **SYSTEM)
        cluster.wait(*proxy, lambda tree: not tree["status"].get("currentNumberScheduled"), **SYSTEM)
        late = published(cluster, "late")
        key = "default.late.80.node-port"
        record = cluster.wait(
            "ConfigMap", "mockube-published-ports", lambda tree: key in tree["data"], **SYSTEM
        )
        assert "kube-proxy runs on no node" in record["data"][key]
        assert not is_served(late)
        cluster.delete("Service", "early")
        assert is_served(early)
        template = {"spec": {"template": {"spec": {"nodeSelector": {"none": None}}}}}
        cluster.patch(*proxy, template, **SYSTEM)
        until(lambda: is_served(late), "the new Service")
        until(lambda: not is_served(early), "the end of the deleted Service")


def test_programs_of_the_control_plane_are_simulated(kubeadm):
    wait_for_replicas(kubeadm, 2)
    events = kubeadm.list("Event", **SYSTEM)
    assert [event["message"] for event in events if event["reason"] == "NotSimulated"] == []


def test_control_plane_has_the_certificates_of_the_api_server(kubeadm):
    pki = "/etc/kubernetes/pki"
    names = on_node(kubeadm, f"ls {pki} {pki}/etcd").split()
    assert {
        "apiserver.crt",
        "apiserver.key",
        "ca.key",
        "front-proxy-ca.crt",
        "sa.pub",
        "healthcheck-client.key",
    } <= {*names}
    shown = on_node(kubeadm, f"openssl x509 -in {pki}/apiserver.crt -noout -subject -issuer -enddate")
    assert shown.startswith("subject=CN = kube-apiserver\nissuer=CN = kubernetes\nnotAfter=")
    text = on_node(
        kubeadm, f"openssl x509 -in {pki}/apiserver.crt -noout -text | grep -A1 'Alternative Name'"
    )
    assert "DNS:kubernetes.default.svc" in text
    end = datetime.strptime(f"{shown.rpartition('=')[2].strip()} +0000", "%b %d %H:%M:%S %Y GMT %z")
    table = on_node(kubeadm, "kubeadm certs check-expiration")
    assert f"apiserver                  {end:%b %d, %Y %H:%M} UTC" in table
    assert "not simulated" in on_node(kubeadm, f"cat {pki}/ca.key")
