"""What the scheduler of an older minor does differently."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from tests.support.controllers.scheduling_decisions import decide

TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
NO_HELP = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def node(name="a", *, cpu="4", spec=(), images=()):
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": dict(spec),
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "9"}, "images": list(images)},
    }


def pod(name="fresh-1", *, cpu="1", node_name=None, **spec):
    container = {"name": "c", "image": "one", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    bound = {} if node_name is None else {"nodeName": node_name}
    return {"metadata": metadata, "spec": {"containers": [container], **bound, **spec}, "status": {}}


def decision(minor, nodes, tried, pods=(), settings=(), **state):
    return decide(tried, {"nodes": nodes, "pods": pods, **state}, FeatureGates(minor, settings))


@pytest.mark.parametrize(
    ("minor", "words"),
    [
        ("1.37", f"0/1 nodes are available: 1 node(s) had untolerated taint(s). {NO_HELP}"),
        (
            "1.36",
            f"0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate, {NO_HELP}",
        ),
        ("1.33", f"0/1 nodes are available: 1 node(s) had untolerated taint {{dedicated: db}}. {NO_HELP}"),
    ],
)
def test_message_is_that_of_the_minor(minor, words):
    assert decision(minor, [node(spec={"taints": [TAINT]})], pod())["message"] == words


@pytest.mark.parametrize(
    ("minor", "words"),
    [
        (
            "1.37",
            "1 Insufficient cpu. preemption: found a potential placement for pod on node a, preempting 1 victims",
        ),
        ("1.36", "1 Insufficient cpu."),
    ],
)
def test_message_of_preempting_pod_names_victims_since_1_37(minor, words):
    old = pod("old-1", cpu="3", node_name="a", priority=1)
    found = decision(minor, [node()], pod(cpu="3", priority=9), [old])
    assert (found["message"], found["victims"]) == (f"0/1 nodes are available: {words}", ["old-1"])


@pytest.mark.parametrize(("minor", "words"), [("1.37", "not found"), ("1.33", NO_HELP)])
def test_rejection_before_the_device_plugin_prevents_preemption(minor, words):
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    expected = f'0/1 nodes are available: persistentvolumeclaim "data" not found. {words}'
    assert decision(minor, [node()], pod(volumes=volumes))["message"] == expected


def test_claim_that_the_ephemeral_volume_controller_has_to_create_is_named():
    claim = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}
    found = decision("1.37", [node()], pod(volumes=[{"name": "v", "ephemeral": claim}]))
    reason = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
    assert found["message"].startswith(f"0/1 nodes are available: {reason}")
    assert found["message"].endswith('-v". not found')


@pytest.mark.parametrize(("minor", "score"), [("1.37", 42), ("1.36", 86), ("1.35", 0)])
def test_image_volumes_count_as_images_since_1_37(minor, score):
    """Before 1.36 they do not count at all; in 1.36, only their size does."""
    images = [{"names": ["two:latest"], "sizeBytes": 1743 << 20}]
    volumes = [{"name": "v", "image": {"reference": "two"}}]
    found = decision(minor, [node(images=images), node("b")], pod(volumes=volumes))
    assert found["scores"]["ImageLocality"] == {"a": score, "b": 0}


@pytest.mark.parametrize(("minor", "scores"), [("1.36", {"a": 68, "b": 71}), ("1.35", {"a": 87, "b": 93})])
def test_balance_is_compared_with_that_before_the_pod_since_1_36(minor, scores):
    found = decision(minor, [node(cpu="4"), node("b", cpu="8")], pod())
    assert found["scores"]["NodeResourcesBalancedAllocation"] == scores


def budget(name, allowed, **labels):
    spec = {"selector": {"matchLabels": labels}}
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": spec, "status": {"disruptionsAllowed": allowed}}


def running(number, **labels):
    old = pod(f"old-{number}", node_name="a", priority=1)
    old["status"] = {"startTime": f"2026-01-01T00:00:0{number}Z"}
    old["metadata"]["labels"] = labels
    return old


@pytest.mark.parametrize(("minor", "victim"), [("1.37", "old-2"), ("1.36", "old-3")])
def test_pod_counts_for_budgets_up_to_the_first_that_it_violates(minor, victim):
    """The first pod violates its own budget, and before 1.37 it takes the disruption that the other budget allows, too."""
    budgets = [budget("first", 0, n="1"), budget("both", 1, app="web"), budget("third", 0, n="3")]
    pods = [running(1, n="1", app="web"), running(2, app="web"), running(3, n="3")]
    found = decision(minor, [node(cpu="3")], pod(priority=9), pods, poddisruptionbudgets=budgets)
    assert found["victims"] == [victim]
