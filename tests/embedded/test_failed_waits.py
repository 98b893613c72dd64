"""The message of a wait that failed: what was found instead, and the events of what is not healthy."""

import asyncio

import pytest

from mockube import WaitFailed
from tests.support.server.definitions import definition

POD = {"containers": [{"name": "web", "image": "nginx"}]}


def workload(kind, name, pod=POD):
    labels = {"app": name}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(name="cluster")
def cluster_with_known_kinds(cluster):
    """A cluster whose kinds are known: to ask for them may take longer than a wait of these tests."""
    cluster.list("Namespace")
    return cluster


def failure(cluster, *arguments, **options):
    with pytest.raises(WaitFailed) as raised:
        cluster.wait(*arguments, **{"timeout": 0.3, **options})
    return str(raised.value)


def test_pods_that_are_not_ready_and_their_events_are_reported(cluster):
    large = {"containers": [{"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1000"}}}]}
    cluster.apply([workload("Deployment", "large", large), workload("Deployment", "healthy")])
    cluster.wait("Deployment", "healthy", "Available")
    cluster.wait("Pod", cluster.list("Pod", labels="app=large")[0]["metadata"]["name"], "PodScheduled=False")
    cluster.advance(1)  # until all events are recorded
    text = failure(cluster, "Deployment", "large", "Available")
    assert text.startswith("Deployment large in namespace default was not Available within 0.3 s\n  ")
    assert "Available=False (MinimumReplicasUnavailable): Deployment does not have minimum" in text
    assert "\npods that are not ready:\n  large-" in text
    assert "is Pending: PodScheduled=False (Unschedulable): 0/2 nodes are available" in text
    assert "\n  Warning FailedScheduling pod/large-" in text
    assert "Normal ScalingReplicaSet deployment/large: " in text
    for healthy in ("healthy", "node-1", "node-2"):
        assert healthy not in text


def test_reason_of_container_is_reported(cluster):
    pod = {"containers": [{**POD["containers"][0], "envFrom": [{"configMapRef": {"name": "none"}}]}]}
    cluster.apply(workload("StatefulSet", "db", pod))
    cluster.wait("Pod", "db-0", lambda tree: tree["status"]["containerStatuses"][0]["state"]["waiting"])
    text = failure(cluster, "StatefulSet", "db", "jsonpath={.status.readyReplicas}=1")
    assert "did not meet the condition within 0.3 s\n  .status.readyReplicas is not set\n" in text
    assert 'db-0 is Pending: container web waits: CreateContainerConfigError: configmap "none" not' in text


def test_healthy_object_is_reported_without_events(cluster):
    text = failure(cluster, "Node", "node-1", "Enchanted")
    assert text.startswith("Node node-1 was not Enchanted within 0.3 s\n  it has no condition Enchanted\n")
    assert "Ready=True (KubeletReady): kubelet is posting ready status" in text
    assert "events:" not in text


def test_error_of_predicate_and_status_are_reported(cluster):
    text = failure(cluster, "Namespace", "default", lambda tree: tree["status"]["colour"] == "blue")
    assert text.splitlines() == [
        "Namespace default did not meet the condition within 0.3 s",
        "  the condition raised KeyError: 'colour'",
        '  status: {"phase":"Active"}',
    ]


def test_status_of_older_generation_is_reported(cluster):
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "old"}}
    status = {"observedGeneration": 0, "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.apply([definition(), {**widget, "status": status}])
    text = failure(cluster, widget, "Ready")
    assert "\n  its status is of generation 0, and the object of generation 1" in text


async def test_object_that_was_deleted_is_reported(cluster):
    awaited, loop, seen = cluster.awaited, asyncio.get_running_loop(), asyncio.Event()
    await awaited.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gone"}})

    def never(_):
        loop.call_soon_threadsafe(seen.set)

    async def delete():
        await seen.wait()
        await awaited.delete("ConfigMap", "gone")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(delete())
        with pytest.raises(
            WaitFailed,
            match=r"^ConfigMap gone in namespace default was deleted, and not created again within 1 s$",
        ):
            await awaited.wait("ConfigMap", "gone", never, timeout=1)


@pytest.mark.parametrize(
    ("arguments", "namespace", "message"),
    [
        pytest.param(
            ("Service", "kubernetes", "create"),
            "kube-system",
            "Service kubernetes in namespace kube-system was not created within 0.3 s: it is in namespace default",
            id="another namespace",
        ),
        pytest.param(
            ("Service", "kubernets", "create"),
            "default",
            'Service kubernets in namespace default was not created within 0.3 s: did you mean "kubernetes"?',
            id="similar name",
        ),
        pytest.param(
            ("Job", "a", "Complete"),
            "kube-sytem",
            "Job a in namespace kube-sytem was not created within 0.3 s:"
            ' namespace "kube-sytem" does not exist: did you mean "kube-system"?',
            id="missing namespace",
        ),
        pytest.param(
            ("Job", "a", "Complete"),
            "default",
            "Job a in namespace default was not created within 0.3 s: there are no jobs",
            id="none of its kind",
        ),
    ],
)
def test_object_that_was_not_created_is_reported(cluster, arguments, namespace, message):
    assert failure(cluster, *arguments, namespace=namespace) == message


def test_requests_of_report_are_not_recorded_and_get_no_faults(cluster):
    cluster.clear_calls()
    with cluster.inject(verb="list", status=500) as fault:
        assert "there are no jobs" in failure(cluster, "Job", "a", "Complete")
    assert fault.hits == 0
    assert [call.verb for call in cluster.calls()] == ["watch"]


def test_watch_that_server_refuses_for_now_is_sent_again(cluster):
    with cluster.inject(verb="watch", resource="namespaces", status=503, times=1) as fault:
        cluster.wait("Namespace", "default", "jsonpath={.status.phase}=Active")
    assert fault.hits == 1


def test_object_that_remains_is_reported_with_its_finalizers(cluster):
    metadata = {"name": "kept", "finalizers": ["example.com/keep"]}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    with pytest.raises(
        WaitFailed, match=r"ConfigMap kept in namespace default still exists after 0\.1 s, and nothing"
    ):
        cluster.wait_gone("ConfigMap", "kept", 0.1)
    cluster.delete("ConfigMap", "kept")
    with pytest.raises(WaitFailed, match=r"it is being deleted, with the finalizers example\.com/keep"):
        cluster.wait_gone("ConfigMap", "kept", 0.1)
    cluster.patch("ConfigMap", "kept", {"metadata": {"finalizers": None}})
    cluster.wait_gone("ConfigMap", "kept")
