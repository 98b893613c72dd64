"""Reconcile metrics have controller-runtime's names and series."""

import pytest

from mockube.client.metrics.reconciliations import ERROR, NOOP_OBSERVER, SUCCESS
from mockube.controller_manager import catalog
from tests.support.metric_samples import sample_value


def sample(metrics, name, /, **labels):
    return sample_value(
        metrics.registry, f"controller_runtime_{name}", {"controller": "example-controller", **labels}
    )


def test_idle_controller_exposes_all_series(metrics):
    metrics.reconciles.of("example-controller", 3)
    found = {
        name: sample(metrics, name)
        for name in (
            "reconcile_errors_total",
            "terminal_reconcile_errors_total",
            "reconcile_panics_total",
            "reconcile_timeouts_total",
            "reconcile_time_seconds_count",
            "active_workers",
            "max_concurrent_reconciles",
        )
    }
    assert found == dict.fromkeys(found, 0) | {"max_concurrent_reconciles": 3}
    assert [sample(metrics, "reconcile_total", result=it) for it in ("success", "requeue")] == [0, 0]


def test_reconcile_time_is_observed(metrics, clock):
    runs = metrics.reconciles.of("example-controller", 1)
    began = runs.start()
    clock.advance(0.2)
    runs.finish(began, SUCCESS)
    runs.finish(runs.start(), ERROR)
    assert sample(metrics, "reconcile_time_seconds_sum") == pytest.approx(0.2)
    buckets = {limit: sample(metrics, "reconcile_time_seconds_bucket", le=limit) for limit in ("0.15", "60")}
    assert buckets == {"0.15": 1, "60": 2}


def test_counters_continue_in_second_term(metrics):
    first = metrics.reconciles.of("example-controller", 1)
    first.finish(first.start(), SUCCESS)
    first.start()
    metrics.reconciles.of("example-controller", 2)
    assert sample(metrics, "reconcile_total", result="success") == 1
    assert (sample(metrics, "active_workers"), sample(metrics, "max_concurrent_reconciles")) == (0, 2)


def test_controllers_of_kubernetes_have_no_reconcile_metrics(metrics):
    assert metrics.reconciles.of("", 5) is NOOP_OBSERVER
    assert {controller.metrics_name for controller in catalog.CONTROLLERS} == {""}
