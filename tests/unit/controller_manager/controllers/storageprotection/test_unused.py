"""The condition Unused of claims, with its feature gate, without it, and in older minors."""

import pytest

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import PERSISTENT_VOLUME_CLAIMS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.controllers.storageprotection.controller import CLAIM_PROTECTION
from tests.support.controllers.storage import Storage

DATA = Key("default", "data")
GATE = "PersistentVolumeClaimUnusedSinceTime"
UNUSED = ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
IN_USE = ("False", "PodUsingPVC", "A pod is currently referencing this PVC")


def storage_with_claim(*, phase="Bound", gates=None):
    storage = Storage((CLAIM_PROTECTION,))
    storage.gates = gates or storage.gates
    storage.put(PERSISTENT_VOLUME_CLAIMS, storage.claim() | {"status": {"phase": phase}})
    return storage


def condition(storage):
    found = conditions.get(storage.get_claim(), "Unused")
    return found and (found["status"], found["reason"], found["message"])


def test_claim_without_pods_is_unused():
    storage = storage_with_claim()
    storage.settle()
    assert condition(storage) == UNUSED
    now = format_time(storage.clock.now())
    assert conditions.of(storage.get_claim())[0]["lastTransitionTime"] == now


def test_condition_changes_with_use():
    storage = storage_with_claim()
    storage.pod()
    storage.settle()
    assert condition(storage) == IN_USE
    storage.clock.advance(60)
    storage.remove(PODS, "app")
    storage.settle()
    assert condition(storage) == UNUSED
    now = format_time(storage.clock.now())
    assert conditions.of(storage.get_claim())[0]["lastTransitionTime"] == now


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"status": {"phase": "Succeeded"}}, UNUSED, id="ended"),
        pytest.param({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, UNUSED, id="deleted"),
        pytest.param(
            {
                "metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"},
                "status": {"phase": "Running", "containerStatuses": [{"state": {"running": {}}}]},
            },
            IN_USE,
            id="deleted and running",
        ),
        pytest.param({}, IN_USE, id="pending"),
    ],
)
def test_pod_uses_claim_until_it_has_ended(change, expected):
    storage = storage_with_claim()
    storage.pod()
    pod = meta.with_metadata(storage.get(PODS, "app"), **change.get("metadata", {}))
    storage.put(PODS, {**pod, "status": change.get("status", {})})
    storage.settle()
    assert condition(storage) == expected


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param(FeatureGates("1.37"), None, id="1.37"),
        pytest.param(FeatureGates("1.36", [(GATE, True)]), UNUSED, id="1.36 with the gate"),
    ],
)
def test_unbound_claim_is_only_reported_in_older_minors(gates, expected):
    storage = storage_with_claim(phase="Pending", gates=gates)
    storage.settle()
    assert condition(storage) == expected


@pytest.mark.parametrize("gates", [FeatureGates("1.36"), FeatureGates("1.37", [(GATE, False)])])
def test_condition_needs_its_gate(gates):
    storage = storage_with_claim(gates=gates)
    storage.settle()
    assert condition(storage) is None


def test_claim_is_not_unused_because_of_stale_cache():
    storage = storage_with_claim()
    storage.pod()
    storage.pending_writes = {PODS: {("default", "app"): storage.get(PODS, "app")}}
    storage.remove(PODS, "app")
    _, error = storage.reconcile(DATA)
    assert error is not None
    assert condition(storage) is None


def test_pod_maps_to_its_claims_when_their_use_changes():
    storage = storage_with_claim()
    storage.pod()
    pod = PodView.of(storage.get(PODS, "app"))
    ended = PodView.of({**pod.object, "status": {"phase": "Failed"}})
    keys = CLAIM_PROTECTION.watches[1].keys
    assert [*keys(storage.caches(), Change(None, pod))] == [DATA]
    assert [*keys(storage.caches(), Change(pod, ended))] == [DATA]
    assert [*keys(storage.caches(), Change(pod, pod))] == []
    storage.gates = FeatureGates("1.36")
    assert [*keys(storage.caches(), Change(None, pod))] == []
