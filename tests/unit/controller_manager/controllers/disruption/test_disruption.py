"""PodDisruptionBudget: allowed disruptions, and cleanup after evictions that did not happen."""

import pytest

from mockube.apimachinery import meta
from mockube.apimachinery.labels import selector_text
from mockube.apimachinery.timestamps import format_time
from mockube.client import kinds
from mockube.client.cache.store import Change
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.disruption.controller import DISRUPTION
from mockube.controller_manager.controllers.disruption.stale import STALE_POD_DISRUPTION
from tests.support.controllers.fake_api_server import FakeApiServer

GUARD = Key("default", "guard")
BUDGETS = kinds.POD_DISRUPTION_BUDGETS
POD = {"metadata": {"labels": {"app": "web"}}}


class DisruptionHarness(FakeApiServer):
    def __init__(self, controller=DISRUPTION, **spec):
        super().__init__(controller, SteppedClock())
        metadata = {"name": "guard", "namespace": "default", "generation": 1}
        selector = {"matchLabels": {"app": "web"}}
        self.add(BUDGETS, {"metadata": metadata, "spec": {"selector": selector, **spec}})

    def owner(self, resource, name, replicas, above=None):
        refs = [meta.controller_reference(above)] if above else []
        metadata = {"name": name, "namespace": "default", "ownerReferences": refs}
        return self.add(resource, {"metadata": metadata, "spec": {"replicas": replicas, "template": POD}})

    def pods(self, owner, ready, others=0):
        for number in range(ready + others):
            self.pod(f"{meta.name(owner) if owner else 'bare'}-{number}", owner, ready=number < ready)

    def pod(self, name, owner=None, *, ready=True):
        refs = [meta.controller_reference(owner)] if owner else []
        metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, "ownerReferences": refs}
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        self.add(
            kinds.PODS,
            {"metadata": metadata, "spec": {}, "status": {"phase": "Running", "conditions": [condition]}},
        )

    def counts(self):
        self.reconcile(GUARD)
        status = self.get(BUDGETS, "guard")["status"]
        fields = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        return [status.get(field) for field in fields]

    def condition(self):
        (condition,) = self.get(BUDGETS, "guard")["status"]["conditions"]
        return condition["status"], condition["reason"], condition["message"]

    def evict(self, name):
        evicted = {name: format_time(self.clock.now())}
        self.change(BUDGETS, "guard", ("status", "disruptedPods"), evicted)


@pytest.mark.parametrize(
    ("spec", "ready", "others", "expected"),
    [
        pytest.param({"minAvailable": 3}, 3, 0, [3, 3, 3, 0], id="as many as must be"),
        pytest.param({"minAvailable": 3}, 4, 0, [4, 4, 3, 1], id="one more"),
        pytest.param({"minAvailable": 5}, 4, 0, [4, 4, 5, 0], id="more than there are"),
        pytest.param({"minAvailable": 1}, 1, 2, [3, 1, 1, 0], id="only the ready count"),
        pytest.param({"minAvailable": "50%"}, 3, 0, [5, 3, 3, 0], id="a share of the scale, rounded up"),
        pytest.param({"maxUnavailable": 1}, 5, 0, [5, 5, 4, 1], id="at most one missing"),
        pytest.param({"maxUnavailable": "30%"}, 5, 0, [5, 5, 3, 2], id="a missing share, rounded up"),
        pytest.param({"maxUnavailable": 9}, 5, 0, [5, 5, 0, 5], id="more missing than there are"),
        pytest.param({}, 2, 0, [0, 2, 0, 0], id="budget without limits"),
    ],
)
def test_disruption_counts(spec, ready, others, expected):
    guarded = DisruptionHarness(**spec)
    guarded.pods(guarded.owner(kinds.STATEFUL_SETS, "web", 5), ready, others)
    assert guarded.counts() == expected


@pytest.mark.parametrize(
    "resource", [kinds.REPLICATION_CONTROLLERS, kinds.REPLICA_SETS, kinds.STATEFUL_SETS], ids=str
)
def test_expected_pods_are_scale_of_controller(resource):
    guarded = DisruptionHarness(maxUnavailable=0)
    guarded.pods(guarded.owner(resource, "web", 7), 1)
    assert guarded.counts()[0] == 7


def test_expected_pods_of_replica_set_are_those_of_deployment():
    guarded = DisruptionHarness(maxUnavailable=0)
    deployment = guarded.owner(kinds.DEPLOYMENTS, "web", 4)
    for name in ("old", "new"):
        guarded.pods(guarded.owner(kinds.REPLICA_SETS, name, 3, deployment), 2)
    assert guarded.counts()[0] == 4


def test_expected_pods_of_orphaned_replica_set_are_its_own():
    guarded = DisruptionHarness(maxUnavailable=0)
    deployment = guarded.owner(kinds.DEPLOYMENTS, "web", 4)
    guarded.pods(guarded.owner(kinds.REPLICA_SETS, "left", 3, deployment), 2)
    guarded.remove(kinds.DEPLOYMENTS, "web")
    assert guarded.counts()[0] == 3


