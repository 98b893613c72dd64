"""The simulated volume provisioner, together with the volume binder."""

import asyncio
from types import SimpleNamespace

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists
from mockube.client.cache.store import Change
from mockube.client.component_helpers.volumes import SIMULATED_PROVISIONER
from mockube.client.kinds import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from mockube.client.metrics.process import Metrics
from mockube.client.resources import Key
from mockube.controller_manager.controllers.csi import provisioner
from mockube.controller_manager.controllers.csi.provisioner import (
    default_storage_class,
)
from tests.support.controllers.fake_caches import FakeCaches
from tests.support.controllers.storage import Storage
from tests.support.event_loop import until
from tests.support.recorded.recorded_client import RecordedClient

ON_NODE = {"volume.kubernetes.io/selected-node": "node-1"}


def volume_of(storage, claim="data"):
    return storage.get_volume(f"pvc-{meta.uid(storage.get_claim(claim))}")


def provisioned(**options):
    storage = Storage()
    storage.storage_class(**options)
    storage.claim(storageClassName="fast", size="3Gi")
    storage.settle()
    return storage


def test_volume_is_provisioned_and_bound():
    storage = provisioned(mountOptions=["ro"])
    volume = volume_of(storage)
    assert storage.phase("data") == "Bound"
    assert storage.get_claim()["status"]["capacity"] == {"storage": "3Gi"}
    assert volume["status"]["phase"] == "Bound"
    assert meta.annotations(volume) == {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}
    assert volume["spec"]["csi"] == {"driver": "ebs.csi.aws.com", "volumeHandle": meta.name(volume)}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
    assert volume["spec"]["mountOptions"] == ["ro"]
    assert storage.events[1:] == [
        ("Normal", "Provisioning", 'External provisioner is provisioning volume for claim "default/data"'),
        ("Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {meta.name(volume)}"),
    ]


@pytest.mark.parametrize(
    ("provisioner", "phase"),
    [
        pytest.param("rancher.io/local-path", "Bound", id="local cluster's provisioner"),
        pytest.param("kubernetes.io/gce-pd", "Bound", id="in-tree plugin"),
        pytest.param("example.com/own", "Pending", id="custom provisioner"),
        pytest.param("kubernetes.io/no-provisioner", "Pending", id="no-provisioner"),
    ],
)
def test_simulated_provisioners(provisioner, phase):
    assert provisioned(provisioner=provisioner).phase("data") == phase


def test_local_path_provisioner_uses_host_path():
    volume = volume_of(provisioned(provisioner="rancher.io/local-path"))
    path = f"/var/lib/mockube/volumes/{meta.name(volume)}"
    assert volume["spec"]["hostPath"] == {"path": path, "type": "DirectoryOrCreate"}
    assert "csi" not in volume["spec"]


def test_provisioner_waits_for_scheduler_if_class_does():
    storage = provisioned(waits=True)
    assert storage.phase("data") == "Pending"
    chosen = {"volume.kubernetes.io/selected-node": "node-1"}
    storage.put_claim(meta.with_annotations(storage.get_claim(), chosen))
    storage.settle()
    assert storage.phase("data") == "Bound"


def test_volume_has_topology_of_class():
    topology = {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}
    storage = provisioned(allowedTopologies=[topology])
    (term,) = volume_of(storage)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}


@pytest.mark.parametrize(("policy", "left"), [("Delete", 0), ("Retain", 1)])
def test_reclaim_policy_applies_after_claim_deletion(policy, left):
    storage = provisioned(reclaimPolicy=policy)
    storage.delete_claim()
    storage.settle()
    assert storage.get_claim() is None
    assert len(storage.all(PERSISTENT_VOLUMES)) == left


def test_deleting_claim_gets_no_volume():
    storage = Storage()
    storage.storage_class()
    storage.pod(node="node-1")
    storage.claim(storageClassName="fast")
    storage.delete_claim()
    storage.settle()
    assert storage.all(PERSISTENT_VOLUMES) == []


