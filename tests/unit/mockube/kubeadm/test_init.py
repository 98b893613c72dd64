"""What kubeadm creates in a new cluster is created once: users delete and change it."""

from datetime import UTC, datetime

import msgspec
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.status import not_found
from mockube.apimachinery.yaml_decode import load
from mockube.client.kinds import CONFIG_MAPS, NAMESPACES
from mockube.client.kubeconfig import Access
from mockube.kubeadm.init import ANNOTATION_MINOR, CONFIGURATION, init
from mockube.kubelet.node_pools.pool import plain_nodes
from mockube.launch import KUBEADM, LaunchOptions


def read_configuration(client):
    return load(client.data["kubeadm-config"]["ClusterConfiguration"].encode()).tree


class Client:
    """A client of a server that has only the namespace kube-system at first."""

    def __init__(self):
        self.annotations, self.created, self.data = {}, [], {}

    async def get(self, resource, key):
        if resource is NAMESPACES:
            return {"metadata": {"name": key.name, "annotations": self.annotations}}
        assert resource is CONFIG_MAPS
        if key.name not in {name for _, name in self.created}:
            raise not_found(resource.group_resource, key.name)
        return {"metadata": {"name": key.name}, "data": self.data.get(key.name)}

    async def patch(self, resource, key, body):
        if resource is CONFIG_MAPS:
            self.data[key.name] |= body["data"]
            return
        assert (resource, key.name) == (NAMESPACES, CONFIGURATION.namespace)
        self.annotations |= body["metadata"]["annotations"]

    async def raw(self, _method, path, body):
        tree = msgspec.json.decode(body)
        self.created.append((tree["kind"], tree["metadata"]["name"]))
        if tree["kind"] == "ConfigMap":
            self.data[tree["metadata"]["name"]] = tree["data"]
        assert path.rpartition("?")[0].rpartition("/")[2] == plural(tree["kind"])


class Clock:
    def now(self):
        return datetime(2026, 1, 1, tzinfo=UTC)


def plural(kind):
    return {"APIService": "apiservices", "StorageClass": "storageclasses"}.get(kind, f"{kind.lower()}s")


async def run(client, *manager_flags, **options):
    access = Access(server="https://127.0.0.1:6443", authority=b"ca")
    options = LaunchOptions(profile=KUBEADM, manager_flags=manager_flags, **options)
    return await init(client, access, options, clock=Clock(), random=SystemRandom())


async def test_objects_are_created_and_marked_with_the_minor():
    client = Client()
    assert await run(client)
    assert client.annotations == {ANNOTATION_MINOR: "1.37"}
    assert {("Deployment", "coredns"), ("StorageClass", "standard")} <= {*client.created}
    assert client.created[-1] == ("ConfigMap", "kubeadm-config")


async def test_deleted_objects_are_not_created_again():
    client = Client()
    await run(client)
    client.created = []
    assert not await run(client)
    assert client.created == []


async def test_cluster_of_a_real_kubeadm_keeps_its_objects():
    client = Client()
    client.created = [("ConfigMap", "kubeadm-config")]
    assert not await run(client)
    assert client.annotations == {}


async def test_cluster_at_another_port_says_so():
    client = Client()
    await run(client)
    other = "https://api.example.org:6443"
    client.data = {
        "cluster-info": {
            "kubeconfig": "- cluster:\n    server: https://127.0.0.1:33411\n  name: x\n",
            "other": "x",
        },
        "kube-proxy": {"kubeconfig.conf": f"server: {other}\n"},
    }
    await run(client)
    assert client.data["cluster-info"] == {
        "kubeconfig": "- cluster:\n    server: https://127.0.0.1:6443\n  name: x\n",
        "other": "x",
    }
    assert client.data["kube-proxy"] == {"kubeconfig.conf": f"server: {other}\n"}


async def test_interrupted_start_is_repeated():
    client = Client()
    client.created = [("Deployment", "coredns")]
    assert await run(client)


@pytest.mark.parametrize("flag", ["--controllers=*,-simulated-storage-class"])
async def test_storage_class_is_left_out_where_flags_exclude_what_creates_it(flag):
    client = Client()
    await run(client, flag)
    assert ("StorageClass", "standard") not in client.created


@pytest.mark.parametrize(
    ("control_planes", "flags", "endpoint"),
    [(1, (), None), (3, (), "172.18.0.6:6443"), (2, ("--secure-port=7443",), "172.18.0.6:7443")],
)
async def test_control_plane_of_several_nodes_has_an_endpoint(control_planes, flags, endpoint):
    client = Client()
    await run(client, control_planes=control_planes, flags=flags, nodes=plain_nodes(5))
    assert read_configuration(client).get("controlPlaneEndpoint") == endpoint
