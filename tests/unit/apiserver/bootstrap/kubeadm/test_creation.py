"""What kubeadm creates in a new cluster is created once: users delete and change it."""

from datetime import UTC, datetime

import pytest

from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.bootstrap.kubeadm.creation import ANNOTATION_MINOR, create_objects
from mockube.apiserver.bootstrap.kubeadm.objects import ClusterFacts
from tests.support.server.memory_api import running_api

SYSTEM = "/api/v1/namespaces/kube-system"
CONFIGURATION = f"{SYSTEM}/configmaps/kubeadm-config"
COREDNS = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
STORAGE_CLASS = "/apis/storage.k8s.io/v1/storageclasses/standard"
INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
PROXY = f"{SYSTEM}/configmaps/kube-proxy"


@pytest.fixture
async def api():
    async with running_api(is_empty=True) as api:
        for name in ("kube-system", "kube-public"):
            await api.create_all(("/api/v1/namespaces", {"metadata": {"name": name}}))
        yield api


async def start(api, server="https://127.0.0.1:6443", *, has_storage_class=True, **facts):
    values = {
        "minor": "1.37",
        "server": server,
        "authority": b"ca",
        "service_network": "10.0.0.0/16",
        "pod_network": "10.128.0.0/9",
        "token": ("abcdef", "0123456789abcdef"),
        "now": datetime(2026, 1, 1, tzinfo=UTC),
    }
    is_new = await create_objects(
        api.registry, ClusterFacts(**values | facts), has_storage_class=has_storage_class
    )
    await api.settle()
    return is_new


async def configuration(api):
    return load((await api.stored(CONFIGURATION))["data"]["ClusterConfiguration"].encode()).tree


async def test_objects_are_created_and_marked_with_the_minor(api):
    assert await start(api)
    assert (await api.stored(SYSTEM))["metadata"]["annotations"] == {ANNOTATION_MINOR: "1.37"}
    coredns = await api.stored(COREDNS)
    assert [entry["manager"] for entry in coredns["metadata"]["managedFields"]] == ["kubeadm"]
    assert await api.stored(STORAGE_CLASS)


async def test_objects_are_those_of_kubeadm_as_the_administrator(api):
    await start(api)
    authors = {entry.author.user for entry in api.registry.journal.entries() if entry.author.verb == "create"}
    assert "kubernetes-admin" in authors


async def test_deleted_objects_are_not_created_again(api):
    await start(api)
    await api.delete(CONFIGURATION)
    await api.delete(STORAGE_CLASS)
    assert not await start(api)
    assert await api.stored(STORAGE_CLASS) is None


async def test_cluster_of_a_real_kubeadm_keeps_its_objects(api):
    await api.create(f"{SYSTEM}/configmaps", {"metadata": {"name": "kubeadm-config"}})
    await api.settle()
    assert not await start(api)
    assert "annotations" not in (await api.stored(SYSTEM))["metadata"]


async def test_cluster_at_another_port_says_so(api):
    await start(api)
    other = "https://api.example.org:6443"
    old = "- cluster:\n    server: https://127.0.0.1:33411\n  name: x\n"
    await api.patch(INFO, {"data": {"kubeconfig": old, "other": "x"}})
    await api.patch(PROXY, {"data": {"kubeconfig.conf": f"server: {other}\n"}})
    await start(api)
    assert (await api.stored(INFO))["data"] == {
        "kubeconfig": "- cluster:\n    server: https://127.0.0.1:6443\n  name: x\n",
        "other": "x",
    }
    assert (await api.stored(PROXY))["data"]["kubeconfig.conf"] == f"server: {other}\n"


async def test_interrupted_start_is_repeated(api):
    await api.create(f"{SYSTEM}/serviceaccounts", {"metadata": {"name": "coredns"}})
    await api.settle()
    assert await start(api)
    assert await api.stored(CONFIGURATION)


async def test_storage_class_is_left_out(api):
    await start(api, has_storage_class=False)
    assert await api.stored(STORAGE_CLASS) is None


@pytest.mark.parametrize("endpoint", ["", "172.18.0.6:6443"])
async def test_control_plane_of_several_nodes_has_an_endpoint(api, endpoint):
    await start(api, endpoint=endpoint)
    assert (await configuration(api)).get("controlPlaneEndpoint", "") == endpoint
