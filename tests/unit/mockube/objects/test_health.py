"""Which objects are healthy, and why a pod is not ready."""

import pytest

from mockube.objects.health import is_healthy, pod_problem


def condition(name, status, **fields):
    return {"conditions": [{"type": name, "status": status, **fields}]}


@pytest.mark.parametrize(
    ("kind", "spec", "healthy", "unhealthy"),
    [
        ("Pod", {}, condition("Ready", "True"), condition("Ready", "False")),
        ("Pod", {}, {"phase": "Succeeded"}, {"phase": "Failed"}),
        ("Node", {}, condition("Ready", "True"), condition("Ready", "Unknown")),
        ("PersistentVolumeClaim", {}, {"phase": "Bound"}, {"phase": "Pending"}),
        ("Job", {}, condition("Complete", "True"), condition("Failed", "True")),
        ("Deployment", {"replicas": 2}, {"readyReplicas": 2}, {"readyReplicas": 1}),
        ("ReplicaSet", {"replicas": 0}, {}, {"readyReplicas": 1}),
        (
            "DaemonSet",
            {},
            {"desiredNumberScheduled": 1, "numberReady": 1},
            {"desiredNumberScheduled": 1, "numberReady": 0},
        ),
    ],
)
def test_object_is_healthy_if_it_is_ready_or_has_its_pods(kind, spec, healthy, unhealthy):
    assert is_healthy({"kind": kind, "spec": spec, "status": healthy})
    assert not is_healthy({"kind": kind, "spec": spec, "status": unhealthy})


def test_object_without_pods_or_condition_is_not_healthy():
    assert not is_healthy({"kind": "ConfigMap"})


def container(state, **fields):
    return {"containerStatuses": [{"name": "web", "state": state, **fields}]}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        pytest.param({}, "Pending", id="no status"),
        pytest.param(
            {"phase": "Running"} | container({"terminated": {"exitCode": 2, "reason": "Error"}}),
            "Running: container web exited with 2: Error",
            id="failed container",
        ),
        pytest.param(
            {"phase": "Running"}
            | container(
                {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
                lastState={"terminated": {"exitCode": 3}},
            ),
            "Running: container web waits: CrashLoopBackOff: back-off 10s (last exit code 3)",
            id="container that is restarted",
        ),
        pytest.param(
            container({"waiting": {"reason": "PodInitializing"}})
            | {"initContainerStatuses": [{"name": "init", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
            "Pending: container init waits: ErrImagePull",
            id="init container",
        ),
        pytest.param(
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            "Failed: Evicted: low on memory",
            id="reason of the pod",
        ),
        pytest.param(
            condition("PodScheduled", "False", reason="Unschedulable", message="no nodes"),
            "Pending: PodScheduled=False (Unschedulable): no nodes",
            id="condition",
        ),
    ],
)
def test_pod_that_is_not_ready_has_reason(status, problem):
    assert pod_problem({"kind": "Pod", "status": status}) == problem


def test_deleted_pod_is_terminating():
    pod = {
        "kind": "Pod",
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": "Running"},
    }
    assert pod_problem(pod) == "Terminating"
