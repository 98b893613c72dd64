"""Claims for ephemeral volumes of pods."""

import pytest

from mockube.apimachinery import meta
from mockube.client.cache.store import Change
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.ephemeralvolume.controller import EPHEMERAL_VOLUME
from tests.support.controllers.fake_api_server import FakeApiServer

APP = Key("default", "app")
TEMPLATE = {
    "metadata": {"labels": {"tier": "scratch"}},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def cluster_with_pod(*, deleting=False):
    server = FakeApiServer(EPHEMERAL_VOLUME, SteppedClock())
    volumes = [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}, {"name": "x", "emptyDir": {}}]
    ending = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if deleting else {}
    metadata = {"name": "app", "namespace": "default", **ending}
    server.add(PODS, {"metadata": metadata, "spec": {"volumes": volumes}})
    return server


def test_ephemeral_volume_gets_claim_owned_by_pod():
    shown = cluster_with_pod()
    shown.reconcile(APP)
    (claim,) = shown.all(PERSISTENT_VOLUME_CLAIMS)
    assert meta.name(claim) == "app-tmp"
    assert meta.labels(claim) == {"tier": "scratch"}
    assert claim["spec"] == TEMPLATE["spec"]
    assert meta.is_controlled_by(claim, shown.get(PODS, "app"))
    assert shown.reconcile(APP) == ([], None)


def test_foreign_claim_of_same_name_records_event():
    shown = cluster_with_pod()
    shown.add(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "app-tmp", "namespace": "default"}, "spec": {}})
    assert shown.reconcile(APP) == ([], None)
    message = (
        "ephemeral volume tmp: PVC default/app-tmp was not created for pod default/app (pod is not owner)"
    )
    assert shown.events == [("Warning", "FailedBinding", message)]


def test_deleting_pod_gets_no_claim():
    assert cluster_with_pod(deleting=True).reconcile(APP) == ([], None)


def test_changes_map_to_pod_keys():
    shown = cluster_with_pod()
    shown.reconcile(APP)
    (claim,) = shown.all(PERSISTENT_VOLUME_CLAIMS)
    of_pod, of_claim = (watch.keys for watch in EPHEMERAL_VOLUME.watches)
    pod = PodView.of(shown.get(PODS, "app"))
    assert set(of_pod(shown.caches(), Change(None, pod))) == {APP}
    assert set(of_pod(shown.caches(), Change(pod, None))) == set()
    assert set(of_claim(shown.caches(), Change(claim, None))) == {APP}
    assert set(of_claim(shown.caches(), Change(None, claim))) == set()


def test_deleted_foreign_claim_is_replaced_by_pods_own():
    shown = cluster_with_pod()
    foreign = {"metadata": {"name": "app-tmp", "namespace": "default"}, "spec": {}}
    _, of_claim = (watch.keys for watch in EPHEMERAL_VOLUME.watches)
    assert set(of_claim(shown.caches(), Change(foreign, None))) == {APP}
    other = {"metadata": {"name": "app-x", "namespace": "default"}, "spec": {}}
    assert set(of_claim(shown.caches(), Change(other, None))) == set()


def pod_with(*volumes, **metadata):
    named = {"name": "app", "namespace": "default", "uid": "u", **metadata}
    return {"metadata": named, "spec": {"volumes": [*volumes]}}


TMP = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": TEMPLATE}}
BY_CLAIM_NAME = {"name": "tmp", "persistentVolumeClaim": {"claimName": "app-tmp"}}
ENDING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pod_with(TMP), {APP}),
        (pod_with(TMP, **ENDING), set()),
        (pod_with({"name": "x", "emptyDir": {}}), set()),
        (pod_with(BY_CLAIM_NAME), set()),
    ],
)
def test_pod_with_ephemeral_volume_is_reconciled(pod, expected):
    server = FakeApiServer(EPHEMERAL_VOLUME, SteppedClock())
    server.add(PODS, pod)
    of_pod, of_claim = (watch.keys for watch in EPHEMERAL_VOLUME.watches)
    claim = {"metadata": {"name": "app-tmp", "namespace": "default"}}
    assert {*of_pod(None, Change(None, PodView.of(pod)))} == expected
    assert {*of_claim(server.caches(), Change(claim, None))} == expected


def test_claim_has_no_empty_metadata():
    server = FakeApiServer(EPHEMERAL_VOLUME, SteppedClock())
    server.add(PODS, pod_with({"name": "tmp", "ephemeral": {}}))
    (action,) = server.plan(APP).actions
    (body,) = action.bodies
    assert body["metadata"].keys() == {"name", "namespace", "ownerReferences"}
    assert body["spec"] == {}