@pytest.mark.parametrize("default", [True, False])
def test_storage_class_of_provisioner(default):
    storage = Storage()
    body = default_storage_class(default=default)
    storage.add_storage_class(body)
    storage.claim(annotations=ON_NODE)
    storage.settle()
    assert storage.phase("data") == ("Bound" if default else "Pending")


@pytest.mark.parametrize(
    ("provisioner", "mode", "is_local"),
    [
        (SIMULATED_PROVISIONER, "ReadWriteOnce", True),
        ("rancher.io/local-path", "ReadWriteOncePod", True),
        (SIMULATED_PROVISIONER, "ReadWriteMany", False),
        ("ebs.csi.aws.com", "ReadWriteOnce", False),
    ],
)
def test_local_volume_has_affinity_to_selected_node(provisioner, mode, is_local):
    storage = Storage()
    storage.add(NODES, {"metadata": {"name": "node-1", "labels": {"kubernetes.io/hostname": "host-1"}}})
    storage.storage_class(waits=True, provisioner=provisioner)
    storage.claim(storageClassName="fast", modes=[mode], annotations=ON_NODE)
    storage.settle()
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["host-1"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    assert volume_of(storage)["spec"].get("nodeAffinity") == (affinity if is_local else None)


def test_default_storage_class_waits_for_first_pod():
    storage = Storage()
    storage.add_storage_class(default_storage_class(default=True))
    storage.claim()
    storage.settle()
    assert (storage.phase("data"), storage.reasons()) == ("Pending", ["WaitForFirstConsumer"])


CLASS = {"metadata": {"name": "fast"}, "volumeBindingMode": "WaitForFirstConsumer"}
NODE_TREE = {"metadata": {"name": "node-1", "labels": {"kubernetes.io/hostname": "host-1"}}}


def claim(*, driver=SIMULATED_PROVISIONER, node="node-1", deleted=False, storage_class="fast", **spec):
    annotations = {
        "volume.kubernetes.io/storage-provisioner": driver,
        "volume.kubernetes.io/selected-node": node,
    }
    metadata = {
        "name": "data",
        "namespace": "default",
        "uid": "u",
        "annotations": {key: text for key, text in annotations.items() if text},
        **({"deletionTimestamp": "x"} if deleted else {}),
    }
    requests = {"requests": {"storage": "1Gi"}}
    return {"metadata": metadata, "spec": {"storageClassName": storage_class, "resources": requests, **spec}}


def volumes_of(tree, *, classes=(CLASS,), volumes=(), nodes=(NODE_TREE,)):
    trees = {
        PERSISTENT_VOLUME_CLAIMS: [tree],
        STORAGE_CLASSES: classes,
        PERSISTENT_VOLUMES: volumes,
        NODES: nodes,
    }
    plan = provisioner.reconcile(FakeCaches(trees), Key("default", "data"), None)
    return [body for action in plan.actions for body in getattr(action, "bodies", ())], [
        action.message for action in plan.actions if getattr(action, "reason", "") == "NotSimulated"
    ]


@pytest.mark.parametrize(
    ("tree", "others", "is_provisioned"),
    [
        (claim(), {}, True),
        (claim(deleted=True), {}, False),
        (claim(volumeName="x"), {}, False),
        (claim(driver="x.example.com"), {}, False),
        (claim(driver=""), {}, False),
        (claim(node=""), {}, False),
        (claim(node=""), {"classes": [{**CLASS, "volumeBindingMode": "Immediate"}]}, True),
        (claim(storage_class="none"), {}, False),
        (claim(), {"classes": []}, False),
        (claim(), {"volumes": [{"metadata": {"name": "pvc-u"}}]}, False),
    ],
)
def test_claim_that_gets_a_volume(tree, others, is_provisioned):
    assert bool(volumes_of(tree, **others)[0]) is is_provisioned


@pytest.mark.parametrize(
    ("tree", "nodes", "is_local"),
    [
        (claim(), [NODE_TREE], True),
        (claim(accessModes=["ReadWriteOnce"]), [NODE_TREE], True),
        (claim(accessModes=["ReadWriteMany"]), [NODE_TREE], False),
        (claim(accessModes=["ReadWriteOnce", "ReadOnlyMany"]), [NODE_TREE], False),
        (claim(driver="ebs.csi.aws.com"), [NODE_TREE], False),
        (claim(driver="rancher.io/local-path"), [NODE_TREE], True),
        (claim(), [], False),
        (claim(), [{"metadata": {"name": "node-1"}}], False),
    ],
)
def test_volume_on_the_disk_of_a_node(tree, nodes, is_local):
    [[volume], _] = volumes_of(tree, nodes=nodes)
    assert ("nodeAffinity" in volume["spec"]) is is_local
    assert ("hostPath" in volume["spec"]) is (
        "/" in tree["metadata"]["annotations"]["volume.kubernetes.io/storage-provisioner"]
    )


SNAPSHOT = {"kind": "VolumeSnapshot", "name": "s", "apiGroup": "snapshot.storage.k8s.io"}


@pytest.mark.parametrize(
    ("spec", "warns"),
    [
        ({}, False),
        ({"dataSource": SNAPSHOT}, True),
        ({"dataSourceRef": SNAPSHOT}, True),
        ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}}, False),
    ],
)
def test_contents_that_are_not_simulated(spec, warns):
    message = "the contents of the VolumeSnapshot s are not simulated: the volume is empty at first"
    assert volumes_of(claim(**spec))[1] == ([message] if warns else [])


