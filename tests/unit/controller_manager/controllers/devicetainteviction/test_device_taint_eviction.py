"""Pods with tainted devices are evicted when their claims do not tolerate the taint."""

from datetime import timedelta

import pytest

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import format_time, parse_time
from mockube.client.cache.store import Change
from mockube.client.kinds import PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager.control.actions import CompletedWrite, Delete, PlanResult
from mockube.controller_manager.controllers.devicetainteviction.controller import (
    EvictionMetrics,
    device_taint_eviction,
    end_of_toleration,
    has_same_spec,
)
from tests.support.controllers.fake_api_server import FakeApiServer
from tests.support.metric_samples import sample_value

KEY = Key("default", "p")
ALL = {"operator": "Exists", "effect": "NoExecute"}


def cluster_with_device(*tolerations, effect="NoExecute", node="n", uid="p", tainted=True, generation=1):
    server = FakeApiServer(device_taint_eviction(FeatureGates()), SteppedClock())
    spec = {
        "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
        **({"nodeName": node} if node else {}),
    }
    server.add(
        PODS, {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": spec, "status": {}}
    )
    result = {"driver": "d", "pool": "p", "device": "g", "tolerations": list(tolerations)}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}],
    }
    server.add(
        RESOURCE_CLAIMS, {"metadata": {"name": "c", "namespace": "default"}, "spec": {}, "status": status}
    )
    taint = {"key": "k", "effect": effect, "timeAdded": format_time(server.clock.now())}
    slice_(server, "old", 1, [taint] if tainted else [])
    if generation > 1:
        slice_(server, "new", generation, [])
    return server


def slice_(pods, name, generation, taints):
    spec = {"driver": "d", "pool": {"name": "p", "generation": generation}}
    device = {"name": "g", "taints": taints}
    return pods.add(RESOURCE_SLICES, {"metadata": {"name": name}, "spec": {**spec, "devices": [device]}})


def test_pod_with_tainted_device_is_evicted():
    pods = cluster_with_device()
    pods.reconcile(KEY)
    found = pods.get(PODS, "p")
    assert meta.is_deleting(found)
    (condition,) = conditions.of(found)
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "DeletionByDeviceTaintManager")
    assert pods.events == [("Normal", "DeviceTaintManagerEviction", "Marking for deletion")]
    assert pods.reconcile(KEY) == ([], None)


def test_toleration_seconds_delay_eviction():
    pods = cluster_with_device({**ALL, "tolerationSeconds": 60}, {**ALL, "tolerationSeconds": 30})
    plan = pods.plan(KEY)
    assert timedelta(seconds=29) < plan.requeue_after <= timedelta(seconds=30)
    pods.reconcile(KEY)
    assert pods.done == []
    pods.clock.advance(31)
    pods.reconcile(KEY)
    assert meta.is_deleting(pods.get(PODS, "p"))


def test_removed_taint_cancels_eviction():
    pods = cluster_with_device({**ALL, "tolerationSeconds": 60})
    pods.reconcile(KEY)
    pods.change(RESOURCE_SLICES, "old", ("spec", "devices"), [{"name": "g"}], "")
    pods.reconcile(KEY)
    assert pods.events == [("Normal", "DeviceTaintManagerEviction", "Cancelling deletion")]
    assert pods.reconcile(KEY) == ([], None)
    assert len(pods.events) == 1


@pytest.mark.parametrize(
    "of",
    [
        {"effect": "NoSchedule"},
        {"node": ""},
        {"uid": "another"},
        {"tainted": False},
        {"generation": 2},
    ],
    ids=["another effect", "not bound", "not its claim", "no taint", "a newer slice"],
)
def test_unaffected_pods_stay(of):
    assert cluster_with_device(**of).reconcile(KEY) == ([], None)


@pytest.mark.parametrize("toleration", [ALL, {"key": "k", "effect": "NoExecute"}])
def test_toleration_without_seconds_prevents_eviction(toleration):
    assert cluster_with_device(toleration).reconcile(KEY) == ([], None)


def test_unrelated_toleration_does_not_prevent_eviction():
    pods = cluster_with_device(
        {"key": "k", "value": "x", "effect": "NoExecute"}, {"operator": "Exists", "effect": "NoSchedule"}
    )
    pods.reconcile(KEY)
    assert meta.is_deleting(pods.get(PODS, "p"))


def test_generated_claim_of_other_pod_does_not_count():
    pods = cluster_with_device()
    pods.change(PODS, "p", ("spec", "resourceClaims"), [{"name": "c", "resourceClaimTemplateName": "t"}])
    assert pods.reconcile(KEY) == ([], None)
    pods.change(PODS, "p", ("status", "resourceClaimStatuses"), [{"name": "c", "resourceClaimName": "c"}])
    assert pods.reconcile(KEY) == ([], None)


