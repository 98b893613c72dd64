"""DeviceTaintRules evict pods, and their status tells how many."""

import pytest

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.timestamps import format_time
from mockube.client.cache.store import Change
from mockube.client.kinds import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.devicetainteviction.controller import device_taint_eviction
from mockube.controller_manager.controllers.devicetainteviction.rules import (
    EvictionCounts,
    reconcile,
    taint_rule_status,
)
from mockube.scheduler.devices.state import with_taints
from tests.support.controllers.fake_api_server import FakeApiServer

KEY, RULE = Key("default", "p"), Key("", "r")
FOREVER = {"operator": "Exists", "effect": "NoExecute"}


class Cluster:
    """A pod with a device that a rule may select."""

    def __init__(self, *tolerations, effect="NoExecute", selector=None):
        self.counts = EvictionCounts()
        eviction = device_taint_eviction(FeatureGates(), 1, self.counts.add)
        self.server = FakeApiServer(eviction, SteppedClock())
        spec = {"nodeName": "n", "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
        pod = {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": spec, "status": {}}
        self.server.add(PODS, pod)
        result = {"driver": "d", "pool": "p", "device": "g", "tolerations": list(tolerations)}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}],
        }
        claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {}, "status": status}
        self.server.add(RESOURCE_CLAIMS, claim)
        devices = {
            "driver": "d",
            "pool": {"name": "p", "generation": 1},
            "devices": [{"name": "g"}, {"name": "h"}],
        }
        self.server.add(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": devices})
        taint = {"key": "k", "effect": effect, "timeAdded": format_time(self.server.clock.now())}
        spec = {"taint": taint} | ({} if selector is None else {"deviceSelector": selector})
        self.rule = self.server.add(DEVICE_TAINT_RULES, {"metadata": {"name": "r"}, "spec": spec})

    def evicts(self):
        self.server.reconcile(KEY)
        return meta.is_deleting(self.server.get(PODS, "p"))

    def plan(self):
        return reconcile(self.counts, self.server.caches(), RULE, self.server.clock.now())

    def condition(self):
        (patch,) = self.plan().actions
        (condition,) = patch.body["status"]["conditions"]
        return condition["status"], condition["reason"], condition["message"]


@pytest.mark.parametrize(
    ("selector", "evicts"),
    [
        ({}, True),
        ({"driver": "d", "pool": "p", "device": "g"}, True),
        ({"device": "h"}, False),
        ({"pool": "q"}, False),
        (None, False),
    ],
)
def test_rule_evicts_pods_with_selected_devices(selector, evicts):
    assert Cluster(selector=selector).evicts() is evicts


def test_tolerated_rule_does_not_evict():
    assert not Cluster(FOREVER, selector={}).evicts()
    assert not Cluster(effect="NoSchedule", selector={}).evicts()


def test_status_of_evicting_rule_has_progress():
    cluster = Cluster(selector={})
    assert cluster.condition() == ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace.")
    assert cluster.evicts()
    assert cluster.condition() == ("False", "Completed", "1 pod evicted since starting the controller.")


def test_status_of_other_effects_is_upstreams():
    assert Cluster(effect="NoSchedule", selector={}).condition() == (
        "False", "OtherEffect", "Eviction only happens for the NoExecute effect.",
    )  # fmt: skip
    status, reason, message = Cluster(effect="None", selector={"driver": "d"}).condition()
    assert (status, reason) == ("False", "NoEffect")
    assert message.startswith(
        "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace if"
    )
    assert Cluster(FOREVER, selector={}).condition() == ("False", "NotStarted", "")


def test_status_is_updated_once_in_ten_seconds():
    cluster = Cluster(selector={})
    (patch,) = cluster.plan().actions
    cluster.server.change(DEVICE_TAINT_RULES, "r", ("status",), patch.body["status"], "")
    assert cluster.plan().requeue_after.total_seconds() == 10
    cluster.server.clock.advance(11)
    assert cluster.plan().actions == ()
    cluster.evicts()
    assert cluster.condition()[1] == "Completed"


def with_rule_status(cluster, **condition):
    present = {"type": "EvictionInProgress", "lastTransitionTime": format_time(cluster.server.clock.now())}
    cluster.server.change(DEVICE_TAINT_RULES, "r", ("status",), {"conditions": [present | condition]}, "")
    return cluster


def test_status_of_another_generation_is_written_at_once():
    cluster = Cluster(selector={})
    generation = meta.generation(cluster.rule)
    assert with_rule_status(cluster, observedGeneration=generation).plan().requeue_after is not None
    assert with_rule_status(cluster, observedGeneration=generation + 1).plan().actions
    assert with_rule_status(cluster).plan().actions


@pytest.mark.parametrize(
    "change",
    [
        (("spec", "nodeName"), ""),
        (("metadata", "deletionTimestamp"), "2030-01-01T00:00:00Z"),
        (("metadata", "uid"), "another"),
    ],
    ids=["not bound", "being deleted", "not the pod of the reservation"],
)
def test_pod_that_is_not_evicted_is_not_counted(change):
    cluster = Cluster(selector={})
    cluster.server.change(PODS, "p", *change)
    assert cluster.condition() == ("False", "NotStarted", "")


def test_pod_with_a_device_that_the_rule_does_not_select_is_not_counted():
    cluster = Cluster(selector={"device": "h"})
    assert cluster.condition() == ("False", "NotStarted", "")
    other = Cluster(effect="None", selector={"device": "h"})
    assert other.condition()[2].startswith(
        "1 published device selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces if"
    )


def test_devices_of_older_slices_are_not_published():
    cluster = Cluster(effect="None", selector={})
    spec = {"driver": "d", "pool": {"name": "p", "generation": 2}, "devices": [{"name": "g"}]}
    cluster.server.add(RESOURCE_SLICES, {"metadata": {"name": "new"}, "spec": spec})
    assert cluster.condition()[2].startswith("1 published device selected.")


@pytest.mark.parametrize(
    ("effect", "change", "rules"),
    [
        ("NoExecute", None, [RULE]),
        ("NoSchedule", None, []),
        ("NoExecute", (("spec", "nodeName"), ""), []),
        ("NoExecute", (("spec", "resourceClaims"), []), []),
    ],
)
def test_pod_maps_to_rules_that_evict_it(effect, change, rules):
    cluster = Cluster(effect=effect, selector={})
    if change:
        cluster.server.change(PODS, "p", *change)
    caches = cluster.server.caches()
    of_pod = taint_rule_status(cluster.counts).watches[1].keys
    assert [*of_pod(caches, Change(None, caches.of(PODS).get(*KEY)))] == rules


def test_tolerated_rule_does_not_map_to_its_pod():
    cluster = Cluster(FOREVER, selector={})
    caches = cluster.server.caches()
    of_pod = taint_rule_status(cluster.counts).watches[1].keys
    assert [*of_pod(caches, Change(None, caches.of(PODS).get(*KEY)))] == []


def test_changes_map_to_rules_and_pods():
    cluster = Cluster(selector={})
    caches = cluster.server.caches()
    of_rule, of_pod, of_claim, _ = (watch.keys for watch in taint_rule_status(cluster.counts).watches)
    changed = {**cluster.rule, "status": {"conditions": []}}
    assert [*of_rule(caches, Change(None, cluster.rule))] == [RULE]
    assert [*of_rule(caches, Change(cluster.rule, changed))] == []
    assert [*of_rule(caches, Change(cluster.rule, None))] == []
    assert [*of_pod(caches, Change(None, caches.of(PODS).get(*KEY)))] == [RULE]
    assert [*of_claim(caches, Change(None, cluster.server.get(RESOURCE_CLAIMS, "c")))] == [RULE]
    of_taint_rule = device_taint_eviction(FeatureGates()).watches[-1].keys
    assert [*of_taint_rule(caches, Change(None, cluster.rule))] == [KEY]
    assert [*of_taint_rule(caches, Change(cluster.rule, changed))] == []


@pytest.mark.parametrize("settings", [(), (("DRADeviceTaintRules", True),)], ids=["default", "gate on"])
def test_older_minor_has_no_rules(settings):
    watched = [watch.resource for watch in device_taint_eviction(FeatureGates("1.36", settings)).watches]
    assert DEVICE_TAINT_RULES not in watched


def test_scheduler_adds_taints_of_rules_to_devices():
    cluster = Cluster(selector={"device": "g"})
    tainted = with_taints(cluster.server.get(RESOURCE_SLICES, "s", ""), [cluster.rule])
    first, second = tainted["spec"]["devices"]
    assert (first["taints"], "taints" in second) == ([cluster.rule["spec"]["taint"]], False)
    assert conditions.of(cluster.rule) == ()
