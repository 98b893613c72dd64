"""The guestbook of Kubernetes' tutorial: a leader and followers of Redis, and a frontend that is published on this machine."""

import urllib.request

from tests.support.processes.acknowledged_writes import until

_IMAGES = {
    "redis-leader": "docker.io/redis:6.0.5",
    "redis-follower": "us-docker.pkg.dev/google-samples/containers/gke/gb-redis-follower:v2",
    "frontend": "us-docker.pkg.dev/google-samples/containers/gke/gb-frontend:v5",
}
_REPLICAS = {"redis-follower": 2, "frontend": 3}
FLAGS = ["--publish"]
"""The flags of the controller manager with which `start_guestbook` returns a URL."""


def start_guestbook(cluster):
    """Create what the tutorial creates; return the URL of the frontend."""
    for name, image in _IMAGES.items():
        cluster.apply(_deployment(name, image))
        cluster.apply(_service(name))
    for name in _IMAGES:
        cluster.wait("Deployment", name, "Available")
    until(lambda: all(_is_complete(cluster, name) for name in _IMAGES), "all pods are endpoints")
    record = cluster.wait(
        "ConfigMap", "mockube-published-ports", lambda tree: tree["data"], namespace="kube-system"
    )
    usual = f"127.0.0.1:{cluster.get('Service', 'frontend')['spec']['ports'][0]['nodePort']}"
    url = f"http://{record['data'].get('default.frontend.80.node-port', usual)}"
    until(lambda: _is_served(url), "the frontend is published")
    return url


def _is_served(url):
    try:
        urllib.request.urlopen(url, timeout=30).close()
    except OSError:
        return False
    return True


def _is_complete(cluster, name):
    subsets = cluster.get("Endpoints", name).get("subsets") or [{}]
    return len(subsets[0].get("addresses") or ()) == _REPLICAS.get(name, 1)


def _deployment(name, image):
    container = {"name": "c", "image": image, "env": [{"name": "GET_HOSTS_FROM", "value": "dns"}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {
        "replicas": _REPLICAS.get(name, 1),
        "selector": {"matchLabels": {"app": name}},
        "template": template,
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _service(name):
    port = 80 if name == "frontend" else 6379
    kind = "NodePort" if name == "frontend" else "ClusterIP"
    spec = {"type": kind, "selector": {"app": name}, "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
