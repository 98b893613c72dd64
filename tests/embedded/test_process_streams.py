"""Logs, exec, attach and ports of containers that run as local processes."""

import base64

import pytest
from kubernetes import client as official
from kubernetes import watch
from kubernetes.stream import portforward, stream

from mockube import Cluster
from tests.support.process_pods import IMAGES, create, python
from tests.support.processes.acknowledged_writes import until
from tests.support.server.webhook_server import credentials

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


def test_log_of_process_is_followed(cluster, pods):
    script = "import sys\nprint('one')\nsys.stderr.write('two\\n')\nsys.stderr.flush()\nsys.stdin.read()\nprint('three')"
    name = create(pods, python(script, stdin=True, stdinOnce=True), policy="Never")
    cluster.wait("Pod", name, "Ready")
    lines = watch.Watch().stream(pods.read_namespaced_pod_log, name, "default")
    assert {next(lines), next(lines)} == {"one", "two"}
    attached = stream(
        pods.connect_get_namespaced_pod_attach,
        name,
        "default",
        stdin=True,
        stdout=True,
        _preload_content=False,
    )
    attached.write_stdin("x")
    attached.close()
    assert list(lines) == ["three"]


def test_exec_runs_beside_process(cluster, pods):
    name = create(
        pods, {"name": "c", "image": "example.org/server", "env": [{"name": "GREETING", "value": "hi"}]}
    )
    cluster.wait("Pod", name, "Ready")
    call = stream(
        pods.connect_get_namespaced_pod_exec,
        name,
        "default",
        command=["sh", "-c", "echo $GREETING; cat; exit 5"],
        stdin=True,
        stdout=True,
        stderr=True,
        _preload_content=False,
    )
    call.write_stdin("typed\n")
    read = ""
    while "typed" not in read:
        call.update(timeout=1)
        read += call.read_stdout(timeout=1)
    assert read == "hi\ntyped\n"
    call.close()
    unknown = stream(
        pods.connect_get_namespaced_pod_exec, name, "default", command=["no-such"], stderr=True, stdout=True
    )
    assert unknown == ""


def test_exec_tty_of_process_is_a_real_terminal(cluster, pods):
    name = create(pods, {"name": "c", "image": "example.org/server"})
    cluster.wait("Pod", name, "Ready")
    command = ["sh", "-c", "test -t 0 && test -t 1 && stty size && echo yes"]
    said = stream(
        pods.connect_get_namespaced_pod_exec, name, "default", command=command, stdout=True, tty=True
    )
    assert said.endswith("yes\r\n")


def test_port_of_process_is_forwarded_and_proxied(cluster, pods):
    container = {"name": "c", "image": "example.org/server", "ports": [{"containerPort": 8080}]}
    name = create(pods, container | {"readinessProbe": {"httpGet": {"port": 8080}, "periodSeconds": 1}})
    cluster.wait("Pod", name, "Ready")
    assert pods.connect_get_namespaced_pod_proxy(f"{name}:8080", "default") == "served\n"
    forwarded = portforward(pods.connect_get_namespaced_pod_portforward, name, "default", ports="8080")
    connection = forwarded.socket(8080)
    connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
    received = b""
    while data := connection.recv(4096):
        received += data
    connection.close()
    assert received.startswith(b"HTTP/1.0 200 OK")
    assert received.endswith(b"served\n")


HOOK = """
import base64, http.server, json, os, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        patch = [{"op": "add", "path": "/data", "value": {"host": self.headers["Host"], "path": self.path}}]
        answer = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch"}
        answer["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(review).encode())
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", int(os.environ["MOCKUBE_PORT_9443"])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.environ["MOCKUBE_ROOT"] + "/certificate/pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture
def webhook_without_pods(cluster, pods, tmp_path):
    """Create a webhook for ConfigMaps whose Service has no pods yet."""
    _, authority = credentials(tmp_path, ["hook.default.svc"])
    pem = (tmp_path / "webhook.key").read_text() + (tmp_path / "webhook.crt").read_text()
    about = {"name": "hook", "namespace": "default"}
    pods.create_namespaced_secret("default", {"metadata": about, "stringData": {"pem": pem}})
    spec = {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 9443}]}
    pods.create_namespaced_service("default", {"metadata": about, "spec": spec})
    webhook = {
        "name": "hook.example.com",
        "clientConfig": {
            "service": about | {"path": "/x"},
            "caBundle": base64.b64encode(authority).decode(),
        },
        "rules": [
            {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        ],
        "objectSelector": {"matchLabels": {"app": "hooked"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    hooks = official.AdmissionregistrationV1Api(cluster.kubernetes())
    of_configuration = {"name": "hook", "annotations": {"mockube.dev/simulated-webhooks": "refuse"}}
    hooks.create_mutating_webhook_configuration({"metadata": of_configuration, "webhooks": [webhook]})
    yield
    hooks.delete_mutating_webhook_configuration("hook")


def has_endpoint(cluster, pod):
    slices = cluster.list("EndpointSlice")
    endpoints = [endpoint for one in slices for endpoint in one.get("endpoints") or ()]
    return any(
        (endpoint.get("targetRef") or {}).get("name") == pod and endpoint["conditions"]["ready"]
        for endpoint in endpoints
    )


@pytest.mark.usefixtures("webhook_without_pods")
def test_webhook_in_pod_is_called(cluster, pods):
    config_map = {"metadata": {"generateName": "hooked-", "labels": {"app": "hooked"}}}
    metadata = {"labels": {"app": "hook"}}
    simulated = {"name": "c", "image": "example.org/simulated", "ports": [{"containerPort": 9443}]}
    pods.create_namespaced_pod(
        "default", {"metadata": {"name": "simulated", **metadata}, "spec": {"containers": [simulated]}}
    )
    until(lambda: has_endpoint(cluster, "simulated"), "an endpoint")
    with pytest.raises(official.ApiException) as refused:
        pods.create_namespaced_config_map("default", config_map)
    assert "--webhook-service=default/hook=HOST:PORT" in refused.value.body
    pods.delete_namespaced_pod("simulated", "default", grace_period_seconds=0)
    until(lambda: not has_endpoint(cluster, "simulated"), "no endpoint")

    mounts = [{"name": "certificate", "mountPath": "/certificate"}]
    ready = {"tcpSocket": {"port": 9443}, "periodSeconds": 1}
    container = python(HOOK, ports=simulated["ports"], volumeMounts=mounts, readinessProbe=ready)
    volumes = [{"name": "certificate", "secret": {"secretName": "hook"}}]
    spec = {"containers": [container], "volumes": volumes, "terminationGracePeriodSeconds": 5}
    pods.create_namespaced_pod("default", {"metadata": {"name": "hook", **metadata}, "spec": spec})
    until(lambda: has_endpoint(cluster, "hook"), "an endpoint")
    created = pods.create_namespaced_config_map("default", config_map)
    assert created.data == {"host": "hook.default.svc:443", "path": "/x?timeout=10s"}
