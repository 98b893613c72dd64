"""Metrics in the text format of Go's Prometheus client."""

import pytest

from mockube.apimachinery.gotext import format_g
from mockube.component_base.exposition import metrics_text
from mockube.component_base.metrics import MetricsRegistry, counter, exponential, gauge, histogram


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


def test_exposition_is_sorted_as_gos_client_library_does():
    registry = MetricsRegistry()
    calls = registry.numbers(counter("calls_total", "How \\ often.", "verb", "code"))
    calls.add(1, "GET", "500")
    calls.add(2, '"\n', "200")
    registry.distributions(histogram("b_seconds", "How long.", [1.0, 2.5], "a")).observe(2, "x")
    registry.numbers(gauge("a", "How many.")).set(1234567)
    registry.numbers(counter("none_total", "Never.", "code"))
    registry.numbers(counter("attempts", "Of upstream's names.")).add(3)
    assert metrics_text(registry.collect()).decode().splitlines() == [
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


def test_exponential_buckets_have_the_rounding_of_go():
    assert exponential(1e-8, 10, 5) == (1e-08, 1e-07, 1e-06, 9.999999999999999e-06, 9.999999999999999e-05)


def test_prepared_label_values_are_collected_after_their_first_observation():
    registry = MetricsRegistry()
    durations = registry.distributions(histogram("seconds", "How long.", [1.0], "verb", hides_unused=True))
    get = durations.of("GET")
    assert metrics_text(registry.collect()) == b""
    get.observe(2)
    assert b'seconds_bucket{verb="GET",le="+Inf"} 1\n' in metrics_text(registry.collect())


def test_numbers_that_are_read_are_updated_at_each_collection():
    registry, objects = MetricsRegistry(), {"pods": 1}
    sizes = registry.numbers(gauge("objects", "How many.", "resource"))
    stop = registry.on_collect(lambda: sizes.replace(((name,), size) for name, size in objects.items()))
    assert b'objects{resource="pods"} 1\n' in metrics_text(registry.collect())
    objects.clear()
    assert metrics_text(registry.collect()) == b""
    stop()
    objects["pods"] = 2
    assert metrics_text(registry.collect()) == b""
