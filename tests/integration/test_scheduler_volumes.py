"""Scheduling of pods with claims: the node of each pod, and the message of an unschedulable pod."""

import pytest

from tests.support.controllers.scheduling import PODS, scheduling

CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


@pytest.fixture
async def cluster():
    async with scheduling() as scenario:
        yield scenario


async def test_missing_or_unbound_claims_hold_pod(cluster):
    await cluster.node("a")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    assert await cluster.pod("web", volumes=volumes) is None
    assert await cluster.refusal("web") == (
        '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
    )
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.post("/api/v1/namespaces/default/persistentvolumeclaims", claim)
    await cluster.manager.step(2)
    assert await cluster.refusal("web") == (
        "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    )


async def test_wait_for_first_consumer_claims_are_bound(cluster):
    await cluster.node("a", disk="hdd")
    await cluster.node("b", disk="ssd")
    storage = {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await cluster.post("/apis/storage.k8s.io/v1/storageclasses", storage)
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await cluster.post("/api/v1/namespaces/default/persistentvolumeclaims", claim)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    assert await cluster.pod("web", volumes=volumes) is None
    refusal = await cluster.refusal("web")
    assert "2 node(s) didn't find available persistent volumes to bind." in refusal
    on_ssd = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    volume = {
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "capacity": {"storage": "2Gi"},
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [on_ssd]}},
        },
    }
    await cluster.post("/api/v1/persistentvolumes", volume)
    await cluster.manager.step(5)
    assert await cluster.place("web") == "b"
    bound = (await cluster.server.get("/api/v1/persistentvolumes/disk")).body
    assert bound["spec"]["claimRef"]["name"] == "data"


def claim_of(name, **spec):
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"resources": resources, **spec}}


def csi_node(name, count):
    driver = {"name": "example.com", "nodeID": name, "allocatable": {"count": count}}
    return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}


async def test_second_pod_of_claim_follows_selected_node(cluster):
    await cluster.node("a", disk="hdd")
    await cluster.node("b", disk="ssd")
    storage = {
        "metadata": {"name": "slow"},
        "provisioner": "example.com/slow",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await cluster.post("/apis/storage.k8s.io/v1/storageclasses", storage)
    claim = claim_of("data", accessModes=["ReadWriteOnce"], storageClassName="slow")
    await cluster.post("/api/v1/namespaces/default/persistentvolumeclaims", claim)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    assert await cluster.pod("first", volumes=volumes, nodeSelector={"disk": "hdd"}) is None
    assert await cluster.pod("second", volumes=volumes, nodeSelector={"disk": "ssd"}) is None
    assert "1 node(s) didn't find available persistent volumes to bind" in await cluster.refusal("second")
    stored = (await cluster.server.get("/api/v1/namespaces/default/persistentvolumeclaims/data")).body
    assert stored["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "a"


async def test_claim_of_single_pod_holds_others_until_it_is_gone(cluster):
    await cluster.node("a")
    await cluster.node("b")
    claim = claim_of("data", accessModes=["ReadWriteOncePod"], storageClassName="", volumeName="disk")
    await cluster.post("/api/v1/namespaces/default/persistentvolumeclaims", claim)
    volume = {
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": ["ReadWriteOncePod"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/disk"},
        },
    }
    await cluster.post("/api/v1/persistentvolumes", volume)
    await cluster.manager.settle()
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    assert await cluster.pod("first", volumes=volumes) is not None
    assert await cluster.pod("second", volumes=volumes) is None
    assert await cluster.refusal("second") == (
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod. preemption: 0/2 nodes are available: "
        "2 No preemption victims found for incoming pod."
    )
    await cluster.server.delete(f"{PODS}/first", {"gracePeriodSeconds": 0})
    await cluster.manager.step(2)
    assert await cluster.place("second") is not None


async def test_node_that_can_attach_more_volumes_gets_the_waiting_pod(cluster):
    for name in ("a", "b"):
        await cluster.node(name)
        await cluster.post(CSI_NODES, csi_node(name, 1))
    for name in ("first", "second", "third"):
        source = {"csi": {"driver": "example.com", "volumeHandle": name}}
        spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, **source}
        await cluster.post("/api/v1/persistentvolumes", {"metadata": {"name": name}, "spec": spec})
        claim = claim_of(name, accessModes=["ReadWriteOnce"], storageClassName="", volumeName=name)
        await cluster.post("/api/v1/namespaces/default/persistentvolumeclaims", claim)
        await cluster.manager.settle()
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        node = await cluster.pod(name, volumes=volumes)
        assert (node is None) == (name == "third")
    assert "2 node(s) exceed max volume count" in await cluster.refusal("third")
    last = await cluster.place("second")
    changed = await cluster.server.patch(f"{CSI_NODES}/{last}", {"spec": csi_node(last, 2)["spec"]})
    assert changed.status == 200, changed.body
    await cluster.manager.step(2)
    assert await cluster.place("third") == last
