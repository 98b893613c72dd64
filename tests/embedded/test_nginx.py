"""nginx in containers: a mounted configuration says what it answers and whether it starts, and containers follow files of others."""

import orjson
import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
SITES = "/etc/nginx/conf.d"
CONFIGURATION = """
server {
  listen 8080;
  location = /healthz { access_log off; return 200 "ok"; }
  location /web/ { proxy_pass http://nginx-web/; }
  location /gone { proxy_pass http://127.0.0.1:9; }
  location /self/ { proxy_pass http://127.0.0.1:8080; }
}
"""


def pod(name, *containers, config=None, labels=None):
    volumes = [{"name": "logs", "emptyDir": {}}]
    mounts = []
    if config:
        volumes.append({"name": "conf", "configMap": {"name": config}})
        mounts = [{"name": "conf", "mountPath": SITES}]
    first = {"name": "c", "image": "nginx:1.27", "volumeMounts": mounts}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [*containers] or [first], "volumes": volumes},
    }


def config_map(name, text):
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"default.conf": text}}


@pytest.fixture(scope="module")
def cluster(module_cluster):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "nginx-web", "namespace": "default"},
        "spec": {"selector": {"app": "nginx-web"}, "ports": [{"port": 80}]},
    }
    proxy = pod("proxy", config="proxy")
    proxy["spec"]["containers"][0]["readinessProbe"] = {
        "httpGet": {"path": "/healthz", "port": 8080},
        "periodSeconds": 1,
    }
    for tree in (
        pod("nginx-web", labels={"app": "nginx-web"}),
        service,
        config_map("proxy", CONFIGURATION),
        config_map("bad", "server {\n  foo bar;\n}\n"),
        config_map("nowhere", "server {\n  location / { proxy_pass http://nosuch; }\n}\n"),
    ):
        module_cluster.apply(orjson.dumps(tree).decode())
    module_cluster.wait("Pod", "nginx-web", "Ready")
    module_cluster.wait("Endpoints", "nginx-web", lambda endpoints: endpoints.get("subsets"))
    module_cluster.apply(orjson.dumps(proxy).decode())
    module_cluster.wait("Pod", "proxy", "Ready")
    return module_cluster


@pytest.fixture(scope="module")
def execute(cluster):
    api = official.CoreV1Api(cluster.kubernetes())

    def run(name, *command, container="c"):
        return stream(
            api.connect_get_namespaced_pod_exec, name, "default", container=container, command=[*command],
            stdout=True, stderr=True,
        )  # fmt: skip

    return run


def log_of(cluster, name, container="c", *, previous=False):
    api = official.CoreV1Api(cluster.kubernetes())
    return api.read_namespaced_pod_log(name, "default", container=container, previous=previous)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (":8080/healthz", "ok200"),
        (":8080/web/index.html", "200"),
        (":8080/web/nope", "404"),
        (":8080/gone", "502"),
        (":8080/self/", "500"),
        (":80/", "000"),
    ],
)
def test_mounted_configuration_says_what_is_answered(execute, path, answer):
    text = execute("nginx-web", "curl", "-s", "-w", "%{http_code}", f"{address(execute)}{path}")
    assert text.endswith(answer)


def address(execute):
    return execute("proxy", "hostname", "-i").strip()


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("bad", f'unknown directive "foo" in {SITES}/default.conf:2'),
        ("nowhere", f'host not found in upstream "nosuch" in {SITES}/default.conf:2'),
    ],
)
def test_server_with_invalid_configuration_ends(cluster, name, problem):
    cluster.apply(orjson.dumps(pod(name, config=name)).decode())
    cluster.wait("Pod", name, lambda tree: tree["status"]["containerStatuses"][0].get("restartCount"))
    assert f"nginx: [emerg] {problem}\n" in log_of(cluster, name, previous=True)


def test_server_that_cannot_write_its_log_ends(cluster):
    mount = {"name": "logs", "mountPath": "/var/log/nginx", "readOnly": True}
    cluster.apply(
        orjson.dumps(pod("readonly", {"name": "c", "image": "nginx", "volumeMounts": [mount]})).decode()
    )
    cluster.wait("Pod", "readonly", lambda tree: tree["status"]["containerStatuses"][0].get("restartCount"))
    reason = 'open() "/var/log/nginx/error.log" failed (30: Read-only file system)'
    log = log_of(cluster, "readonly", previous=True)
    assert f"nginx: [alert] could not open error log file: {reason}\n" in log
    assert f"nginx: [emerg] {reason}\n" in log


def test_other_container_follows_the_log_of_requests(cluster, execute):
    mounts = [{"name": "logs", "mountPath": "/var/log/nginx"}]
    web = {"name": "web", "image": "nginx", "volumeMounts": mounts}
    follow = ["tail", "-f", "/var/log/nginx/access.log"]
    reader = {"name": "reader", "image": "busybox", "command": follow, "volumeMounts": mounts}
    cluster.apply(orjson.dumps(pod("logs", web, reader)).decode())
    cluster.wait("Pod", "logs", "Ready")
    execute("logs", "curl", "-s", "localhost/nope", container="web")
    until(lambda: '"GET /nope HTTP/1.1" 404' in log_of(cluster, "logs", "reader"), "the line of the request")
    assert "/usr/share/nginx/html/nope" in execute(
        "logs", "cat", "/var/log/nginx/error.log", container="reader"
    )
    assert cluster.get("Pod", "logs")["status"]["containerStatuses"][0]["restartCount"] == 0


def test_server_reads_its_configuration_again(execute):
    site = "server { listen 90; return 200 hi; }"
    text = execute(
        "nginx-web",
        "sh",
        "-c",
        f"echo '{site}' > {SITES}/x.conf; nginx -t && nginx -s reload; curl -s localhost:90",
    )
    assert "nginx: configuration file /etc/nginx/nginx.conf test is successful" in text
    assert text.endswith("hi")
    text = execute(
        "nginx-web",
        "sh",
        "-c",
        f"echo 'server {{ nope; }}' > {SITES}/x.conf; nginx -s reload; curl -s localhost:90",
    )
    assert f'nginx: [emerg] unknown directive "nope" in {SITES}/x.conf:1' in text
    assert text.endswith("hi")


def test_sidecar_follows_a_file_that_another_container_writes(cluster):
    mounts = [{"name": "logs", "mountPath": "/var/log"}]
    script = "i=0; while true; do echo line $i >> /var/log/a.log; i=$((i+1)); sleep 0.2; done"
    writer = {"name": "writer", "image": "busybox", "args": ["/bin/sh", "-c", script], "volumeMounts": mounts}
    reader = {
        "name": "reader",
        "image": "busybox",
        "args": ["/bin/sh", "-c", "tail -n+1 -F /var/log/a.log"],
        "volumeMounts": mounts,
    }
    cluster.apply(orjson.dumps(pod("sidecar", reader, writer)).decode())
    cluster.wait("Pod", "sidecar", "Ready")
    until(lambda: "line 3\n" in log_of(cluster, "sidecar", "reader"), "the lines of the other container")
    assert "line 0\nline 1\nline 2\n" in log_of(cluster, "sidecar", "reader")
