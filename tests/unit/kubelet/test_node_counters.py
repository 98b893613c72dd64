"""What a simulated kubelet counts after its first scrape."""

from types import SimpleNamespace

import pytest

from mockube.client.cache.store import Change
from mockube.client.podview import PodView
from mockube.kubelet.server.node_counters import KubeletCounters, kubelet_counters, plugin_of
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


OPERATIONS = [
    "run_podsandbox",
    "create_container",
    "start_container",
    "stop_container",
    "stop_podsandbox",
    "remove_podsandbox",
]
WAITING = {"waiting": {}}


def status(*states, init=(), start="2026-01-01T12:00:01Z"):
    """A pod with a state of each container: the number of its restarts, or that it waits."""

    def statuses(prefix, states):
        at = {"running": {"startedAt": "2026-01-01T12:00:05Z"}}
        return [
            {
                "name": f"{prefix}{number}",
                "restartCount": restarts or 0,
                "state": WAITING if restarts is None else at,
            }
            for number, restarts in enumerate(states)
        ]

    found = {"containerStatuses": statuses("c", states), "initContainerStatuses": statuses("i", init)}
    return {**POD, "status": {**found, "startTime": start}}


@pytest.mark.parametrize(
    ("old", "new", "counts", "starts"),
    [
        (POD, status(0), (1, 1, 1, 0, 0, 0), 1),
        (POD, status(0, None), (1, 1, 1, 0, 0, 0), 0),
        (POD, status(None, init=[0]), (1, 1, 1, 0, 0, 0), 0),
        (status(None, init=[0]), status(0), (0, 1, 1, 0, 0, 0), 1),
        (status(0, None), status(0, 0), (0, 1, 1, 0, 0, 0), 1),
        (status(0, 0), status(0, 0), (0, 0, 0, 0, 0, 0), 0),
        (status(0, 0), status(0, 1), (0, 1, 1, 1, 0, 0), 0),
        (status(0), status(None), (0, 0, 0, 1, 0, 0), 0),
        (status(0, 0), status(0, None), (0, 0, 0, 0, 0, 0), 0),
        (POD, status(), (0, 0, 0, 0, 0, 0), 0),
    ],
)
def test_operations_that_a_change_shows(counters, old, new, counts, starts):
    counters.record_change(old, new)
    found = [value(counters, "kubelet_runtime_operations_total", operation_type=each) for each in OPERATIONS]
    assert tuple(each or 0 for each in found) == counts
    durations = [
        value(counters, "kubelet_runtime_operations_duration_seconds_count", operation_type=each)
        for each in OPERATIONS
    ]
    assert durations == found
    created = value(counters, "kubelet_cgroup_manager_duration_seconds_count", operation_type="create")
    assert (created or 0) == counts[0]
    for name in ("start", "start_sli", "start_total"):
        assert value(counters, f"kubelet_pod_{name}_duration_seconds_count") == starts


def test_start_of_a_pod_without_a_creation_is_counted_from_its_first_time(counters):
    counters.record_change(POD, {**status(0), "metadata": {"name": "p"}})
    assert value(counters, "kubelet_pod_start_sli_duration_seconds_sum") == 4


@pytest.mark.parametrize(
    ("volume", "plugin"),
    [
        ({"configMap": {}}, "configmap"),
        ({"secret": {}}, "secret"),
        ({"downwardAPI": {}}, "downward-api"),
        ({"emptyDir": {}}, "empty-dir"),
        ({"projected": {}}, "projected"),
        ({"hostPath": {}}, "host-path"),
        ({"nfs": {}}, "nfs"),
        ({"iscsi": {}}, "iscsi"),
        ({"csi": {}}, "csi"),
        ({"persistentVolumeClaim": {}}, "csi"),
    ],
)
def test_plugin_of_a_volume(volume, plugin):
    assert plugin_of({"name": "v", **volume}) == f"kubernetes.io/{plugin}"


def test_pod_of_a_node_that_is_not_scraped_is_not_counted(clock):
    counters = KubeletCounters(clock)
    for old, new in (
        (bound("n", POD), bound("n", running())),
        (bound("n", running()), None),
        (None, bound("n", POD)),
    ):
        counters.on_pod_change(Change(old, new))
    assert counters.find("n") is None
    counted = counters.of("n")
    counters.on_pod_change(Change(None, bound("n", running())))
    assert value(counted, "kubelet_runtime_operations_total", operation_type="start_container") is None


def test_counters_are_shared(clock):
    context = SimpleNamespace(shared={}, clock=clock)
    assert kubelet_counters(context) is kubelet_counters(context)
