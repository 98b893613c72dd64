"""PersistentVolumes and claims: binding, loss, release and Events."""

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.controllers.persistentvolume.controller import PERSISTENT_VOLUME_BINDER
from tests.support.controllers.storage import Storage

BINDER = (PERSISTENT_VOLUME_BINDER,)
DATA, VOL = Key("default", "data"), Key("", "vol")


def bound_claim(**claim):
    storage = Storage(BINDER)
    storage.volume(size="5Gi", persistentVolumeReclaimPolicy="Retain")
    storage.claim(size="2Gi", **claim)
    storage.settle()
    return storage


def test_claim_and_volume_are_bound():
    storage = bound_claim()
    claim, volume = storage.get_claim(), storage.get_volume()
    assert meta.annotations(claim) == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert claim["spec"]["volumeName"] == "vol"
    assert claim["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "5Gi"},
    }
    ref = volume["spec"]["claimRef"]
    assert (ref["kind"], ref["apiVersion"], ref["namespace"], ref["name"]) == (
        "PersistentVolumeClaim",
        "v1",
        "default",
        "data",
    )
    assert ref["uid"] == meta.uid(claim)
    assert meta.annotations(volume) == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert volume["status"]["phase"] == "Bound"
    assert storage.events == []


def test_volume_is_written_before_claim():
    storage = Storage(BINDER)
    storage.volume()
    storage.claim()
    writes, _ = storage.reconcile(DATA)
    assert [resource for _, resource, _ in writes] == [PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS]


def test_pre_bound_volume_waits_for_its_claim():
    storage = Storage(BINDER)
    storage.volume(claimRef={"namespace": "default", "name": "data"})
    storage.settle()
    assert storage.phase("vol") == "Available"
    storage.claim()
    storage.settle()
    assert storage.phase("data") == "Bound"
    assert meta.annotations(storage.get_volume()) == {}


def test_two_claims_never_bind_one_volume():
    storage = Storage(BINDER)
    storage.volume()
    storage.claim("a")
    storage.claim("b")
    storage.settle()
    assert sorted([storage.phase("a"), storage.phase("b")]) == ["Bound", "Pending"]


@pytest.mark.parametrize("there", [True, False], ids=["the volume is there", "it comes later"])
def test_claim_may_name_its_volume(there):
    storage = Storage(BINDER)
    if there:
        storage.volume()
    storage.claim(volumeName="vol")
    storage.settle()
    if not there:
        storage.volume()
        storage.settle()
    assert storage.phase("data") == "Bound"
    assert "pv.kubernetes.io/bound-by-controller" not in meta.annotations(storage.get_claim())


def test_requested_volume_must_fit():
    storage = Storage(BINDER)
    storage.volume(size="1Gi")
    storage.claim(size="2Gi", volumeName="vol")
    storage.settle()
    assert storage.phase("data") == "Pending"
    message = 'Cannot bind to requested volume "vol": requested PV is too small'
    assert storage.events[0] == ("Warning", "VolumeMismatch", message)


def test_requested_volume_must_be_free():
    storage = bound_claim()
    storage.claim("late", volumeName="vol")
    storage.settle()
    assert storage.phase("late") == "Pending"
    message = 'volume "vol" already bound to a different claim.'
    assert storage.events[-1] == ("Warning", "FailedBinding", message)


def test_claim_without_class_and_volume_records_event():
    storage = Storage(BINDER)
    storage.claim()
    storage.settle()
    message = "no persistent volumes available for this claim and no storage class is set"
    assert storage.events == [("Normal", "FailedBinding", message)]
    assert storage.phase("data") == "Pending"


# --- classes


def test_missing_storage_class_records_event():
    storage = Storage(BINDER)
    storage.claim(storageClassName="none-such")
    storage.settle()
    message = 'storageclass.storage.k8s.io "none-such" not found'
    assert storage.events == [("Warning", "ProvisioningFailed", message)]


@pytest.mark.parametrize(
    ("provisioner", "marked"),
    [
        pytest.param("example.com/x", "example.com/x", id="a driver"),
        pytest.param("kubernetes.io/aws-ebs", "ebs.csi.aws.com", id="a plugin that became a driver"),
    ],
)
def test_claim_is_annotated_for_external_provisioner(provisioner, marked):
    storage = Storage(BINDER)
    storage.storage_class(provisioner=provisioner)
    storage.claim(storageClassName="fast")
    storage.settle()
    assert meta.annotations(storage.get_claim()) == {
        "volume.kubernetes.io/storage-provisioner": marked,
        "volume.beta.kubernetes.io/storage-provisioner": marked,
    }
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{marked}' or manually by the system "
        "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
        "registered."
    )
    assert storage.events == [("Normal", "ExternalProvisioning", message)]


