"""Free resources of a node when another of its pods cannot be parsed."""

import pytest

from mockube.client.cache.store import Store
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.kubelet.node_registry import NodeRegistry


def pod(name, *containers):
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    spec = {"nodeName": "a", "containers": list(containers)}
    return PodView.of({"metadata": metadata, "spec": spec, "status": {}})


def container_requesting(cpu):
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}}


@pytest.mark.parametrize(
    "bad",
    [
        7,
        container_requesting("much"),
        container_requesting([]),
        {"resources": 7},
        {"resources": {"requests": ["cpu"]}},
    ],
)
def test_unreadable_pod_does_not_block_capacity(bad):
    pods = Store()
    pods.add_index(BY_NODE, node_of_pod)
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4"}}}
    for one in (
        pod("web", container_requesting("1")),
        pod("good", container_requesting("2")),
        pod("bad", container_requesting("1"), bad),
    ):
        pods.put(one.key, one)
    nodes = Store()
    nodes.put(Key("", "a"), node)
    registry = NodeRegistry(nodes, pods, details=False)
    room = registry.context_of(pods.get("default", "web"), node).resources
    assert room.used() == {"cpu": 2000}
    assert room.allocatable() == {"cpu": 4000}


def test_pending_resize_of_other_pod_does_not_count():
    pods = Store()
    pods.add_index(BY_NODE, node_of_pod)
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "4"}}}
    other = pod("other", container_requesting("3"))
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "1"}}]}
    other = PodView.of({**other.object, "status": status})
    for one in (pod("web", container_requesting("1")), other):
        pods.put(one.key, one)
    nodes = Store()
    nodes.put(Key("", "a"), node)
    registry = NodeRegistry(nodes, pods, details=False)
    assert registry.context_of(pods.get("default", "web"), node).resources.used() == {"cpu": 1000}