def test_scales_of_several_controllers_are_added():
    guarded = DisruptionHarness(maxUnavailable=0)
    guarded.pods(guarded.owner(kinds.STATEFUL_SETS, "a", 4), 2)
    guarded.pods(guarded.owner(kinds.REPLICA_SETS, "b", 3), 2)
    assert guarded.counts()[0] == 7


@pytest.mark.parametrize(
    ("resource", "problem"),
    [
        pytest.param(
            kinds.DAEMON_SETS,
            "daemonsets.apps does not implement the scale subresource",
            id="a kind without scale",
        ),
        pytest.param(kinds.CRON_JOBS, 'found no controllers for pod "web-0"', id="unknown kind"),
    ],
)
def test_uncountable_controller_allows_no_disruptions(resource, problem):
    guarded = DisruptionHarness(maxUnavailable=1)
    guarded.pods(guarded.owner(resource, "web", 4), 2)
    guarded.reconcile(GUARD)
    assert guarded.condition() == ("False", "SyncFailed", problem)
    assert guarded.get(BUDGETS, "guard")["status"]["disruptionsAllowed"] == 0
    message = f"Failed to calculate the number of expected pods: {problem}"
    assert guarded.events == [("Warning", "CalculateExpectedPodCountFailed", message)]
    assert guarded.reconcile(GUARD) == ([], None)


def test_missing_controller_cannot_be_counted():
    guarded = DisruptionHarness(maxUnavailable=1)
    guarded.pods(guarded.owner(kinds.STATEFUL_SETS, "web", 4), 1)
    guarded.remove(kinds.STATEFUL_SETS, "web")
    guarded.reconcile(GUARD)
    assert guarded.condition()[1] == "SyncFailed"


def test_unmanaged_pods_record_event():
    guarded = DisruptionHarness(maxUnavailable=1)
    guarded.pod("bare")
    assert guarded.counts() == [0, 1, 0, 0]
    ((kind, reason, message),) = guarded.events
    assert (kind, reason) == ("Warning", "UnmanagedPods")
    assert "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,}," in message


def test_budget_without_pods():
    guarded = DisruptionHarness(minAvailable=0)
    assert guarded.counts() == [0, 0, 0, 0]
    assert guarded.events == [("Normal", "NoPods", "No matching pods found")]
    assert guarded.condition() == ("False", "InsufficientPods", "")


def test_unchanged_status_is_not_written():
    guarded = DisruptionHarness(minAvailable=1)
    guarded.pod("a")
    guarded.pod("b")
    guarded.reconcile(GUARD)
    assert guarded.condition() == ("True", "SufficientPods", "")
    assert guarded.reconcile(GUARD) == ([], None)


def test_evicted_pod_counts_as_disrupted_until_timeout():
    guarded = DisruptionHarness(minAvailable=1)
    guarded.pod("a")
    guarded.pod("b")
    guarded.evict("a")
    assert guarded.counts() == [2, 1, 1, 0]
    assert guarded.plan(GUARD).requeue_after.total_seconds() == 120
    guarded.clock.advance(120)
    assert guarded.counts() == [2, 2, 1, 1]
    assert "disruptedPods" not in guarded.get(BUDGETS, "guard")["status"]
    message = "Pod was expected by PDB default/default to be deleted but it wasn't"
    assert guarded.events == [("Warning", "NotDeleted", message)]
    assert guarded.plan(GUARD).requeue_after is None


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "deleting"])
def test_deleted_pod_is_removed_from_disrupted_pods(gone):
    guarded = DisruptionHarness(minAvailable=1)
    guarded.pod("a")
    guarded.pod("b")
    guarded.evict("a")
    if gone:
        guarded.remove(kinds.PODS, "a")
    else:
        pod = guarded.get(kinds.PODS, "a")
        guarded.put(kinds.PODS, meta.with_metadata(pod, deletionTimestamp="2030-01-01T00:00:00Z"))
    guarded.reconcile(GUARD)
    assert "disruptedPods" not in guarded.get(BUDGETS, "guard")["status"]


def test_deleting_pod_is_not_healthy():
    guarded = DisruptionHarness(minAvailable=1)
    guarded.pod("a")
    pod = guarded.get(kinds.PODS, "a")
    guarded.put(kinds.PODS, meta.with_metadata(pod, deletionTimestamp="2030-01-01T00:00:00Z"))
    assert guarded.counts() == [1, 0, 1, 0]


# --- mapping of changes to keys


def keys(guarded, resource, old, new):
    (watch,) = (watch for watch in DISRUPTION.watches if watch.resource is resource)
    return set(watch.keys(guarded.caches(), Change(old, new)))


def test_pod_maps_to_budgets_that_select_or_selected_it():
    guarded = DisruptionHarness()
    metadata = {"name": "a", "namespace": "default", "labels": {"app": "web"}}
    mine = PodView.of({"metadata": metadata})
    other = PodView.of({"metadata": {**metadata, "labels": {}}})
    assert keys(guarded, kinds.PODS, None, mine) == {GUARD}
    assert keys(guarded, kinds.PODS, mine, other) == {GUARD}
    assert keys(guarded, kinds.PODS, other, None) == set()