@pytest.mark.parametrize("writes", range(4))
def test_restart_after_each_action_leads_to_same_end(writes):
    pods = cluster_with_device()
    pods.begin(KEY, writes)
    pods.reconcile(KEY)
    assert meta.is_deleting(pods.get(PODS, "p"))
    assert len(conditions.of(pods.get(PODS, "p"))) == 1


def test_changes_map_to_pod_keys():
    pods = cluster_with_device()
    caches = pods.caches()
    of_pod, of_claim, of_slice, _ = (watch.keys for watch in device_taint_eviction(FeatureGates()).watches)
    view = PodView.of(pods.get(PODS, "p"))
    plain = PodView.of({**view.object, "spec": {}})
    assert {*of_pod(caches, Change(None, view))} == {KEY}
    assert {*of_pod(caches, Change(None, plain))} == set()
    assert {*of_claim(caches, Change(None, pods.get(RESOURCE_CLAIMS, "c")))} == {KEY}
    assert {*of_slice(caches, Change(pods.get(RESOURCE_SLICES, "old", ""), None))} == {KEY}
    other = slice_(pods, "other", 1, [])
    other["spec"]["pool"]["name"] = "q"
    assert {*of_slice(caches, Change(None, other))} == set()


def test_evictions_are_counted():
    registry = MetricsRegistry()
    evictions = EvictionMetrics(registry)
    deleted = CompletedWrite(Delete(resource=PODS, objects=()), KEY, None)
    evictions.observe(None, PlanResult(error=None, writes=(deleted,)), 0.0, SteppedClock().now())
    assert sample_value(registry, "device_taint_eviction_controller_pod_deletions_total") == 1


PENDING = {**ALL, "tolerationSeconds": 60}


@pytest.mark.parametrize("ending", [True, False], ids=["is being deleted", "gone"])
def test_pending_eviction_of_deleted_pod_is_forgotten_without_event(ending):
    pods = cluster_with_device(PENDING)
    pods.reconcile(KEY)
    if ending:
        pods.change(PODS, "p", ("metadata", "deletionTimestamp"), "2030-01-01T00:00:00Z")
    else:
        pods.remove(PODS, "p")
    pods.reconcile(KEY)
    assert pods.plan(KEY).actions == ()
    assert pods.events == []


@pytest.mark.parametrize(
    ("claims", "statuses", "expected"),
    [
        ([], [], False),
        ([{"name": "c", "resourceClaimTemplateName": "t"}], [{"name": "c"}], False),
        ([{"name": "c", "resourceClaimName": "absent"}], [], False),
        (
            [{"name": "a", "resourceClaimTemplateName": "t"}, {"name": "c", "resourceClaimName": "c"}],
            [],
            True,
        ),
    ],
    ids=["no claim", "unneeded claim", "absent claim", "claim that is not created yet"],
)
def test_only_reserved_claims_evict(claims, statuses, expected):
    pods = cluster_with_device()
    pods.change(PODS, "p", ("spec", "resourceClaims"), claims)
    pods.change(PODS, "p", ("status", "resourceClaimStatuses"), statuses)
    pods.reconcile(KEY)
    assert meta.is_deleting(pods.get(PODS, "p")) is expected


SINCE = "2030-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("tolerations", "added", "seconds"),
    [
        ([], SINCE, 0),
        ([], None, None),
        ([ALL], SINCE, None),
        ([PENDING], SINCE, 60),
        ([PENDING], None, None),
        ([{**ALL, "tolerationSeconds": -5}], SINCE, 0),
        ([PENDING, ALL], SINCE, None),
        ([PENDING, {**ALL, "tolerationSeconds": 30}], SINCE, 30),
        ([{**PENDING, "effect": "NoSchedule"}], SINCE, 0),
        ([{"operator": "Exists", "tolerationSeconds": 60}], SINCE, 0),
        ([{**PENDING, "operator": "Equal", "key": "other"}], SINCE, 0),
    ],
)
def test_toleration_ends_after_its_shortest_time(tolerations, added, seconds):
    taint = {"key": "k", "effect": "NoExecute"} | ({"timeAdded": added} if added else {})
    found = end_of_toleration({"tolerations": tolerations}, taint)
    assert found == (None if seconds is None else parse_time(SINCE) + timedelta(seconds=seconds))


RULE = {"spec": {"taint": {"key": "k"}}}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(RULE, RULE), True),
        (Change(RULE, {"spec": {}}), False),
        (Change(None, RULE), False),
        (Change(RULE, None), False),
    ],
)
def test_update_of_the_status_is_no_change_of_the_spec(change, expected):
    assert has_same_spec(change) is expected
