"""What a simulated kubelet counts after its first scrape."""

import pytest

from mockube.client.cache.store import Change
from mockube.client.podview import PodView
from mockube.kubelet.server.node_counters import KubeletCounters
from tests.support.metric_samples import sample_value

POD = {
    "metadata": {"name": "p", "creationTimestamp": "2026-01-01T12:00:00Z"},
    "spec": {"volumes": [{"name": "a", "configMap": {"name": "a"}}, {"name": "b", "emptyDir": {}}]},
    "status": {},
}


def running(restarts=0):
    state = {"running": {"startedAt": "2026-01-01T12:00:05Z"}}
    statuses = [{"name": "c", "restartCount": restarts, "state": state}]
    return {**POD, "status": {"startTime": "2026-01-01T12:00:01Z", "containerStatuses": statuses}}


@pytest.fixture
def counters(clock):
    return KubeletCounters(clock).of("n")


def value(counters, name, **labels):
    return sample_value(counters.metrics, name, labels)


def test_start_of_a_pod_is_counted_with_its_volumes_and_its_duration(counters):
    counters.record_change(POD, running())
    for operation in ("run_podsandbox", "create_container", "start_container"):
        assert value(counters, "kubelet_runtime_operations_total", operation_type=operation) == 1
    assert value(counters, "kubelet_pod_start_duration_seconds_sum") == 4
    assert value(counters, "kubelet_pod_start_sli_duration_seconds_sum") == 5
    mounts = [
        value(
            counters,
            "storage_operation_duration_seconds_count",
            volume_plugin=f"kubernetes.io/{plugin}",
            operation_name="volume_mount",
            status="success",
            migrated="false",
        )
        for plugin in ("configmap", "empty-dir")
    ]
    assert mounts == [1, 1]


def test_restart_of_a_container_is_one_stop_and_one_start(counters):
    counters.record_change(running(), running(restarts=1))
    for operation in ("stop_container", "create_container", "start_container"):
        assert value(counters, "kubelet_runtime_operations_total", operation_type=operation) == 1
    assert value(counters, "kubelet_runtime_operations_total", operation_type="run_podsandbox") is None
    assert value(counters, "kubelet_pod_start_duration_seconds_count") == 0


def test_removal_of_a_pod_stops_its_sandbox(counters):
    counters.record_removal()
    assert value(counters, "kubelet_runtime_operations_total", operation_type="stop_podsandbox") == 1
    assert value(counters, "kubelet_cgroup_manager_duration_seconds_count", operation_type="destroy") == 1


@pytest.mark.parametrize(
    ("pod", "operation"),
    [
        (POD, "create"),
        (running(), "sync"),
        ({**running(), "metadata": {"deletionTimestamp": "2026-01-01T12:01:00Z"}}, "kill"),
    ],
)
def test_synchronizations_are_counted_by_operation(counters, pod, operation):
    counters.record_sync(pod, 0.2)
    assert value(counters, "kubelet_pod_worker_duration_seconds_sum", operation_type=operation) == 0.2


def test_pods_are_relisted_every_second(counters, clock):
    clock.advance(7.5)
    assert value(counters, "kubelet_pleg_relist_duration_seconds_count") == 7
    assert value(counters, "kubelet_pleg_relist_interval_seconds_bucket", le="0.5") == 0
    assert value(counters, "kubelet_pleg_relist_interval_seconds_bucket", le="1") == 7


def test_node_has_counters_from_its_first_scrape_until_its_deletion(clock):
    counters = KubeletCounters(clock)
    assert counters.find("n") is None
    assert counters.of("n") is counters.find("n")
    counters.usage_totals["n"] = {}
    counters.forget("n")
    assert counters.find("n") is None
    assert not counters.usage_totals


def bound(node, pod, uid="u"):
    metadata = {**pod["metadata"], "namespace": "d", "uid": uid}
    return PodView.of({**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}})


@pytest.mark.parametrize(
    ("old", "new", "operation"),
    [
        (bound("n", POD), bound("n", running()), "start_container"),
        (bound("", POD), bound("n", running()), "start_container"),
        (bound("n", running()), None, "remove_podsandbox"),
        (bound("n", running()), bound("other", POD, uid="v"), "remove_podsandbox"),
    ],
)
def test_change_of_a_pod_is_counted_for_its_node(clock, old, new, operation):
    counters = KubeletCounters(clock)
    counted = [counters.of(node) for node in ("n", "other")]
    counters.on_pod_change(Change(old, new))
    found = [value(each, "kubelet_runtime_operations_total", operation_type=operation) for each in counted]
    assert found == [1, None]
