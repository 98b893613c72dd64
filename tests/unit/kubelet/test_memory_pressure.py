"""Which pods a kubelet evicts when its node lacks memory, and what it says."""

import pytest

from mockube.kubelet.pod_lifecycle import pod as lifecycle
from mockube.kubelet.pod_lifecycle.admission import NodeAllocation, admission_rejection
from mockube.kubelet.pod_lifecycle.eviction import Eviction
from mockube.kubelet.pod_lifecycle.pressure_eviction import (
    MEMORY_THRESHOLD,
    PodUsage,
    eviction_message,
    pods_in_order,
)
from tests.support.controllers.pods import START, SimulatedPod, container, node_context, pod

MEBIBYTE = 1 << 20
PRESSURE = {"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}}


def using(name, used, request=None, priority=0):
    resources = {"requests": {"memory": f"{request}Mi"}} if request else {}
    described = pod(container("c", image="busybox", resources=resources), priority=priority)
    described["metadata"]["name"] = name
    return PodUsage(pod=described, resource="memory", used={"c": used * MEBIBYTE})


@pytest.mark.parametrize(
    ("pods", "order"),
    [
        ([using("below", 50, request=100), using("above", 101, request=100)], ["above", "below"]),
        ([using("important", 100, priority=10), using("other", 10)], ["other", "important"]),
        ([using("small", 10), using("large", 20)], ["large", "small"]),
        ([using("requests", 200, request=150), using("none", 100)], ["none", "requests"]),
        ([using("below", 900, request=1000), using("no-priority", 1, priority=-5)], ["no-priority", "below"]),
    ],
)
def test_pods_are_evicted_in_upstreams_order(pods, order):
    assert [one.pod["metadata"]["name"] for one in pods_in_order(pods)] == order


def test_message_names_the_containers_above_their_requests():
    assert eviction_message(using("p", 300, request=100), MEMORY_THRESHOLD, 52 * MEBIBYTE) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 53248Ki. "
        "Container c was using 307200Ki, request is 100Mi, has larger consumption of memory. "
    )
    assert "Container" not in eviction_message(using("p", 50, request=100), MEMORY_THRESHOLD, 0)


def test_evicted_pod_fails_with_reason_and_condition():
    subject = SimulatedPod(
        pod(container("c", "sleep", "1000", image="busybox")), context=node_context(details=True)
    )
    eviction = Eviction(START, "The node was low on resource: memory. ", is_disruption=True)
    step = lifecycle.evict(subject.pod, subject.context, eviction, START)
    assert (step.effects[0].reason, step.effects[0].message) == ("Evicted", eviction.message)
    subject.now = step.requeue_at or START
    for effect in lifecycle.evict(subject.pod, subject.context, eviction, subject.now).effects:
        subject._do(effect)
    assert (subject.phase, subject.status["reason"], subject.status["message"]) == (
        "Failed",
        "Evicted",
        eviction.message,
    )
    target = subject.condition("DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")


@pytest.mark.parametrize(
    ("quality", "fields", "reason"),
    [
        ("BestEffort", {}, "Evicted"),
        ("Burstable", {}, None),
        ("BestEffort", {"priority": 2_000_000_000}, None),
        (
            "BestEffort",
            {"tolerations": [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]},
            None,
        ),
    ],
)
def test_node_without_memory_rejects_pods_without_requests(quality, fields, reason):
    described = pod(container(image="busybox"), **fields)
    described["status"]["qosClass"] = quality
    nothing = NodeAllocation({}, {}, 0, ())
    rejection = admission_rejection(described, PRESSURE, {}, (), nothing)
    assert (rejection and rejection.reason) == reason
    if rejection:
        assert rejection.message == "The node had condition: [MemoryPressure]. "
