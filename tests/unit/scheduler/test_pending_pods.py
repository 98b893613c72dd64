"""Which pods the scheduler has to schedule, and the events that may help one of them."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.cache.store import Store
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.scheduler.pending_pods import PendingPods
from mockube.scheduler.pods import pod_change_affects_scheduling
from mockube.scheduler.profiles import DEFAULT_PROFILE
from mockube.scheduler.requeueing import Action, ClusterEvent
from tests.support.controllers.scheduler_objects import pod

WEB = Key("default", "web")
PROFILES = {"default-scheduler": DEFAULT_PROFILE, "other": DEFAULT_PROFILE}
DELETING = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
GATES = {"schedulingGates": [{"name": "g"}]}


def pending(*trees):
    store = Store()
    for tree in trees:
        view = PodView.of(tree)
        store.put(view.key, view)
    return PendingPods(store, PROFILES, FeatureGates())


@pytest.mark.parametrize(
    ("fields", "is_pending"),
    [
        ({}, True),
        ({"schedulerName": "other"}, True),
        ({"schedulerName": "unknown"}, False),
        ({"nodeName": "a"}, False),
        (GATES, False),
        (DELETING, False),
        ({"status": {"phase": "Failed"}}, False),
        ({"status": {"phase": "Pending"}}, True),
    ],
)
def test_pod_without_node_or_gate_is_pending(fields, is_pending):
    pods = pending(pod(**fields))
    assert (pods.find(WEB) is not None) is is_pending
    assert pods.latest(WEB) is not None
    assert pods.still_contains(PodView.of(pod())) is is_pending


def test_pod_that_has_gone_is_not_pending():
    pods = pending()
    assert (pods.find(WEB), pods.latest(WEB)) == (None, None)
    assert not pods.still_contains(PodView.of(pod()))
    assert not pending(pod(metadata={"uid": "second"})).still_contains(PodView.of(pod()))


def test_profile_is_the_one_that_the_pod_names():
    pods = pending(pod(schedulerName="other"))
    assert pods.profile_name(WEB) == "other"
    assert pods.profile_name(Key("default", "gone")) == "default-scheduler"


@pytest.mark.parametrize(
    ("trees", "kind", "is_worth"),
    [
        pytest.param([pod()], "Pod", False, id="an event of others"),
        pytest.param([pod()], "CSINode", True, id="an event of the plugin"),
        pytest.param([], "Pod", True, id="a pod that has gone"),
        pytest.param([pod(schedulerName="unknown")], "Pod", True, id="a profile that does not exist"),
    ],
)
def test_events_that_plugins_register_are_worth_another_attempt(trees, kind, is_worth):
    event = ClusterEvent(kind, Action.ADD)
    assert pending(*trees).is_worth_requeuing(WEB, {"VolumeBinding"}, event) is is_worth


@pytest.mark.parametrize(
    ("old", "new", "is_affected"),
    [
        pytest.param({}, {}, False, id="nothing"),
        pytest.param({}, {"status": {"conditions": [{"type": "PodScheduled"}]}}, False, id="a condition"),
        pytest.param({}, {"labels": {"a": "b"}}, True, id="labels"),
        pytest.param({}, {"nodeSelector": {"a": "b"}}, True, id="the spec"),
        pytest.param({"nodeName": "a"}, {}, True, id="the node"),
        pytest.param({}, {"nodeName": "a"}, True, id="bound"),
        pytest.param({}, DELETING, True, id="being deleted"),
        pytest.param(
            {}, {"status": {"resourceClaimStatuses": [{"name": "c"}]}}, True, id="the name of a claim"
        ),
    ],
)
def test_change_of_a_pending_pod_affects_its_scheduling(old, new, is_affected):
    views = [PodView.of(pod(**fields)) for fields in (old, new)]
    assert pod_change_affects_scheduling(*views, PROFILES) is is_affected