def test_no_provisioner_records_failure():
    storage = Storage(BINDER)
    storage.storage_class(provisioner="kubernetes.io/no-provisioner")
    storage.claim(storageClassName="fast")
    storage.settle()
    message = "no volume plugin matched name: kubernetes.io/no-provisioner"
    assert storage.events == [("Warning", "ProvisioningFailed", message)]


def test_claim_gets_default_class_created_later():
    storage = Storage(BINDER)
    storage.claim("says-none", storageClassName="")
    storage.claim()
    storage.settle()
    storage.storage_class(default=True)
    storage.settle()
    assert storage.get_claim()["spec"]["storageClassName"] == "fast"
    assert storage.get_claim("says-none")["spec"]["storageClassName"] == ""


def test_claim_waits_for_first_consumer():
    storage = Storage(BINDER)
    storage.storage_class(waits=True)
    storage.volume(storageClassName="fast")
    storage.claim(storageClassName="fast")
    storage.reconcile(DATA)
    storage.pod("one")
    storage.reconcile(DATA)
    storage.pod("two")
    storage.pod("placed", node="node-1")
    storage.reconcile(DATA)
    assert storage.events == [
        ("Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
        ("Normal", "WaitForPodScheduled", "waiting for pod one to be scheduled"),
        ("Normal", "WaitForPodScheduled", "waiting for pods one,two to be scheduled"),
    ]
    assert storage.phase("data") == "Pending"


def test_selected_node_starts_provisioning():
    storage = Storage(BINDER)
    storage.storage_class(waits=True)
    storage.claim(storageClassName="fast", annotations={"volume.kubernetes.io/selected-node": "node-1"})
    storage.settle()
    assert storage.reasons() == ["ExternalProvisioning"]


def test_volume_chosen_by_scheduler_is_bound():
    storage = Storage(BINDER)
    storage.storage_class(waits=True)
    claim = storage.claim(storageClassName="fast")
    ref = {"namespace": "default", "name": "data", "uid": meta.uid(claim)}
    storage.volume("other", storageClassName="fast")
    storage.volume(storageClassName="fast", claimRef=ref)
    storage.settle()
    assert (storage.phase("data"), storage.phase("vol"), storage.phase("other")) == (
        "Bound",
        "Bound",
        "Available",
    )


# --- loss


def test_claim_whose_volume_is_deleted_is_lost():
    storage = bound_claim()
    storage.remove(PERSISTENT_VOLUMES, "vol", namespace="")
    storage.settle()
    assert storage.get_claim()["status"] == {"phase": "Lost"}
    message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    assert storage.events == [("Warning", "ClaimLost", message)]


def test_claim_without_its_volume_name_is_lost():
    storage = bound_claim()
    storage.change(PERSISTENT_VOLUME_CLAIMS, "data", ("spec", "volumeName"), "")
    storage.reconcile(DATA)
    assert storage.phase("data") == "Lost"


def test_claim_whose_volume_is_bound_elsewhere_is_lost():
    storage = bound_claim()
    storage.change(PERSISTENT_VOLUMES, "vol", ("spec", "claimRef", "uid"), "other", namespace="")
    storage.reconcile(DATA)
    assert storage.phase("data") == "Lost"
    assert storage.reasons() == ["ClaimMisbound"]


def test_volume_without_claim_ref_is_bound_again():
    storage = bound_claim()
    volume = storage.get_volume()
    spec = {field: value for field, value in volume["spec"].items() if field != "claimRef"}
    storage.put(PERSISTENT_VOLUMES, {**volume, "spec": spec})
    storage.settle()
    assert storage.get_volume()["spec"]["claimRef"]["uid"] == meta.uid(storage.get_claim())


# --- release


def released_volume(policy, **spec):
    storage = Storage(BINDER)
    storage.volume(persistentVolumeReclaimPolicy=policy, **spec)
    storage.claim()
    storage.settle()
    storage.remove(PERSISTENT_VOLUME_CLAIMS, "data")
    storage.settle()
    return storage


def test_retained_volume_is_released():
    storage = released_volume("Retain")
    assert storage.phase("vol") == "Released"
    storage.claim()
    storage.settle()
    assert (storage.phase("vol"), storage.phase("data")) == ("Released", "Pending")


def test_host_path_volume_with_delete_policy_is_deleted():
    storage = released_volume("Delete")
    assert meta.is_deleting(storage.get_volume())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            {"hostPath": {"path": "/data"}},
            "host_path deleter only supports /tmp/.+ but received provided /data",
            id="another path",
        ),
        pytest.param(
            {"hostPath": None, "nfs": {"server": "s"}},
            'error getting deleter volume plugin for volume "vol": no deletable volume plugin matched',
            id="no plugin",
        ),
    ],
)
def test_undeletable_volume_fails(source, message):
    storage = released_volume("Delete", **source)
    assert storage.get_volume()["status"] == {"phase": "Failed", "message": message}
    assert storage.events == [("Warning", "VolumeFailedDelete", message)]


