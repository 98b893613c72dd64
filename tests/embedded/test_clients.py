"""Third-party Python clients that `Cluster` returns with its connection configured."""

import sys

import pytest
from kubernetes import client as official
from kubernetes_asyncio import client as awaited
from lightkube.resources.core_v1 import Node

from mockube import Cluster
from mockube.clients import NotInstalled

pytestmark = [
    # These clients leave connections open and warn about Kubernetes versions.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]


def test_official_client_works(cluster):
    nodes = official.CoreV1Api(cluster.kubernetes()).list_node().items
    assert [node.metadata.name for node in nodes] == ["node-1", "node-2"]
    (call,) = cluster.calls(resource="nodes", agent="OpenAPI-Generator")
    assert (call.user, call.verb, call.code) == ("kubernetes-admin", "list", 200)


def test_lightkube_works(cluster):
    assert [node.metadata.name for node in cluster.lightkube().list(Node)] == ["node-1", "node-2"]


def test_kr8s_works(cluster):
    assert [node.name for node in cluster.kr8s().get("nodes")] == ["node-1", "node-2"]


async def test_asynchronous_clients_work_in_event_loop():
    async with Cluster(nodes=1) as cluster:
        async with cluster.kubernetes_asyncio() as client:
            nodes = (await awaited.CoreV1Api(client).list_node()).items
            assert [node.metadata.name for node in nodes] == ["node-1"]
        api = await cluster.kr8s()
        assert [node.name async for node in api.get("nodes")] == ["node-1"]
        await api._session.aclose()  # kr8s caches every client and closes none
        client = cluster.lightkube()
        assert [node.metadata.name async for node in client.list(Node)] == ["node-1"]
        await client.close()


def test_client_that_is_not_installed_is_named(cluster, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightkube", None)
    with pytest.raises(NotInstalled, match="pip install lightkube"):
        cluster.lightkube()
