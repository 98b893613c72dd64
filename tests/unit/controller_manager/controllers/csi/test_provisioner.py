"""The simulated volume provisioner, together with the volume binder."""

import pytest

from mockube.apimachinery import meta
from mockube.client.component_helpers.volumes import SIMULATED_PROVISIONER
from mockube.client.kinds import NODES, PERSISTENT_VOLUMES
from mockube.controller_manager.controllers.csi.provisioner import (
    default_storage_class,
)
from tests.support.controllers.storage import Storage

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
