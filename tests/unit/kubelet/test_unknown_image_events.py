"""Events about images of which nothing is known: on the first pods of an owner, and then on the owner."""

import pytest

from mockube.kubelet.effects import EmitEvent
from mockube.kubelet.unknown_images import MAX_PODS, UnknownImageEvents
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
    events = UnknownImageEvents(recorded)
    for number in range(MAX_PODS + 10):
        events.record("node-1", owned_pod(number), [EVENT])
    assert recorded.events[:MAX_PODS] == [
        ("Pod", f"p{number}", EVENT.message, EVENT.part) for number in range(MAX_PODS)
    ]
    message = f"the image app is not simulated; only {MAX_PODS} pods have this event"
    assert recorded.events[MAX_PODS:] == [("ReplicaSet", "web", message, "")]
    events.record("node-1", owned_pod(0), [EVENT])
    assert recorded.events[-1][1] == "p0", "a pod that is counted has further events"


@pytest.mark.parametrize("owner", [None, "another for each"])
def test_pods_of_no_owner_and_of_others_have_events(owner):
    recorded = Recorded()
    events = UnknownImageEvents(recorded)
    for number in range(2 * MAX_PODS):
        events.record("node-1", owned_pod(number, owner and {**OWNER, "uid": f"owner-{number}"}), [EVENT])
    assert {kind for kind, *_ in recorded.events} == {"Pod"}
    assert len(recorded.events) == 2 * MAX_PODS
