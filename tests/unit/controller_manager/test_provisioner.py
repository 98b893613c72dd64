"""The simulated provisioner, beside the binder that asks it."""

import pytest

from mockube.apimachinery import meta
from mockube.controller_manager.client.kinds import PERSISTENT_VOLUMES
from mockube.controller_manager.provisioner import default_storage_class
from tests.support.controllers.storage import Storage


def volume_of(storage, claim="data"):
    return storage.get_volume(f"pvc-{meta.uid(storage.get_claim(claim))}")


def provisioned(**options):
    storage = Storage()
    storage.storage_class(**options)
    storage.claim(storageClassName="fast", size="3Gi")
    storage.settle()
    return storage


def test_a_volume_is_made_and_bound():
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
        pytest.param("rancher.io/local-path", "Bound", id="of a cluster on one's own machine"),
        pytest.param("kubernetes.io/gce-pd", "Bound", id="a plugin of old"),
        pytest.param("example.com/own", "Pending", id="somebody's own"),
        pytest.param("kubernetes.io/no-provisioner", "Pending", id="nobody"),
    ],
)
def test_whom_it_stands_for(provisioner, phase):
    assert provisioned(provisioner=provisioner).phase("data") == phase


def test_what_is_older_than_drivers_lends_directories():
    volume = volume_of(provisioned(provisioner="rancher.io/local-path"))
    path = f"/var/lib/mockube/volumes/{meta.name(volume)}"
    assert volume["spec"]["hostPath"] == {"path": path, "type": "DirectoryOrCreate"}
    assert "csi" not in volume["spec"]


def test_it_waits_for_the_scheduler_where_the_class_does():
    storage = provisioned(waits=True)
    assert storage.phase("data") == "Pending"
    chosen = {"volume.kubernetes.io/selected-node": "node-1"}
    storage.put_claim(meta.with_annotations(storage.get_claim(), chosen))
    storage.settle()
    assert storage.phase("data") == "Bound"


def test_a_volume_is_reached_from_where_its_class_allows():
    topology = {"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}
    storage = provisioned(allowedTopologies=[topology])
    (term,) = volume_of(storage)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}


@pytest.mark.parametrize(("policy", "left"), [("Delete", 0), ("Retain", 1)])
def test_what_becomes_of_it_after_its_claim(policy, left):
    storage = provisioned(reclaimPolicy=policy)
    storage.delete_claim()
    storage.settle()
    assert storage.get_claim() is None
    assert len(storage.all(PERSISTENT_VOLUMES)) == left


def test_a_claim_that_is_deleted_gets_none():
    storage = Storage()
    storage.storage_class()
    storage.pod(node="node-1")
    storage.claim(storageClassName="fast")
    storage.delete_claim()
    storage.settle()
    assert storage.all(PERSISTENT_VOLUMES) == []


@pytest.mark.parametrize("default", [True, False])
def test_the_class_on_offer(default):
    storage = Storage()
    body = default_storage_class(default=default)
    storage.offer(body)
    storage.claim()
    storage.settle()
    assert storage.phase("data") == ("Bound" if default else "Pending")
