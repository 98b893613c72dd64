"""Events of claims that request expansion, as in kube-controller-manager."""

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.component_helpers.volumes import PRE_RESIZE_CAPACITY
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from mockube.client.queue.reconcile_loop import RequeueWithBackoff
from mockube.client.resources import Key
from mockube.controller_manager.controllers.volumeexpand.controller import EXPAND, RESIZER
from tests.support.controllers.storage import Storage

KEY = Key("default", "data")
WAITING = "waiting for an external controller to expand this PVC"


def bound_claim(*, size="2Gi", has="1Gi", phase="Bound", uid=None, **source):
    storage = Storage((EXPAND,))
    claim = storage.claim(size=size, volumeName="vol")
    storage.put_claim({**claim, "status": {"phase": phase, "capacity": {"storage": has}}})
    reference = {"namespace": "default", "name": "data", "uid": uid or meta.uid(claim)}
    spec = {"capacity": {"storage": has}, "claimRef": reference, **(source or {"csi": {"driver": "d"}})}
    storage.add(PERSISTENT_VOLUMES, {"metadata": {"name": "vol"}, "spec": spec})
    return storage


@pytest.mark.parametrize("source", [{"csi": {"driver": "d"}}, {"hostPath": {"path": "/x"}}])
def test_expanding_claim_waits_for_driver(source):
    storage = bound_claim(**source)
    assert storage.reconcile(KEY) == ([], None)
    assert storage.events == [("Normal", "ExternalExpanding", WAITING)]


def test_migrated_plugin_names_csi_resizer():
    storage = bound_claim(gcePersistentDisk={"pdName": "x"})
    storage.reconcile(KEY)
    message = "CSI migration enabled for kubernetes.io/gce-pd; waiting for external resizer to expand the pvc"
    assert storage.events == [("Normal", "ExternalExpanding", message)]
    claim = storage.get_claim("data")
    assert meta.annotations(claim)[RESIZER] == "pd.csi.storage.gke.io"
    assert storage.reconcile(KEY) == ([], None)


@pytest.mark.parametrize("of", [{"size": "1Gi"}, {"phase": "Pending"}], ids=["it has enough", "not bound"])
def test_other_claims_record_no_event(of):
    storage = bound_claim(**of)
    assert storage.reconcile(KEY) == ([], None)
    assert storage.events == []


def test_volume_with_pre_resize_capacity_records_event():
    storage = bound_claim(size="1Gi")
    marks = {PRE_RESIZE_CAPACITY: "1Gi"}
    storage.change(PERSISTENT_VOLUMES, "vol", ("metadata", "annotations"), marks, "")
    storage.reconcile(KEY)
    assert len(storage.events) == 1


def test_volume_of_other_claim_is_an_error():
    with pytest.raises(RequeueWithBackoff, match="not bound to PVC being updated : default/data"):
        bound_claim(uid="another").reconcile(KEY)
    storage = bound_claim()
    storage.remove(PERSISTENT_VOLUMES, "vol", "")
    with pytest.raises(RequeueWithBackoff, match='failed to get PV "vol"'):
        storage.reconcile(KEY)


def test_changes_map_to_growing_claims():
    storage = bound_claim()
    keys = EXPAND.watches[0].keys
    now = storage.get_claim("data")
    smaller = meta.with_value(now, ("spec", "resources", "requests", "storage"), "1Gi")
    had_less = meta.with_value(now, ("status", "capacity", "storage"), "500Mi")
    pending = meta.with_value(now, ("status", "phase"), "Pending")
    for change, concerned in (
        (Change(None, now), [KEY]),
        (Change(smaller, now), [KEY]),
        (Change(had_less, now), [KEY]),
        (Change(now, now), []),
        (Change(now, smaller), []),
        (Change(now, None), []),
        (Change(None, pending), []),
    ):
        assert [*keys(storage.caches(), change)] == concerned
    assert EXPAND.watches[1].keys is None
    assert storage.get(PERSISTENT_VOLUME_CLAIMS, "data") is now
