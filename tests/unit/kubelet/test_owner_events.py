"""Events that all pods of an owner have: on the first pods of an owner, and then on the owner."""

import pytest

from mockube.container_runtime.records import Records
from mockube.kubelet import owner_events
from mockube.kubelet.owner_events import MAX_PODS, OwnerEvents
from mockube.kubelet.step_effects import EmitEvent
from tests.support.controllers.pods import pod

EVENT = EmitEvent("Warning", "NotSimulated", "the image app is not simulated", "spec.containers{c}")
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "owner-1", "controller": True}


class Recorded:
    def __init__(self):
        self.events = []

    def record_on(self, host, about, kind, reason, message, *, part=""):
        assert (host, kind, reason) == ("node-1", "Warning", "NotSimulated")
        self.events.append((about.get("kind"), about["metadata"]["name"], message, part))


def owned_pod(number, owner=OWNER):
    tree = pod()
    metadata = {**tree["metadata"], "name": f"p{number}", "uid": f"uid-{number}"}
    return {"kind": "Pod", **tree, "metadata": {**metadata, "ownerReferences": [owner] if owner else []}}


def test_owner_has_the_event_of_all_further_pods():
    recorded = Recorded()
    events = OwnerEvents(Records(), recorded)
    for number in range(MAX_PODS + 10):
        events.record("node-1", owned_pod(number), EVENT)
    assert recorded.events[:MAX_PODS] == [
        ("Pod", f"p{number}", EVENT.message, EVENT.part) for number in range(MAX_PODS)
    ]
    message = f"the image app is not simulated; only {MAX_PODS} pods have this event"
    assert recorded.events[MAX_PODS:] == [("ReplicaSet", "web", message, "")]
    events.record("node-1", owned_pod(0), EVENT)
    assert recorded.events[-1][1] == "p0", "a pod that is counted has further events"
    events.record("node-1", owned_pod(MAX_PODS), EVENT)
    assert recorded.events[-1][:2] == ("ReplicaSet", "web"), "the owner has all events of the pod after these"


@pytest.mark.parametrize("owner", [None, "another for each"])
def test_pods_of_no_owner_and_of_others_have_events(owner):
    recorded = Recorded()
    events = OwnerEvents(Records(), recorded)
    for number in range(2 * MAX_PODS):
        events.record("node-1", owned_pod(number, owner and {**OWNER, "uid": f"owner-{number}"}), EVENT)
    assert {kind for kind, *_ in recorded.events} == {"Pod"}
    assert len(recorded.events) == 2 * MAX_PODS


def test_owner_whose_pods_were_counted_longest_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(owner_events, "_MAX_OWNERS", 2)
    events = OwnerEvents(Records(), Recorded())
    for number, owner in enumerate(("a", "b", "a", "c", "b")):
        events.record("node-1", owned_pod(number, {**OWNER, "uid": owner}), EVENT)
    assert [*events._counts.items()] == [("c", 1), ("b", 1)]
