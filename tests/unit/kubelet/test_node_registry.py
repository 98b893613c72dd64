"""Free resources of a node when another of its pods cannot be parsed."""

import pytest

from mockube.client.cache.store import Store
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.kubelet.addresses import NODES_WITH_BLOCKS
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


def registry_of(*nodes, pods=(), **options):
    stored_nodes, stored_pods = Store(), Store()
    stored_pods.add_index(BY_NODE, node_of_pod)
    for each in nodes:
        stored_nodes.put(Key("", each["metadata"]["name"]), each)
    for each in pods:
        stored_pods.put(each.key, each)
    return NodeRegistry(stored_nodes, stored_pods, details=False, **options)


def node_with(name, address="", **spec):
    addresses = [{"type": "InternalIP", "address": address}] if address else []
    return {"metadata": {"name": name}, "spec": spec, "status": {"addresses": addresses}}


@pytest.mark.parametrize(
    ("nodes", "name", "number"),
    [
        ([node_with("node-7")], "node-7", 7),
        ([node_with("node-7", "172.18.0.9")], "node-7", 9),
        ([node_with("node-7", "192.168.0.1")], "node-7", 7),
        ([], "node-7", 7),
        ([node_with("web")], "web", NODES_WITH_BLOCKS),
    ],
)
def test_number_of_a_node_is_that_of_its_address_or_of_its_name(nodes, name, number):
    assert registry_of(*nodes).number_of(name) == number


def test_nodes_without_a_number_get_the_last_ones():
    registry = registry_of()
    numbers = [registry.number_of(name) for name in ("web", "db", "web")]
    assert numbers == [NODES_WITH_BLOCKS, NODES_WITH_BLOCKS - 1, NODES_WITH_BLOCKS]


@pytest.mark.parametrize(
    ("nodes", "address"),
    [
        ([node_with("node-7", "192.168.0.1")], "192.168.0.1"),
        ([node_with("node-7")], "172.18.0.7"),
        ([], "172.18.0.7"),
    ],
)
def test_address_of_a_node_is_that_in_its_status(nodes, address):
    assert registry_of(*nodes).ip_of("node-7") == address


@pytest.mark.parametrize(
    ("options", "spec", "lacks"),
    [
        ({}, {}, False),
        ({"waits_for_pod_cidrs": True}, {}, True),
        ({"waits_for_pod_cidrs": True}, {"podCIDRs": ["10.1.0.0/24"]}, False),
    ],
)
def test_node_may_wait_for_its_pod_cidr(options, spec, lacks):
    assert registry_of(**options).lacks_pod_cidr(node_with("a", **spec)) is lacks


def test_pods_in_the_network_of_a_node_are_others_that_run():
    def host_pod(name, phase="Running", **spec):
        tree = pod(name).object
        return PodView.of({**tree, "spec": {**tree["spec"], **spec}, "status": {"phase": phase}})

    host = {"hostNetwork": True}
    own = host_pod("own", **host)
    pods = [own, host_pod("other", **host), host_pod("ended", "Failed", **host), host_pod("plain")]
    found = registry_of(pods=pods).other_host_pods(own)
    assert [each["metadata"]["name"] for each in found] == ["other"]
