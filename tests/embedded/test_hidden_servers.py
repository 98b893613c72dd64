"""Servers that scripts hide: each listens, is probed, logs and ends as one that is named."""

import orjson
import pytest
from kubernetes import client as official

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


def pod(name, image, text, port):
    container = {"name": "c", "image": image, "command": ["sh", "-c", text]}
    container["readinessProbe"] = {"httpGet": {"port": port}, "periodSeconds": 1}
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
