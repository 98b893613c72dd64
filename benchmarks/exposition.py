"""Compare our exposition of metrics with that of prometheus-client, on the same samples.

    python benchmarks/exposition.py [PAGE...]

Each page is a file with the metrics of a process (`kubectl get --raw /metrics > server.metrics`). A page of 5,000 nodes with ten
gauges and a histogram each is measured in any case, and what an increment costs on the path of a request. Times are those of the processor.
"""

import sys
import time
import timeit
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from mockube.apimachinery.gotext import format_g
from mockube.component_base.exposition import cumulative, metrics_text, sorted_labels
from mockube.component_base.metrics import (
    Buckets,
    Collected,
    Family,
    MetricsRegistry,
    counter,
    gauge,
    histogram,
)

NODES = 5_000
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def page_of_nodes() -> list[Collected]:
    registry = MetricsRegistry()
    for index in range(10):
        numbers = registry.numbers(gauge(f"node_gauge_{index}", "A gauge.", "node", "zone"))
        for node in range(NODES):
            numbers.set(node * 1.5, f"node-{node}", f"zone-{node % 3}")
    latencies = registry.distributions(histogram("node_seconds", "A histogram.", BOUNDS, "node"))
    for node in range(NODES):
        latencies.observe(node / NODES, f"node-{node}")
    return registry.collect()


def page_of_text(text: str) -> list[Collected]:
    """Return the families of a page that a process has written."""
    collected: list[Collected] = []
    for metric in text_string_to_metric_families(text):
        groups: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
        for sample in metric.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            groups.setdefault(tuple(sorted(labels.items())), []).append(sample)
        names = tuple(name for name, _ in next(iter(groups), ()))
        bounds: tuple[float, ...] = ()
        samples: list[tuple[tuple[str, ...], float | Buckets]] = []
        for labels, found in groups.items():
            values = tuple(value for _, value in labels)
            if metric.type != "histogram":
                samples.append((values, found[0].value))
                continue
            counts = [(float(sample.labels["le"]), sample.value) for sample in found if "le" in sample.labels]
            bounds = tuple(bound for bound, _ in counts[:-1])
            before = [0, *(count for _, count in counts)]
            total = next(sample.value for sample in found if sample.name.endswith("_sum"))
            samples.append((values, Buckets([int(b - a) for a, b in pairwise(before)], total)))
        name = found[0].name if metric.type == "counter" else metric.name
        collected.append(Collected(Family(name, metric.type, metric.documentation, names, bounds), samples))
    return collected


class Collector:
    """Our numbers as a collector of prometheus-client."""

    def __init__(self, collected: list[Collected]) -> None:
        self.collected = collected

    def collect(self) -> Iterator[Metric]:
        for family, samples in self.collected:
            metric = Metric(family.name.removesuffix("_total"), family.help, family.type)
            bounds = [*map(format_g, family.buckets), "+Inf"]
            for labels, value in sorted_labels(family, samples):
                named = dict(labels)
                if not isinstance(value, Buckets):
                    metric.add_sample(family.name, named, value)
                    continue
                counts = cumulative(value.counts)
                for bound, count in zip(bounds, counts, strict=True):
                    metric.add_sample(f"{family.name}_bucket", {**named, "le": bound}, count)
                metric.add_sample(f"{family.name}_sum", named, value.total)
                metric.add_sample(f"{family.name}_count", named, counts[-1])
            yield metric


def best(action: Callable[[], object], number: int = 1) -> float:
    return min(timeit.repeat(action, timer=time.process_time, number=number, repeat=5)) / number


def compare(name: str, collected: list[Collected]) -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(collected))
    ours, theirs = (
        metrics_text(collected).decode().splitlines(),
        generate_latest(registry).decode().splitlines(),
    )
    own = best(lambda: metrics_text(collected))
    other = best(lambda: generate_latest(registry))
    same = len({*ours} & {*theirs})
    print(
        f"{name}: {len(ours)} lines; ours {own * 1000:.1f} ms, prometheus-client {other * 1000:.1f} ms ({other / own:.2f} times); "
        f"{same} of {len(ours)} lines are the same"
    )


def compare_increments() -> None:
    labels = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component", "code")
    values = ("GET", "", "apps", "v1", "deployments", "", "resource", "apiserver", "200")
    registry = MetricsRegistry()
    numbers = registry.numbers(counter("requests_total", "Requests.", *labels))
    latencies = registry.distributions(histogram("seconds", "Durations.", BOUNDS, *labels))
    number, latency = numbers.of(*values), latencies.of(*values)
    other = CollectorRegistry()
    their_counter = Counter("requests", "Requests.", labels, registry=other)
    their_histogram = Histogram("seconds", "Durations.", labels, buckets=BOUNDS, registry=other)
    their_number, their_latency = their_counter.labels(*values), their_histogram.labels(*values)

    def add() -> None:
        number.value += 1

    for name, ours, theirs in (
        ("an addition to a counter that is held", add, their_number.inc),
        (
            "an addition by labels",
            lambda: numbers.add(1, *values),
            lambda: their_counter.labels(*values).inc(),
        ),
        (
            "an observation of a histogram that is held",
            lambda: latency.observe(0.3),
            lambda: their_latency.observe(0.3),
        ),
        (
            "an observation by labels",
            lambda: latencies.observe(0.3, *values),
            lambda: their_histogram.labels(*values).observe(0.3),
        ),
    ):
        own, other_seconds = best(ours, 100_000), best(theirs, 100_000)
        print(f"{name}: ours {own * 1e9:.0f} ns, prometheus-client {other_seconds * 1e9:.0f} ns")


def main() -> None:
    compare_increments()
    compare(f"{NODES} nodes", page_of_nodes())
    for path in map(Path, sys.argv[1:]):
        compare(path.name, page_of_text(path.read_text()))


if __name__ == "__main__":
    main()
