"""The guestbook of Kubernetes' tutorial keeps messages at a leader of Redis, and reads them at its followers."""

import urllib.error
import urllib.request

import pytest
from kubernetes import client as official
from kubernetes.stream import stream

from mockube import Cluster
from tests.support.guestbook import FLAGS, start_guestbook
from tests.support.processes.acknowledged_writes import until

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "closed"},
    "spec": {"podSelector": {"matchLabels": {"app": "redis-leader"}}, "policyTypes": ["Ingress"]},
}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(nodes=1, manager_flags=FLAGS) as started:
        yield started


@pytest.fixture(scope="module")
def url(cluster):
    started = start_guestbook(cluster)
    until(
        lambda: "connected_slaves:2\r\n" in redis_cli(cluster, "redis-leader", "info", "replication"),
        "both followers are connected",
    )
    return started


def get(url):
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.headers["Content-Type"], response.read().decode()


def messages(url):
    """Return what each of the followers has."""
    return {get(f"{url}/guestbook.php?cmd=get&key=guestbook")[1] for _ in range(4)}


def pods_of(cluster, app):
    return cluster.list("Pod", labels={"app": app})


def redis_cli(cluster, app, *words):
    """Return the output of the first pod with a label."""
    api = official.CoreV1Api(cluster.kubernetes())
    name = pods_of(cluster, app)[0]["metadata"]["name"]
    return stream(
        api.connect_get_namespaced_pod_exec, name, "default", command=["redis-cli", *words], stdout=True
    )


def test_message_is_kept_and_read_at_each_follower(url):
    kind, text = get(f"{url}/guestbook.php?cmd=set&key=guestbook&value=,hello")
    assert (kind, text) == ("application/json", '{"message": "Updated"}')
    assert messages(url) == {'{"data": ",hello"}'}


def test_page_has_a_form_and_its_script(url):
    kind, page = get(f"{url}/")
    assert kind == "text/html"
    assert "<form" in page
    assert '<script src="controllers.js"' in page
    assert "guestbook.php?" in get(f"{url}/controllers.js")[1]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"{url}/none")


def test_follower_has_what_the_leader_has_and_refuses_writes(cluster, url):
    assert url
    assert redis_cli(cluster, "redis-leader", "set", "a", "b") == "OK\n"
    assert redis_cli(cluster, "redis-leader", "-h", "redis-follower", "get", "a") == "b\n"
    refusal = "READONLY You can't write against a read only replica.\n"
    assert redis_cli(cluster, "redis-follower", "set", "a", "c") == refusal
    assert "connected_slaves:2\r\n" in redis_cli(cluster, "redis-leader", "info", "replication")
    assert "master_link_status:up\r\n" in redis_cli(cluster, "redis-follower", "info", "replication")


def test_policy_that_closes_the_leader_ends_its_replication(cluster, url):
    assert url
    redis_cli(cluster, "redis-leader", "set", "p", "1")
    until(lambda: redis_cli(cluster, "redis-follower", "get", "p") == "1\n", "it is replicated")
    cluster.apply(POLICY)
    until(
        lambda: "master_link_status:down\r\n" in redis_cli(cluster, "redis-follower", "info"),
        "the link is broken",
    )
    redis_cli(cluster, "redis-leader", "set", "p", "2")
    assert redis_cli(cluster, "redis-follower", "get", "p") == "1\n"
    cluster.delete("NetworkPolicy", "closed")
    until(lambda: redis_cli(cluster, "redis-follower", "get", "p") == "2\n", "the link is restored")


@pytest.fixture
def leader_that_goes_away(cluster, url):
    """Return a function that ends the leader, which is there again after the test."""

    def scale(replicas):
        cluster.patch("Deployment", "redis-leader", {"spec": {"replicas": replicas}})
        until(
            lambda: bool(cluster.get("Endpoints", "redis-leader").get("subsets")) == bool(replicas),
            "the endpoints change",
        )

    yield lambda: scale(0)
    scale(1)
    until(lambda: len(pods_of(cluster, "redis-leader")) == 1, "the leader that has ended is gone")
    until(
        lambda: "Updated" in get(f"{url}/guestbook.php?cmd=set&key=guestbook&value=")[1],
        "the new one is reached",
    )


def test_followers_keep_messages_while_the_leader_is_away(leader_that_goes_away, url):
    get(f"{url}/guestbook.php?cmd=set&key=guestbook&value=,stays")
    leader_that_goes_away()
    text = get(f"{url}/guestbook.php?cmd=set&key=guestbook&value=,lost")[1]
    problem = "Connection refused [tcp://redis-leader:6379]"
    assert f"Uncaught Predis\\Connection\\ConnectionException: {problem}" in text
    assert messages(url) == {'{"data": ",stays"}'}
