"""A critical pod preempts pods of its node, and starts after they have ended."""

from collections import Counter
from datetime import timedelta

import pytest

from mockube.apimachinery.meta import with_metadata, with_value
from mockube.client.cache.store import Change
from mockube.client.podview import PodView
from mockube.kubelet.admitted_pods import AdmittedPods
from mockube.kubelet.pod_lifecycle.pod import preempt
from mockube.kubelet.pod_lifecycle.preemption import (
    NothingToPreempt,
    PreemptiblePod,
    is_preemptable,
    pods_to_preempt,
)
from mockube.kubelet.step_effects import EmitEvent, PatchObject, Step
from tests.support.controllers.pods import START, SimulatedPod, container, node_context, patched, pod

CRITICAL = 2_000_000_000


def candidates(**pods):
    """Yield candidates, given as `name="qosClass cpu memory"`."""
    for name, text in pods.items():
        qos_class, cpu, memory = text.split()
        yield PreemptiblePod(name, qos_class, Counter(cpu=int(cpu), memory=int(memory)))


def preempted_uids(shortage, **pods):
    return [one.uid for one in pods_to_preempt(list(candidates(**pods)), shortage)]


@pytest.mark.parametrize(
    ("shortage", "pods", "expected"),
    [
        ({"cpu": 100}, {"a": "Burstable 200 1", "b": "Guaranteed 100 1"}, ["a"]),
        ({"cpu": 100}, {"a": "Burstable 90 1", "b": "Guaranteed 100 1"}, ["b"]),
        ({"cpu": 100}, {"a": "Burstable 60 1", "b": "Burstable 60 1", "c": "Guaranteed 500 9"}, ["a", "b"]),
        ({"cpu": 100}, {"a": "Burstable 50 1", "b": "Burstable 100 5", "c": "Burstable 100 2"}, ["c"]),
        ({"cpu": 100}, {"a": "Burstable 300 5", "b": "Burstable 200 5"}, ["b"]),
        ({"cpu": 100, "memory": 10}, {"a": "Burstable 100 0", "b": "Burstable 90 10"}, ["b", "a"]),
        ({"pods": 1}, {"a": "Guaranteed 1 1", "b": "BestEffort 0 0"}, ["b"]),
        ({"pods": 1, "cpu": 5}, {"a": "Guaranteed 5 1", "b": "BestEffort 0 0"}, ["a"]),
    ],
)
def test_fewest_and_least_guaranteed_pods_are_preempted(shortage, pods, expected):
    assert preempted_uids(shortage, **pods) == expected


def test_insufficient_preemption_is_an_error():
    with pytest.raises(NothingToPreempt) as caught:
        preempted_uids({"cpu": 100, "memory": 5}, a="Burstable 40 5", b="Guaranteed 10 0")
    assert str(caught.value) == "no set of running pods found to reclaim resources: [(res: cpu, q: 50), ]"


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        (CRITICAL, 0, True),
        (CRITICAL, None, True),
        (CRITICAL, CRITICAL, False),
        (CRITICAL + 1, CRITICAL, True),
        (CRITICAL, CRITICAL + 1, False),
    ],
)
def test_preemptable_pods_of_critical_pod(own, other, expected):
    assert is_preemptable(pod(priority=own), pod(priority=other)) is expected


# --- on a node

