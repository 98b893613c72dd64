"""Followers of a server of Redis have its keys while the network leads there, and afterwards those that they had."""

import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
_FOLLOWS = ["redis-server", "--replicaof", "redis-leader", "6379"]
POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "closed"},
    "spec": {"podSelector": {"matchLabels": {"app": "redis-leader"}}, "policyTypes": ["Ingress"]},
}


def _deployment(name, args, replicas):
    container = {"name": "c", "image": "redis:6.0.5", "args": args}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _service(name):
    spec = {"selector": {"app": name}, "ports": [{"port": 6379}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def cluster(module_cluster):
    for name, args, replicas in (("redis-leader", ["redis-server"], 1), ("redis-follower", _FOLLOWS, 2)):
        module_cluster.apply(_deployment(name, args, replicas))
        module_cluster.apply(_service(name))
    for name in ("redis-leader", "redis-follower"):
        module_cluster.wait("Deployment", name, "Available")
        module_cluster.wait("Endpoints", name, lambda endpoints: endpoints.get("subsets"))
    until(lambda: _connected(module_cluster) == 2, "both followers are connected")
    return module_cluster


def redis_cli(cluster, app, *words):
    """Return the output of the first pod with a label."""
    api = official.CoreV1Api(cluster.kubernetes())
    name = cluster.list("Pod", labels={"app": app})[0]["metadata"]["name"]
    return stream(
        api.connect_get_namespaced_pod_exec, name, "default", command=["redis-cli", *words], stdout=True
    )


def _connected(cluster):
    text = redis_cli(cluster, "redis-leader", "info", "replication")
    return next(
        int(line.partition(":")[2]) for line in text.splitlines() if line.startswith("connected_slaves:")
    )


def _follower_has(cluster, key):
    return redis_cli(cluster, "redis-follower", "get", key)


def test_follower_has_what_the_leader_has_and_refuses_writes(cluster):
    assert redis_cli(cluster, "redis-leader", "set", "a", "b") == "OK\n"
    assert redis_cli(cluster, "redis-leader", "-h", "redis-follower", "get", "a") == "b\n"
    refusal = "READONLY You can't write against a read only replica.\n"
    assert redis_cli(cluster, "redis-follower", "set", "a", "c") == refusal
    assert "master_link_status:up\r\n" in redis_cli(cluster, "redis-follower", "info", "replication")


def test_policy_that_closes_the_leader_ends_its_replication(cluster):
    redis_cli(cluster, "redis-leader", "set", "p", "1")
    until(lambda: _follower_has(cluster, "p") == "1\n", "it is replicated")
    cluster.apply(POLICY)
    until(
        lambda: "master_link_status:down\r\n" in redis_cli(cluster, "redis-follower", "info"),
        "the link is broken",
    )
    redis_cli(cluster, "redis-leader", "set", "p", "2")
    assert _follower_has(cluster, "p") == "1\n"
    cluster.delete("NetworkPolicy", "closed")
    until(lambda: _follower_has(cluster, "p") == "2\n", "the link is restored")


@pytest.fixture
def end_leader(cluster):
    """Return a function that ends the leader, which is there again after the test."""

    def scale(replicas):
        cluster.patch("Deployment", "redis-leader", {"spec": {"replicas": replicas}})
        until(
            lambda: (
                len(cluster.list("Pod", labels={"app": "redis-leader"})) == replicas
                and bool(cluster.get("Endpoints", "redis-leader").get("subsets")) == bool(replicas)
            ),
            f"{replicas} leaders",
        )

    yield lambda: scale(0)
    scale(1)
    until(lambda: _connected(cluster) == 2, "both followers are connected again")


def test_followers_keep_keys_while_the_leader_is_away(cluster, end_leader):
    redis_cli(cluster, "redis-leader", "set", "k", "stays")
    until(lambda: _follower_has(cluster, "k") == "stays\n", "it is replicated")
    end_leader()
    until(
        lambda: "master_link_status:down\r\n" in redis_cli(cluster, "redis-follower", "info"),
        "the link is broken",
    )
    assert _follower_has(cluster, "k") == "stays\n"