def test_csi_volume_is_deleted_by_its_driver():
    storage = released_volume("Delete", csi={"driver": "x", "volumeHandle": "y"})
    assert storage.phase("vol") == "Released"
    assert not meta.is_deleting(storage.get_volume())


def test_recycle_policy_fails():
    storage = released_volume("Recycle")
    assert storage.phase("vol") == "Failed"
    assert storage.reasons() == ["VolumeFailedRecycle"]


def test_volume_is_not_released_because_of_stale_cache():
    storage = bound_claim()
    claim = storage.get_claim()
    storage.remove(PERSISTENT_VOLUME_CLAIMS, "data")
    storage.pending_writes = {PERSISTENT_VOLUME_CLAIMS: {("default", "data"): claim}}
    _, error = storage.reconcile(VOL)
    assert error is not None
    assert storage.phase("vol") == "Bound"


def test_superfluous_dynamically_bound_volume_becomes_available():
    storage = bound_claim()
    claim = storage.get_claim()
    ref = {"namespace": "default", "name": "data", "uid": meta.uid(claim)}
    other = storage.volume("other", claimRef=ref)
    storage.put(
        PERSISTENT_VOLUMES, meta.with_annotations(other, {"pv.kubernetes.io/bound-by-controller": "yes"})
    )
    storage.settle()
    assert "claimRef" not in storage.get_volume("other")["spec"]
    assert storage.phase("other") == "Available"


def test_superfluous_pre_bound_volume_keeps_claim_ref():
    storage = bound_claim()
    ref = {"namespace": "default", "name": "data", "uid": meta.uid(storage.get_claim())}
    storage.volume("other", claimRef=ref)
    storage.settle()
    assert storage.get_volume("other")["spec"]["claimRef"] == {"namespace": "default", "name": "data"}


# --- mapping of changes to keys


def keys(storage, resource, old, new):
    (watch,) = (watch for watch in PERSISTENT_VOLUME_BINDER.watches if watch.resource is resource)
    return set(watch.keys(storage.caches(), Change(old, new)))


def test_claim_maps_to_volumes_that_name_it():
    storage = bound_claim()
    assert keys(storage, PERSISTENT_VOLUME_CLAIMS, storage.get_claim(), None) == {DATA, VOL}


def test_volume_maps_to_claim_that_it_names():
    storage = bound_claim()
    assert keys(storage, PERSISTENT_VOLUMES, storage.get_volume(), None) == {DATA, VOL}


def test_free_volume_maps_to_waiting_claims_of_class():
    storage = Storage(BINDER)
    storage.claim(storageClassName="fast")
    storage.claim("other", storageClassName="slow")
    volume = storage.volume(storageClassName="fast")
    assert keys(storage, PERSISTENT_VOLUMES, None, volume) == {VOL, DATA}


def test_class_maps_to_waiting_claims():
    storage = Storage(BINDER)
    storage.claim(storageClassName="fast")
    storage.claim("any")
    storage.claim("none", storageClassName="")
    storage.storage_class()
    (fast,) = storage.all(STORAGE_CLASSES)
    assert keys(storage, STORAGE_CLASSES, None, fast) == {DATA, Key("default", "any")}


def test_new_pod_maps_to_its_waiting_claims():
    storage = Storage(BINDER)
    storage.claim()
    storage.pod()
    pod = PodView.of(storage.get(PODS, "app"))
    assert keys(storage, PODS, None, pod) == {DATA}
    assert keys(storage, PODS, pod, pod) == set()
