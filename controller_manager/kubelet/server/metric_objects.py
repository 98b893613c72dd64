"""Metric families, and the evaluation of kwok's Metric objects."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import UsageExpressionError

from .node_usage import Measurement, NodeUsage

Labels = Sequence[tuple[str, Any]]


class Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


class Family(NamedTuple):
    name: str
    type: str
    documentation: str
    samples: Sequence[Sample]


def family_of(name: str, kind: str, text: str, values: Iterable[tuple[Labels, float]]) -> Family:
    """Return a family whose samples have the family's name."""
    return Family(name, kind, text, [Sample(name, dict(labels), value) for labels, value in values])


def metric_family(metric: ReadOnlyTree, usage: NodeUsage, measurement: Measurement) -> Family | None:
    """Evaluate a metric of a Metric object; a sample whose expression fails is left out."""
    kind = metric.get("kind") or ""
    evaluate = {"counter": _value, "gauge": _value, "histogram": _histogram}.get(kind)
    if evaluate is None:
        return None
    samples: list[Sample] = []
    for pod, container in _subjects(metric.get("dimension") or "node", measurement):
        value = partial(usage.value, measurement=measurement, pod=pod, container=container)
        with suppress(UsageExpressionError, KeyError, TypeError, ValueError):
            labels = {label["name"]: str(value(label["value"])) for label in metric.get("labels") or ()}
            samples += evaluate(metric, labels, value)
    return Family(metric.get("name") or "", kind, metric.get("help") or "", samples)


def _value(metric: ReadOnlyTree, labels: Mapping[str, str], value: Callable[[str], Any]) -> list[Sample]:
    return [Sample(metric["name"], labels, _number(value(metric["value"])))]


def _histogram(metric: ReadOnlyTree, labels: Mapping[str, str], value: Callable[[str], Any]) -> list[Sample]:
    """Return the samples of a histogram with cumulative buckets; a hidden bucket only adds to the following ones."""
    counts = sorted(
        (float(bucket["le"]), math.floor(_number(value(bucket["value"]))), bool(bucket.get("hidden")))
        for bucket in metric.get("buckets") or ()
    )
    name, count, sum_, buckets = metric["name"], 0, 0.0, []
    for bound, bucket_count, hidden in counts:
        count += bucket_count
        sum_ += bound * bucket_count
        if not hidden:
            buckets.append((str(bound), count))
    return histogram_samples(name, labels, [*buckets, ("+Inf", count)], sum_)


def histogram_samples(
    name: str, labels: Mapping[str, str], buckets: Sequence[tuple[str, int]], total: float
) -> list[Sample]:
    """Return the samples of a histogram; the last bucket has the number of all observations."""
    return [
        *(Sample(f"{name}_bucket", {**labels, "le": bound}, count) for bound, count in buckets),
        Sample(f"{name}_sum", labels, total),
        Sample(f"{name}_count", labels, buckets[-1][1]),
    ]


def _subjects(dimension: str, measurement: Measurement) -> Iterator[tuple[ReadOnlyTree, ReadOnlyTree]]:
    if dimension == "node":
        yield {}, {}
    elif dimension == "pod":
        yield from ((pod, {}) for pod in measurement.pods)
    elif dimension == "container":
        yield from measurement.running_containers()


def _number(value: Any) -> float:
    amount = getattr(value, "quantity", value)
    return float(getattr(amount, "number", amount))
