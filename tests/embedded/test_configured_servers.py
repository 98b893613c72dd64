"""httpd in containers: a mounted configuration says what it answers, and whether it starts; haproxy and envoy are not simulated."""

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube.apimachinery.pods import assumption_of
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
HTTPD = "Listen 80\nServerName x\nLoadModule mpm_event_module modules/mod_mpm_event.so\nLoadModule alias_module modules/mod_alias.so\n"
SERVERS = {
    "httpd": ("httpd:2.4", "/usr/local/apache2/conf", "httpd.conf", f"{HTTPD}Redirect /old /new\n"),
    "httpd-bad": ("httpd:2.4", "/usr/local/apache2/conf", "httpd.conf", f"{HTTPD}Foo bar\n"),
    "haproxy": ("haproxy:2.9", "/usr/local/etc/haproxy", "haproxy.cfg", "frontend f\n  foo\n"),
    "haproxytech": ("haproxytech/haproxy-alpine:3.2", "/usr/local/etc/haproxy", "haproxy.cfg", "defalts\n  mode http\n"),
    "envoy": ("envoyproxy/envoy:v1.31.0", "/etc/envoy", "envoy.yaml", "foo: 1\n"),
}  # fmt: skip
NOT_SIMULATED = ("haproxy", "haproxytech", "envoy")


def pod(name, image, path, file, text):
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    container = {"name": "c", "image": image}
    if path:
        container["volumeMounts"] = [{"name": "v", "mountPath": path}]
    if not name.endswith("bad"):
        container["ports"] = [{"containerPort": 80}]
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
    for name in ("web", "httpd", "private", *NOT_SIMULATED):
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
    redirect = curl("web", f"http://{cluster.get('Pod', 'httpd')['status']['podIP']}/old")
    assert redirect.startswith("HTTP/1.1 302")
    assert "Server: Apache/2.4" in redirect
    assert "Syntax OK" in curl("httpd", "", "httpd", "-t")


def test_invalid_configuration_ends_the_server(cluster):
    api = official.CoreV1Api(cluster.kubernetes())

    def has_ended():
        statuses = (cluster.get("Pod", "httpd-bad").get("status") or {}).get("containerStatuses") or [{}]
        state = statuses[0].get("lastState") or statuses[0].get("state") or {}
        return (state.get("terminated") or {}).get("exitCode") == 1

    until(has_ended, "the end of httpd-bad")
    text = "Invalid command 'Foo', perhaps misspelled or defined by a module not included in the server configuration"
    assert text in api.read_namespaced_pod_log("httpd-bad", "default")


@pytest.mark.parametrize("name", NOT_SIMULATED)
def test_server_that_is_not_simulated_is_ready_by_assumption_and_claims_nothing(cluster, curl, name):
    image = SERVERS[name][0]
    log = official.CoreV1Api(cluster.kubernetes()).read_namespaced_pod_log(name, "default")
    assert log == f"mockube: container c is simulated: the image {image} does not run\n"
    text = f"the image {image} is not simulated: the container runs without it until it is stopped"
    assert text in assumption_of(cluster.get("Pod", name))
    events = [each for each in cluster.list("Event") if each["involvedObject"]["name"] == name]
    assert text in [each["message"] for each in events if each["reason"] == "NotSimulated"]
    address = cluster.get("Pod", name)["status"]["podIP"]
    assert f"is simulated, but not the image {image}" in curl("web", f"http://{address}/")
    assert not curl(name, "", name.removesuffix("tech"), "--version")


def test_workers_read_files_as_their_own_user(curl):
    assert curl("private", "http://localhost/x").startswith("HTTP/1.1 403")
    assert curl("private", "http://localhost/").startswith("HTTP/1.1 200")


@pytest.mark.parametrize(
    ("image", "folder", "program"),
    [("nginx:1.27", "/etc/nginx", "nginx"), ("httpd:2.4", "/usr/local/apache2/conf", "httpd-foreground")],
)
def test_server_whose_configuration_an_unknown_program_writes_is_not_simulated(
    cluster, image, folder, program
):
    name = f"unknown-{image.partition(':')[0]}"
    mounts = [{"name": "v", "mountPath": folder}]
    writer = {"name": "i", "image": "ghcr.io/projectcontour/contour:v1.33.0", "command": ["bootstrap"]}
    server = {"name": "c", "image": image, "volumeMounts": mounts}
    spec = {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [server]}
    spec["initContainers"] = [writer | {"volumeMounts": mounts}]
    metadata = {"name": name, "namespace": "default"}
    tree = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    cluster.apply(orjson.dumps(tree).decode())
    cluster.wait("Pod", name, "Ready")
    assert f"{program} of the image {image} is not simulated" in assumption_of(cluster.get("Pod", name))
    api = official.CoreV1Api(cluster.kubernetes())
    assert f"{program} does not run" in api.read_namespaced_pod_log(name, "default")
