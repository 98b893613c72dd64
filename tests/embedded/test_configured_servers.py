"""httpd, haproxy and envoy in containers: a mounted configuration says what they answer, and whether they start."""

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
TIMEOUTS = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n"
HTTPD = "Listen 80\nServerName x\nLoadModule mpm_event_module modules/mod_mpm_event.so\nLoadModule alias_module modules/mod_alias.so\n"
ENVOY = """
admin: {address: {socket_address: {address: 0.0.0.0, port_value: 9901}}}
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web}}]}
  clusters:
  - name: web
    type: STRICT_DNS
    load_assignment:
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: web, port_value: 80}}}}]}]
"""
SERVERS = {
    "httpd": ("httpd:2.4", "/usr/local/apache2/conf", "httpd.conf", f"{HTTPD}Redirect /old /new\n"),
    "haproxy": ("haproxy:2.9", "/usr/local/etc/haproxy", "haproxy.cfg", f"{TIMEOUTS}listen l\n  bind *:80\n  server s web:80 check\n"),
    "envoy": ("envoyproxy/envoy:v1.31.0", "/etc/envoy", "envoy.yaml", ENVOY),
    "httpd-bad": ("httpd:2.4", "/usr/local/apache2/conf", "httpd.conf", f"{HTTPD}Foo bar\n"),
    "haproxy-bad": ("haproxy:2.9", "/usr/local/etc/haproxy", "haproxy.cfg", "frontend f\n  foo\n"),
    "haproxytech-bad": ("haproxytech/haproxy-alpine:3.2", "/usr/local/etc/haproxy", "haproxy.cfg", "defalts\n  mode http\n"),
    "envoy-bad": ("envoyproxy/envoy:v1.31.0", "/etc/envoy", "envoy.yaml", "foo: 1\n"),
}  # fmt: skip


def pod(name, image, path, file, text):
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    container = {"name": "c", "image": image}
    if path:
        container["volumeMounts"] = [{"name": "v", "mountPath": path}]
    if not name.endswith("bad"):
        container["readinessProbe"] = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
    volumes = [{"name": "v", "configMap": {"name": name}}]
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {file: text}}
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], "volumes": volumes},
    }


@pytest.fixture(scope="module")
def cluster(module_cluster):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
    service["spec"] = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    trees = [service, *pod("web", "nginx:1.27", "", "x", "")]
    for name, values in SERVERS.items():
        trees += pod(name, *values)
    for tree in trees:
        module_cluster.apply(orjson.dumps(tree).decode())
    private = "umask 077; echo x > /usr/share/nginx/html/x; nginx -g 'daemon off;'"
    container = {"name": "c", "image": "nginx:1.27", "command": ["sh", "-c", private]}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "private", "namespace": "default"}}
    module_cluster.apply(orjson.dumps(tree | {"spec": {"containers": [container]}}).decode())
    for name in ("web", "httpd", "haproxy", "envoy", "private"):
        module_cluster.wait("Pod", name, "Ready")
    return module_cluster


@pytest.fixture(scope="module")
def curl(cluster):
    api = official.CoreV1Api(cluster.kubernetes())

    def run(name, target, *command):
        command = command or ("curl", "-si", target)
        return stream(
            api.connect_get_namespaced_pod_exec, name, "default", container="c", command=[*command], stderr=True, stdout=True
        )  # fmt: skip

    return run


def test_answers(cluster, curl):
    cluster.wait("Endpoints", "web", lambda endpoints: endpoints.get("subsets"))
    redirect = curl("web", f"http://{cluster.get('Pod', 'httpd')['status']['podIP']}/old")
    assert redirect.startswith("HTTP/1.1 302")
    assert "Server: Apache/2.4" in redirect
    for name in ("haproxy", "envoy"):
        address = cluster.get("Pod", name)["status"]["podIP"]
        assert "Welcome to nginx!" in curl("web", f"http://{address}/"), name
    envoy = cluster.get("Pod", "envoy")["status"]["podIP"]
    assert curl("web", f"http://{envoy}:9901/ready").endswith("LIVE\n")
    assert "Syntax OK" in curl("httpd", "", "httpd", "-t")


def test_invalid_configurations_end_the_server(cluster):
    for name, text in (
        ("httpd-bad", "Invalid command 'Foo', perhaps misspelled or defined by a module not included in the server configuration"),
        ("haproxy-bad", "[ALERT]    (1) : config : parsing [/usr/local/etc/haproxy/haproxy.cfg:2] : unknown keyword 'foo' in 'frontend' section"),
        ("haproxytech-bad", "[ALERT]    (1) : config : parsing [/usr/local/etc/haproxy/haproxy.cfg:1] : unknown keyword 'defalts'"),
        ("envoy-bad", "INVALID_ARGUMENT:foo: Cannot find field.) has unknown fields"),
    ):  # fmt: skip
        api = official.CoreV1Api(cluster.kubernetes())

        def has_ended(name=name):
            statuses = (cluster.get("Pod", name).get("status") or {}).get("containerStatuses") or [{}]
            state = statuses[0].get("lastState") or statuses[0].get("state") or {}
            return (state.get("terminated") or {}).get("exitCode") == 1

        until(has_ended, f"the end of {name}")
        assert text in api.read_namespaced_pod_log(name, "default", previous=False), name


def test_workers_read_files_as_their_own_user(curl):
    assert curl("private", "http://localhost/x").startswith("HTTP/1.1 403")
    assert curl("private", "http://localhost/").startswith("HTTP/1.1 200")


@pytest.mark.parametrize(
    ("image", "path"),
    [
        ("envoyproxy/envoy:v1.31.0", "/etc/envoy/envoy.yaml"),
        ("haproxy:2.9", "/usr/local/etc/haproxy/haproxy.cfg"),
    ],
)
def test_server_whose_configuration_an_unknown_program_writes_is_not_simulated(cluster, image, path):
    name = f"unknown-{image.partition(':')[0].rpartition('/')[2]}"
    mounts = [{"name": "v", "mountPath": path.rpartition("/")[0]}]
    writer = {"name": "i", "image": "ghcr.io/projectcontour/contour:v1.33.0", "command": ["bootstrap", path]}
    server = {"name": "c", "image": image, "volumeMounts": mounts}
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [server]}
    spec["initContainers"] = [writer | {"volumeMounts": mounts}]
    metadata = {"name": name, "namespace": "default"}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    cluster.apply(orjson.dumps(tree).decode())
    text = f"what reads {path}, which the image ghcr.io/projectcontour/contour:v1.33.0 was to write, is not simulated"

    def is_told():
        return any(
            text in event.get("message", "") and event["involvedObject"]["name"] == name
            for event in cluster.list("Event", namespace="default")
        )

    until(is_told, "the event")
    cluster.wait("Pod", name, "Ready")
    api = official.CoreV1Api(cluster.kubernetes())
    assert text.replace("is not simulated", "does not run") in api.read_namespaced_pod_log(name, "default")
