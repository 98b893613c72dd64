"""Servers that scripts hide: each listens, is probed, logs and ends as one that is named."""

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SITE = "echo 'server { listen 8090; return 200 hi; }' > /etc/nginx/conf.d/default.conf"
WAYS = {
    "plain": f"{SITE}; exec nginx -g 'daemon off;'",
    "variable": f"{SITE}; S=ngi; exec ${{S}}nx -g 'daemon off;'",
    "evaluated": f"{SITE}; eval \"exec ng''inx -g 'daemon off;'\"",
    "sourced": f"{SITE}; printf 'exec n%s -g \"daemon off;\"\\n' ginx > /tmp/x; . /tmp/x",
    "decoded": f"{SITE}; echo ZXhlYyBuZ2lueCAtZyAnZGFlbW9uIG9mZjsnCg== | base64 -d > /tmp/x; exec sh /tmp/x",
}
OTHERS = {
    "redis-plain": ("redis:8", "exec redis-server --port 7000", 7000),
    "redis-variable": ("redis:8", "P=7000; S=redis; exec $S-server --port $P", 7000),
    "redis-pipe": (
        "redis:8",
        "echo 'exec redis-server --port 7000' | sh",
        7000,
    ),
    "python-plain": ("python:3.12", "exec python -m http.server 8001", 8001),
    "python-xargs": ("python:3.12", "mkdir /x && cd /x && echo http.server 8001 | xargs python -m", 8001),
    "httpd-live": ("busybox:1.36", "wget -qO /tmp/x http://nosuch; H=ht; exec ${H}tpd -f -p 8002", 8002),
}


def pod(name, image, text, port):
    container = {"name": "c", "image": image, "command": ["sh", "-c", text]}
    action = "httpGet" if image.startswith("nginx") else "tcpSocket"
    container["readinessProbe"] = {action: {"port": port}, "periodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


@pytest.fixture(scope="module")
def cluster(module_cluster):
    for way, text in WAYS.items():
        module_cluster.apply(orjson.dumps(pod(way, "nginx:1.27", text, 8090)).decode())
    for name, (image, text, port) in OTHERS.items():
        module_cluster.apply(orjson.dumps(pod(name, image, text, port)).decode())
    return module_cluster


def test_hidden_server_is_the_same_as_one_that_is_named(cluster):
    api, logs = official.CoreV1Api(cluster.kubernetes()), {}
    for way in WAYS:
        cluster.wait("Pod", way, "Ready", timeout=30)
        log = api.read_namespaced_pod_log(way, "default")
        logs[way] = [line.partition("] ")[2] for line in log.splitlines() if "notice" in line]
    assert logs["plain"]
    assert logs == dict.fromkeys(WAYS, logs["plain"])
    events = api.list_namespaced_event("default").items
    assert not [event.message for event in events if event.reason == "NotSimulated"]


def test_hidden_servers_of_images_and_of_programs_listen(cluster):
    api = official.CoreV1Api(cluster.kubernetes())
    for name in OTHERS:
        cluster.wait("Pod", name, "Ready", timeout=30)
    logs = {name: api.read_namespaced_pod_log(name, "default") for name in OTHERS}
    assert "Ready to accept connections" in logs["redis-plain"]
    assert logs["redis-variable"] == logs["redis-plain"] == logs["redis-pipe"]


def test_database_that_a_script_hides_has_its_options(cluster):
    address = cluster.get("Pod", "redis-variable")["status"]["podIP"]
    client = stream(
        official.CoreV1Api(cluster.kubernetes()).connect_get_namespaced_pod_exec, "redis-plain", "default", container="c",
        command=["redis-cli", "-h", address, "-p", "7000", "CONFIG", "GET", "port"], stdout=True, stderr=True,
    )  # fmt: skip
    assert client.split() == ["port", "7000"]


def test_port_is_closed_where_no_program_was_called(cluster):
    closed = pod("closed", "busybox:1.36", "wget -qO- http://nosuch; echo httpd -f -p 8003; sleep inf", 8003)
    cluster.apply(orjson.dumps(closed).decode())
    cluster.wait("Pod", "closed", lambda tree: (tree.get("status") or {}).get("phase") == "Running")
    address = cluster.get("Pod", "closed")["status"]["podIP"]
    said = stream(
        official.CoreV1Api(cluster.kubernetes()).connect_get_namespaced_pod_exec, "httpd-live", "default", container="c",
        command=["wget", "-qO-", f"http://{address}:8003"], stdout=True, stderr=True,
    )  # fmt: skip
    assert "Connection refused" in said
