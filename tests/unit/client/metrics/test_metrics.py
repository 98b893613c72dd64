"""Work queue and leader metrics have client-go's names."""

from mockube.client.metrics.process import report_leadership
from tests.support.metric_samples import sample_value


def sample(metrics, metric, /, **labels):
    return sample_value(metrics.registry, metric, {"name": "things", **labels})


def test_workqueue_metrics_of_a_key(metrics, clock):
    queue = metrics.queues.of("things")
    queue.add("a")
    queue.add("b")
    assert sample(metrics, "workqueue_depth") == 2
    clock.advance(2)
    queue.get("a")
    queue.get("b")
    clock.advance(3)
    queue.done("a")
    clock.advance(1)
    assert not metrics.queues.is_idle
    assert {
        name: sample(metrics, f"workqueue_{name}")
        for name in (
            "depth",
            "adds_total",
            "retries_total",
            "queue_duration_seconds_sum",
            "queue_duration_seconds_count",
            "work_duration_seconds_sum",
            "work_duration_seconds_count",
            "unfinished_work_seconds",
            "longest_running_processor_seconds",
        )
    } == {
        "depth": 0,
        "adds_total": 2,
        "retries_total": 0,
        "queue_duration_seconds_sum": 4,
        "queue_duration_seconds_count": 2,
        "work_duration_seconds_sum": 3,
        "work_duration_seconds_count": 1,
        "unfinished_work_seconds": 4,
        "longest_running_processor_seconds": 4,
    }
    assert sample(metrics, "workqueue_queue_duration_seconds_bucket", le="1") == 0
    assert sample(metrics, "workqueue_queue_duration_seconds_bucket", le="10") == 2


def test_queue_metrics_are_shared_by_name(metrics):
    assert metrics.queues.of("things") is metrics.queues.of("things")


def test_leader_metric_follows_leadership(metrics):
    leading = [False, True]
    report_leadership("things", lambda: leading.pop(0), metrics.registry)
    assert [sample(metrics, "leader_election_master_status") for _ in range(2)] == [0.0, 1.0]
