"""Logs, exec, attach and ports of containers that are processes of this machine."""

import gc

import pytest
from kubernetes import client as official
from kubernetes import watch
from kubernetes.stream import portforward, stream

from mockube import Cluster
from tests.support.process_pods import IMAGES, create, python

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, images=IMAGES) as started:
        yield started


@pytest.fixture(autouse=True)
def left_open_no_longer():
    """Before another test is blamed for what a client leaves open."""
    yield
    gc.collect()


@pytest.fixture
def pods(cluster):
    return official.CoreV1Api(cluster.kubernetes())


def test_a_log_is_followed_as_it_is_written(cluster, pods):
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


def test_commands_run_beside_it(cluster, pods):
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


def test_a_terminal_is_a_real_one(cluster, pods):
    name = create(pods, {"name": "c", "image": "example.org/server"})
    cluster.wait("Pod", name, "Ready")
    command = ["sh", "-c", "test -t 0 && test -t 1 && stty size && echo yes"]
    said = stream(
        pods.connect_get_namespaced_pod_exec, name, "default", command=command, stdout=True, tty=True
    )
    assert said.endswith("yes\r\n")


def test_its_port_is_forwarded_and_proxied(cluster, pods):
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