@pytest.mark.parametrize(
    ("fields", "is_deleted"),
    [
        ({}, True),
        ({"phase": "Bound"}, False),
        ({"policy": "Retain"}, False),
        ({"driver": "x.example.com"}, False),
        ({"deleted": True}, False),
        ({"name": "other"}, False),
    ],
)
def test_released_volume_is_deleted(fields, is_deleted):
    given = {
        "phase": "Released",
        "policy": "Delete",
        "driver": SIMULATED_PROVISIONER,
        "deleted": False,
        "name": "pv",
        **fields,
    }
    annotations = {"pv.kubernetes.io/provisioned-by": given["driver"]}
    metadata = {
        "name": given["name"],
        "uid": "u",
        "annotations": annotations,
        **({"deletionTimestamp": "x"} if given["deleted"] else {}),
    }
    volume = {
        "metadata": metadata,
        "spec": {"persistentVolumeReclaimPolicy": given["policy"]},
        "status": {"phase": given["phase"]},
    }
    plan = provisioner.reconcile(FakeCaches({PERSISTENT_VOLUMES: [volume]}), Key("", "pv"), None)
    assert bool(plan.actions) is is_deleted


def test_change_of_a_class_is_one_of_its_claims():
    caches = FakeCaches(
        {PERSISTENT_VOLUME_CLAIMS: [claim(), {**claim(storage_class="slow"), "metadata": {"name": "b"}}]}
    )
    assert [*provisioner._claims_of_class(caches, Change(None, CLASS))] == [Key("default", "data")]


@pytest.mark.parametrize(("is_there", "is_default"), [(False, "true"), (True, "false")])
async def test_class_is_created_once(is_there, is_default, clock):
    other = {
        "metadata": {"name": "x", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    }
    client = RecordedClient(objects={"x": other} if is_there else {})
    creator = provisioner.DefaultClassCreator(
        SimpleNamespace(client=client, clock=clock, metrics=Metrics(clock))
    )
    running = asyncio.create_task(creator.run())
    await until(lambda: len(client.calls) == 2)
    running.cancel()
    _, (verb, plural, name, body) = client.calls
    assert (verb, plural, name) == ("create", "storageclasses", "standard")
    assert body["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": is_default}
    client.refusals["create", "*"] = AlreadyExists("x")
    await creator._create_storage_class(Key("", "standard"))
