"""Pod garbage collector: which pods are deleted."""

import pytest

from mockube.client.cache.store import Store
from mockube.client.podview import PodView
from mockube.controller_manager.controllers.podgc import controller


def pod(name, *, phase="Running", node="n", age=0, deleting=False, reason=""):
    created = f"2030-01-01T00:00:{59 - age:02d}Z"
    metadata = {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": created}
    if deleting:
        metadata["deletionTimestamp"] = created
    status = {"phase": phase, **({"reason": reason} if reason else {})}
    return PodView.of({"metadata": metadata, "spec": {"nodeName": node}, "status": status})


def store(*pods):
    store = Store()
    for name, function in controller.INDEXES.items():
        store.add_index(name, function)
    for pod in pods:
        store.put(pod.key, pod)
    return store


def names(pods):
    return [pod.key.name for pod in pods]


ENDED = [
    pod("young", phase="Succeeded", age=1),
    pod("old", phase="Failed", age=9),
    pod("evicted", phase="Failed", age=0, reason="Evicted"),
    pod("twin", phase="Succeeded", age=1),
    pod("runs", age=50),
]


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (4, []),
        (3, ["evicted"]),
        (2, ["evicted", "old"]),
        (1, ["evicted", "old", "twin"]),
        (0, []),
    ],
)
def test_finished_pods_are_kept_up_to_threshold(threshold, expected):
    assert names(controller.over_threshold(store(*ENDED), threshold)) == expected


def node(name, *, ready, out):
    taints = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}] if out else []
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": name}, "spec": {"taints": taints}, "status": {"conditions": conditions}}


def test_terminating_pods_of_out_of_service_nodes_are_deleted():
    nodes = [
        node("n", ready="Unknown", out=True),
        node("ready", ready="True", out=True),
        node("in", ready="False", out=False),
    ]
    pods = store(
        pod("stays"),
        pod("goes", deleting=True),
        pod("ready", node="ready", deleting=True),
        pod("in", node="in", deleting=True),
    )
    assert names(controller.pods_on_out_of_service_nodes(pods, nodes)) == ["goes"]


def test_terminating_unscheduled_pods_are_deleted():
    pods = store(pod("waits", node=""), pod("goes", node="", deleting=True), pod("bound", deleting=True))
    assert names(controller.unscheduled_terminating_pods(pods)) == ["goes"]


def test_pods_of_missing_nodes_are_deleted():
    assert names(controller.pods_on(["gone"], store(pod("a"), pod("b", node="gone")))) == ["b"]