NODE = {"metadata": {"name": "node-1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}}
RUNNING = {"phase": "Running", "startTime": "2030-01-01T00:00:00Z", "qosClass": "Burstable"}
FAILED = {**RUNNING, "phase": "Failed"}


class Node:
    def __init__(self):
        self.views, self.ended, self.looked_at = {}, [], []
        self.admitted = AdmittedPods(self, preempt=lambda one: self.ended.append(one.uid), enqueue=self._look)

    def by_index(self, *_):
        return list(self.views.values())

    def _look(self, key):
        self.looked_at.append(key.name)

    def set(self, uid, cpu, status=None, **spec):
        subject = pod(container(resources={"requests": {"cpu": cpu}}), **spec)
        old = self.views.get(uid)
        named = with_metadata(subject, uid=uid, name=uid)
        self.views[uid] = PodView.of(with_value(named, ("status",), status or {}))
        self.admitted.on_change(Change(old, self.views[uid]))
        return self.views[uid]

    def remove(self, uid):
        self.admitted.on_change(Change(self.views.pop(uid), None))

    def admit(self, uid, cpu, status=None, *, later=0, **spec):
        return self.admitted.admit(self.set(uid, cpu, status, **spec), NODE, START + timedelta(seconds=later))


def test_critical_pod_waits_for_preempted_pods():
    node = Node()
    assert node.admit("a", "3") is None
    node.set("a", "3", RUNNING)
    assert node.admit("critical", "2", priority=CRITICAL) == Step(requeue_at=START + timedelta(seconds=45))
    assert node.ended == ["a"]
    assert node.admitted.preemption_time(node.views["a"]) == START
    node.set("a", "3", {**RUNNING, "message": "its containers end"})
    assert node.admit("critical", "2", priority=CRITICAL, later=1)
    node.set("a", "3", FAILED)
    assert node.looked_at == ["critical"]
    assert node.admit("critical", "2", priority=CRITICAL, later=2) is None
    assert node.ended == ["a"]


def test_critical_pod_waits_no_longer_than_kubelet_does():
    node = Node()
    node.admit("a", "3", RUNNING)
    node.admitted.on_change(Change(None, node.views["a"]))
    node.admit("critical", "2", priority=CRITICAL, terminationGracePeriodSeconds=0)
    assert node.admit("critical", "2", priority=CRITICAL, later=44)
    assert node.admit("critical", "2", priority=CRITICAL, later=45) is None


def test_freed_resources_are_reserved_for_critical_pod():
    node = Node()
    node.admit("a", "3")
    node.set("a", "3", RUNNING)
    node.admit("critical", "3", priority=CRITICAL)
    node.set("a", "3", FAILED)
    rejected = node.admit("b", "2")
    assert rejected.effects[0].reason == "OutOfcpu"
    node.remove("critical")
    assert node.admit("b", "2", later=1) is None


def test_critical_pod_without_victims_is_rejected():
    node = Node()
    node.admit("first", "3", priority=CRITICAL)
    event, write = node.admit("second", "2", priority=CRITICAL).effects
    assert event == EmitEvent(
        "Warning",
        "UnexpectedAdmissionError",
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
        "pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]",
    )
    assert write.body["status"]["reason"] == "UnexpectedAdmissionError"
    assert node.ended == []


def test_other_rejection_reasons_come_first():
    node = Node()
    node.admit("a", "3")
    rejected = node.admit("critical", "2", priority=CRITICAL, nodeSelector={"zone": "b"})
    assert rejected.effects[0].reason == "NodeAffinity"
    assert node.ended == []


# --- the preempted pod


def preempted_pod(**annotations):
    named = {f"mockube.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    subject = pod(container("web"), annotations=named, terminationGracePeriodSeconds=20)
    running = SimulatedPod(subject, context=node_context(details=True)).pod
    return running, preempt(running, node_context(details=True), START, START)


def test_preempted_pod_has_reason_in_status():
    running, step = preempted_pod()
    killing, write = step.effects
    message = "Stopping container web"
    assert killing == EmitEvent("Normal", "Killing", message, "spec.containers{web}", once="stop")
    assert isinstance(write, PatchObject)
    status = patched(running["status"], write.body["status"])
    assert (status["phase"], status["reason"]) == ("Failed", "Preempting")
    assert status["message"] == "Preempted in order to admit critical pod"
    target = next(one for one in status["conditions"] if one["type"] == "DisruptionTarget")
    assert target == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "TerminationByKubelet",
        "message": "Pod was preempted by Kubelet to accommodate a critical pod.",
        "observedGeneration": 1,
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    assert "terminated" in status["containerStatuses"][0]["state"]


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [({"terminate_after": "5s"}, 5), ({"terminate_after": "60s"}, 20), ({"hang_terminating": "true"}, 20)],
)
def test_preempted_pod_may_use_its_grace_period(annotations, seconds):
    stopping = preempted_pod(**annotations)[1]
    assert stopping.requeue_at == START + timedelta(seconds=seconds)
    assert [effect.reason for effect in stopping.effects] == ["Killing"]
