"""The metrics of the scheduler have kube-scheduler's names and labels."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from mockube.scheduler.monitor import SCHEDULED, SchedulerMonitor
from tests.support.metric_samples import sample_value

PROFILE = {"profile": "default-scheduler"}


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def registry():
    return MetricsRegistry()


@pytest.fixture
def monitor(clock, registry):
    return SchedulerMonitor(clock.monotonic, registry)


def test_attempts_are_counted_by_result_with_their_durations(monitor, clock, registry):
    began = clock.monotonic()
    clock.advance(2)
    monitor.record_attempt(SCHEDULED, began, "packing")
    labels = {"profile": "packing", "result": "scheduled"}
    assert sample_value(registry, "scheduler_schedule_attempts_total", labels) == 1
    assert sample_value(registry, "scheduler_scheduling_attempt_duration_seconds_sum", labels) == 2


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (40, "15+")])
def test_waiting_time_of_a_pod_is_observed_by_the_number_of_attempts(
    monitor, clock, registry, attempts, label
):
    first_at = clock.monotonic()
    clock.advance(9)
    monitor.record_bound(attempts, first_at)
    name = "scheduler_pod_scheduling_sli_duration_seconds_sum"
    assert sample_value(registry, name, {"attempts": label}) == 9
    assert sample_value(registry, "scheduler_pod_scheduling_attempts_sum") == attempts


def test_preemption_without_victims_counts_as_an_attempt_only(monitor, registry):
    monitor.record_preemption(0)
    monitor.record_preemption(3)
    assert sample_value(registry, "scheduler_preemption_attempts_total") == 2
    assert sample_value(registry, "scheduler_preemption_victims_count") == 1


def test_state_replaces_the_one_before(monitor, registry):
    both, one = ("NodeResourcesFit", "NodePorts"), ("NodePorts",)
    monitor.report_state({"active": 2}, [("default-scheduler", both), ("packing", one)], {"nodes": 3})
    monitor.report_state({"active": 1}, [("default-scheduler", one), ("packing", one)], {"nodes": 4})
    assert sample_value(registry, "scheduler_pending_pods", {"queue": "active"}) == 1
    assert sample_value(registry, "scheduler_cache_size", {"type": "nodes"}) == 4
    rejected = [
        sample_value(registry, "scheduler_unschedulable_pods", {**PROFILE, "plugin": plugin})
        for plugin in ("NodePorts", "NodeResourcesFit")
    ]
    assert rejected == [1, None]


def test_extension_points_are_measured_by_profile_and_status(monitor, clock, registry):
    began = clock.monotonic()
    clock.advance(3)
    monitor.record_extension_point("Filter", began, "packing")
    monitor.record_extension_point("Filter", began, "packing", success=False)
    for status in ("Success", "Unschedulable"):
        labels = {"extension_point": "Filter", "status": status, "profile": "packing"}
        name = "scheduler_framework_extension_point_duration_seconds_sum"
        assert sample_value(registry, name, labels) == 3
