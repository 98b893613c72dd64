"""`pods/log` of simulated containers, read by a real client over HTTPS."""

import base64
import gc
import itertools

import pytest
from kubernetes import client as official
from kubernetes import watch
from websocket import ABNF, WebSocket, WebSocketBadStatusException

from mockube.container_runtime.log_stream import LogStream
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NAMES = map("logs-{}".format, itertools.count())


def start(cluster, script, *, policy="Always", ready=True):
    """Create a pod that runs a script; return its name and the client."""
    name = next(NAMES)
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", script]}
    spec = {"containers": [container], "restartPolicy": policy}
    pods = official.CoreV1Api(cluster.kubernetes())
    pods.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": spec})
    if ready:
        cluster.wait("Pod", name, "Ready")
    return name, pods


def test_log_has_output_of_command(cluster):
    name, pods = start(cluster, "echo hello from $HOSTNAME; while sleep 10; do echo again; done")
    cluster.advance(25)
    log = pods.read_namespaced_pod_log(name, "default")
    assert log == f"hello from {name}\nagain\nagain\n"
    assert pods.read_namespaced_pod_log(name, "default", tail_lines=1) == "again\n"
    assert pods.read_namespaced_pod_log(name, "default", since_seconds=7) == "again\n"
    assert pods.read_namespaced_pod_log(name, "default", limit_bytes=5) == "hello"
    stamped = pods.read_namespaced_pod_log(name, "default", timestamps=True).splitlines()
    assert [line[-6:] for line in stamped[1:]] == [" again", " again"]
    assert stamped[1][29] == "Z"


def test_followed_log_ends_with_container(cluster):
    name, pods = start(cluster, "for i in 1 2 3; do echo $i; sleep 100; done; exit 3", policy="Never")
    lines = watch.Watch().stream(pods.read_namespaced_pod_log, name, "default")
    assert next(lines) == "1"
    cluster.advance(150)
    assert next(lines) == "2"
    cluster.advance(200)
    assert list(lines) == ["3"]


def test_followed_log_ends_with_pod(cluster):
    name, pods = start(cluster, "echo on; sleep inf")
    lines = watch.Watch().stream(pods.read_namespaced_pod_log, name, "default")
    assert next(lines) == "on"
    pods.delete_namespaced_pod(name, "default", grace_period_seconds=0)
    assert list(lines) == []


def test_previous_log_is_that_of_previous_run(cluster):
    name, pods = start(cluster, "echo one run; sleep 5; exit 1")
    with pytest.raises(official.ApiException, match="previous terminated container"):
        pods.read_namespaced_pod_log(name, "default", previous=True)
    cluster.advance(6)
    cluster.wait("Pod", name, "Ready")
    assert pods.read_namespaced_pod_log(name, "default", previous=True) == "one run\n"


def test_waiting_container_has_no_log(cluster):
    pods = official.CoreV1Api(cluster.kubernetes())
    metadata = {"name": next(NAMES), "annotations": {"mockube.dev/waiting-reason": "ImagePullBackOff"}}
    created = pods.create_namespaced_pod(
        "default", {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "app"}]}}
    )
    cluster.advance(1)
    with pytest.raises(official.ApiException, match="trying and failing to pull image"):
        pods.read_namespaced_pod_log(created.metadata.name, "default")


def test_log_shows_mounted_config_map(cluster):
    pods = official.CoreV1Api(cluster.kubernetes())
    name = next(NAMES)
    pods.create_namespaced_config_map("default", {"metadata": {"name": name}, "data": {"colour": "blue"}})
    container = {
        "name": "c",
        "image": "busybox",
        "command": ["cat", "/etc/config/colour"],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}],
    }
    volumes = [{"name": "config", "configMap": {"name": name}}]
    spec = {"containers": [container], "volumes": volumes, "restartPolicy": "Never"}
    pods.create_namespaced_pod("default", {"metadata": {"name": name}, "spec": spec})
    cluster.advance(1)
    assert pods.read_namespaced_pod_log(name, "default") == "blue"


@pytest.mark.parametrize(
    ("protocol", "decode"),
    [("", bytes), ("binary.k8s.io", bytes), ("base64.binary.k8s.io", base64.b64decode)],
    ids=["without a protocol", "binary", "base64"],
)
def test_log_over_websocket_is_sent_as_messages(cluster, protocol, decode):
    script = f"echo {'x' * 5000}; i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); done"
    name, pods = start(cluster, script, policy="Never", ready=False)
    cluster.wait("Pod", name, lambda pod: pod["status"]["phase"] == "Succeeded")
    socket = open_log(pods, name, [protocol] if protocol else None)
    assert socket.getsubprotocol() == (protocol or None)
    messages = []
    while (received := socket.recv_data())[0] != ABNF.OPCODE_CLOSE:
        messages.append(decode(received[1]))
    socket.close()
    assert messages[0] == b""
    assert max(map(len, messages)) == 2048
    expected = [b"x" * 5000, *(b"line %d" % number for number in range(400))]
    assert b"".join(messages).splitlines() == expected


def test_log_over_websocket_supports_base64_protocol(cluster):
    name, pods = start(cluster, "echo on; sleep inf")
    with pytest.raises(WebSocketBadStatusException, match="403 Forbidden"):
        open_log(pods, name, ["v5.channel.k8s.io"])


def open_log(pods, name, protocols):
    configuration = pods.api_client.configuration
    socket = WebSocket(sslopt={"ca_certs": configuration.ssl_ca_cert})
    url = f"{configuration.host}/api/v1/namespaces/default/pods/{name}/log"
    token = configuration.get_api_key_with_prefix("authorization")
    socket.connect(url.replace("http", "ws", 1), subprotocols=protocols, header=[f"Authorization: {token}"])
    return socket


@pytest.mark.parametrize("script", ["sleep inf", "while sleep 1; do echo on; done"], ids=["quiet", "busy"])
def test_disconnected_log_follower_leaves_no_tasks(cluster, caplog, script):
    name, pods = start(cluster, f"echo begun; {script}")
    followed = pods.read_namespaced_pod_log(name, "default", follow=True, _preload_content=False)
    pieces = followed.stream(6)
    assert next(pieces) == b"begun\n"
    assert len(objects_of_type(LogStream)) == 1
    pieces.close()  # closes the connection, too
    if script != "sleep inf":
        cluster.advance(1)
    until(lambda: not objects_of_type(LogStream), "the end of the stream")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def objects_of_type(kind):
    return [id(one) for one in gc.get_objects() if type(one) is kind]