def test_scale_change_maps_to_budgets_of_template():
    guarded = DisruptionHarness()
    small = guarded.owner(kinds.STATEFUL_SETS, "web", 1)
    large = {**small, "spec": {**small["spec"], "replicas": 2}}
    assert keys(guarded, kinds.STATEFUL_SETS, small, large) == {GUARD}
    assert keys(guarded, kinds.STATEFUL_SETS, small, {**small, "status": {}}) == set()


def test_selector_is_printed_as_in_go():
    expression = {"key": "tier", "operator": "In", "values": ["a", "b"]}
    selector = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [expression]}
    assert selector_text(selector) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement"
        "{LabelSelectorRequirement{Key:tier,Operator:In,Values:[a b],},},}"
    )
    assert selector_text(None) == "nil"


# --- conditions of evictions that did not happen


def targeted(guarded, **changes):
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "m",
    }
    since = {"lastTransitionTime": format_time(guarded.clock.now())}
    pod = guarded.get(kinds.PODS, "a")
    status = {**pod["status"], "conditions": [{**condition, **since, **changes}]}
    guarded.put(kinds.PODS, {**pod, "status": status})


def test_stale_disruption_target_condition_is_cleared():
    guarded, key = DisruptionHarness(STALE_POD_DISRUPTION), Key("default", "a")
    guarded.pod("a")
    targeted(guarded)
    assert guarded.plan(key).requeue_after.total_seconds() == 120
    guarded.clock.advance(120)
    guarded.reconcile(key)
    (condition,) = guarded.get(kinds.PODS, "a")["status"]["conditions"]
    assert condition == {
        "type": "DisruptionTarget",
        "status": "False",
        "observedGeneration": 1,
        "lastTransitionTime": format_time(guarded.clock.now()),
    }
    assert guarded.reconcile(key) == ([], None)


def test_disruption_target_of_kubelet_is_not_cleared():
    guarded, key = DisruptionHarness(STALE_POD_DISRUPTION), Key("default", "a")
    guarded.pod("a")
    targeted(guarded, reason="TerminationByKubelet")
    guarded.clock.advance(600)
    assert guarded.reconcile(key) == ([], None)


@pytest.mark.parametrize(
    ("condition", "pod", "expected"),
    [
        ({}, {}, True),
        (None, {}, False),
        ({"status": "False"}, {}, False),
        ({"reason": "TerminationByKubelet"}, {}, False),
        ({"lastTransitionTime": None}, {}, False),
        ({}, {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, False),
        ({}, {"phase": "Failed"}, False),
    ],
    ids=["stale", "none", "false", "by the kubelet", "undated", "being deleted", "ended"],
)
def test_pod_with_a_true_condition_is_reconciled(condition, pod, expected):
    present = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    listed = [] if condition is None else [present | condition]
    metadata = {"name": "a", "namespace": "default", **pod.get("metadata", {})}
    view = PodView.of(
        {"metadata": metadata, "status": {"phase": pod.get("phase", "Running"), "conditions": listed}}
    )
    (watch,) = STALE_POD_DISRUPTION.watches
    assert [*watch.keys(None, Change(None, view))] == ([view.key] if expected else [])
    assert [*watch.keys(None, Change(view, None))] == []
    guarded = DisruptionHarness(STALE_POD_DISRUPTION)
    guarded.add(kinds.PODS, view.object)
    guarded.clock.advance(600)
    assert bool(guarded.plan(view.key).actions) is expected


def test_pods_with_other_labels_do_not_count():
    guarded = DisruptionHarness(minAvailable=1)
    guarded.pod("a")
    guarded.add(
        kinds.PODS, {"metadata": {"name": "b", "namespace": "default", "labels": {"app": "x"}}, "spec": {}}
    )
    assert guarded.counts() == [1, 1, 1, 0]


def test_replaced_controller_is_not_the_one_of_its_former_pods():
    guarded = DisruptionHarness(maxUnavailable=1)
    guarded.pods(guarded.owner(kinds.STATEFUL_SETS, "web", 4), 1)
    guarded.change(kinds.STATEFUL_SETS, "web", ("metadata", "uid"), "another")
    guarded.reconcile(GUARD)
    assert guarded.condition() == ("False", "SyncFailed", 'found no controllers for pod "web-0"')


def test_missing_replica_set_cannot_be_counted():
    guarded = DisruptionHarness(maxUnavailable=1)
    guarded.pods(guarded.owner(kinds.REPLICA_SETS, "web", 4), 1)
    guarded.remove(kinds.REPLICA_SETS, "web")
    guarded.reconcile(GUARD)
    assert guarded.condition() == ("False", "SyncFailed", 'found no controllers for pod "web-0"')


def test_new_and_deleted_owner_with_a_scale_concerns_its_budgets():
    guarded = DisruptionHarness()
    owner = guarded.owner(kinds.STATEFUL_SETS, "web", 1)
    assert keys(guarded, kinds.STATEFUL_SETS, None, owner) == {GUARD}
    assert keys(guarded, kinds.STATEFUL_SETS, owner, None) == {GUARD}
