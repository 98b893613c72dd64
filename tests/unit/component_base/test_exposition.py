"""Metrics in the text format of Go's Prometheus client."""

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric

from mockube.apimachinery.gotext import format_g
from mockube.component_base.exposition import metrics_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (0.0, "0"),
        (0.005, "0.005"),
        (999999.0, "999999"),
        (1e6, "1e+06"),
        (1795314085.25, "1.79531408525e+09"),
        (0.0001, "0.0001"),
        (5e-07, "5e-07"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_numbers_are_exposed_as_upstream_does(value, text):
    assert format_g(value) == text


def test_exposition_is_sorted_and_has_no_created_series():
    registry = CollectorRegistry()
    calls = Counter("calls_total", "How \\ often.", ["verb", "code"], registry=registry)
    calls.labels("GET", "500").inc()
    calls.labels('"\n', "200").inc(2)
    Histogram("b_seconds", "How long.", ["a"], buckets=[1.0, 2.5], registry=registry).labels("x").observe(2)
    Gauge("a", "How many.", registry=registry).set(1234567)
    Counter("none_total", "Never.", ["code"], registry=registry)
    attempts = Metric("attempts", "Of upstream's names.", "counter")
    attempts.add_sample("attempts", {}, 3)
    assert metrics_text([*registry.collect(), attempts]).decode().splitlines() == [
        "# HELP a How many.",
        "# TYPE a gauge",
        "a 1.234567e+06",
        "# HELP attempts Of upstream's names.",
        "# TYPE attempts counter",
        "attempts 3",
        "# HELP b_seconds How long.",
        "# TYPE b_seconds histogram",
        'b_seconds_bucket{a="x",le="1"} 0',
        'b_seconds_bucket{a="x",le="2.5"} 1',
        'b_seconds_bucket{a="x",le="+Inf"} 1',
        'b_seconds_sum{a="x"} 2',
        'b_seconds_count{a="x"} 1',
        "# HELP calls_total How \\\\ often.",
        "# TYPE calls_total counter",
        'calls_total{code="200",verb="\\"\\n"} 2',
        'calls_total{code="500",verb="GET"} 1',
    ]
