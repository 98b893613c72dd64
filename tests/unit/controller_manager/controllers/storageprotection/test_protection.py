"""Claims and volumes keep their protection finalizer while they are in use."""

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.controllers.storageprotection.controller import (
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
)
from tests.support.controllers.storage import Storage

BOTH = (CLAIM_PROTECTION, VOLUME_PROTECTION)
DATA = Key("default", "data")


def test_unused_claim_is_released():
    storage = Storage(BOTH)
    storage.claim()
    storage.delete_claim()
    storage.settle()
    assert storage.get_claim() is None


def test_claim_used_by_scheduled_pod_is_kept():
    storage = Storage(BOTH)
    storage.claim()
    storage.pod(node="node-1")
    storage.delete_claim()
    storage.settle()
    assert meta.is_deleting(storage.get_claim())
    storage.remove(PODS, "app")
    storage.settle()
    assert storage.get_claim() is None


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param({}, id="a pod without a node"),
        pytest.param({"claim": "other", "node": "node-1"}, id="a pod with another claim"),
    ],
)
def test_claim_does_not_wait_for_unrelated_pods(pod):
    storage = Storage(BOTH)
    storage.claim()
    storage.pod(**pod)
    storage.delete_claim()
    storage.settle()
    assert storage.get_claim() is None


@pytest.mark.parametrize("owned", [True, False], ids=["its own", "a stranger's of the name"])
def test_ephemeral_volume_uses_its_own_claim_only(owned):
    storage = Storage(BOTH)
    spec = {"nodeName": "node-1", "volumes": [{"name": "tmp", "ephemeral": {}}]}
    pod = storage.add(PODS, {"metadata": {"name": "app", "namespace": "default"}, "spec": spec})
    claim = storage.claim("app-tmp")
    if owned:
        refs = [meta.controller_reference(pod)]
        storage.put(PERSISTENT_VOLUME_CLAIMS, meta.with_metadata(claim, ownerReferences=refs))
    storage.delete_claim("app-tmp")
    storage.settle()
    assert (storage.get_claim("app-tmp") is not None) is owned


def test_claim_does_not_wait_for_pending_pod():
    storage = Storage(BOTH)
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    metadata = {"name": "app", "namespace": "default", "finalizers": ["foregroundDeletion"], **ending}
    spec = {"nodeName": "node-1", "volumes": [{"name": "tmp", "ephemeral": {}}]}
    pod = storage.add(PODS, {"metadata": metadata, "spec": spec})
    refs = [meta.controller_reference(pod)]
    storage.put(PERSISTENT_VOLUME_CLAIMS, meta.with_metadata(storage.claim("app-tmp"), ownerReferences=refs))
    storage.delete_claim("app-tmp")
    storage.settle()
    assert storage.get_claim("app-tmp") is None


def test_claim_is_not_released_because_of_stale_cache():
    storage = Storage(BOTH)
    storage.claim()
    storage.pod(node="node-1")
    storage.pending_writes = {PODS: {("default", "app"): storage.get(PODS, "app")}}
    storage.remove(PODS, "app")
    storage.delete_claim()
    storage.controller = CLAIM_PROTECTION
    _, error = storage.reconcile(DATA)
    assert error is not None
    assert storage.get_claim() is not None


def test_volume_is_released_unless_bound():
    storage = Storage(BOTH)
    for name, phase in (("free", "Available"), ("taken", "Bound"), ("left", "Released")):
        storage.delete(PERSISTENT_VOLUMES, storage.volume(name, phase=phase))
    storage.settle()
    assert storage.names(PERSISTENT_VOLUMES) == ["taken"]


def test_objects_without_finalizer_get_it_back():
    storage = Storage(BOTH)
    storage.put(PERSISTENT_VOLUME_CLAIMS, meta.with_metadata(storage.claim(), finalizers=None))
    storage.put(PERSISTENT_VOLUMES, meta.with_metadata(storage.volume(), finalizers=None))
    storage.settle()
    assert meta.finalizers(storage.get_claim()) == ["kubernetes.io/pvc-protection"]
    assert meta.finalizers(storage.get_volume()) == ["kubernetes.io/pv-protection"]


def test_deleted_pod_maps_to_its_claims():
    storage = Storage(BOTH)
    storage.pod(node="node-1")
    pod = PodView.of(storage.get(PODS, "app"))
    again = PodView.of(meta.with_metadata(pod.object, uid="another"))
    keys = CLAIM_PROTECTION.watches[1].keys
    assert set(keys(storage.caches(), Change(pod, None))) == {DATA}
    assert set(keys(storage.caches(), Change(pod, again))) == {DATA}
    assert set(keys(storage.caches(), Change(pod, pod))) == set()
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}
    shut_down = PodView.of(meta.with_metadata(pod.object, **ending))
    assert set(keys(storage.caches(), Change(pod, shut_down))) == {DATA}
