"""The evaluation of kwok's Metric objects."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import UsageExpressionError
from mockube.component_base.metrics import Buckets, Collected, Family, Type

from .node_usage import Measurement, NodeUsage

_TYPES: Final[Mapping[str, Type]] = {"counter": "counter", "gauge": "gauge", "histogram": "histogram"}


def metric_family(metric: ReadOnlyTree, usage: NodeUsage, measurement: Measurement) -> Collected | None:
    """Evaluate a metric of a Metric object; a sample whose expression fails is left out."""
    kind = metric.get("kind") or ""
    type_ = _TYPES.get(kind)
    if type_ is None:
        return None
    names = tuple(label["name"] for label in metric.get("labels") or ())
    buckets = sorted(metric.get("buckets") or (), key=_bound)
    bounds = tuple(_bound(bucket) for bucket in buckets if not bucket.get("hidden"))
    samples: list[tuple[tuple[str, ...], float | Buckets]] = []
    for pod, container in _subjects(metric.get("dimension") or "node", measurement):
        value = partial(usage.value, measurement=measurement, pod=pod, container=container)
        with suppress(UsageExpressionError, KeyError, TypeError, ValueError):
            labels = tuple(str(value(label["value"])) for label in metric.get("labels") or ())
            found = _histogram(buckets, value) if kind == "histogram" else _number(value(metric["value"]))
            samples.append((labels, found))
    family = Family(metric.get("name") or "", type_, metric.get("help") or "", names, bounds)
    return Collected(family, samples)


def _bound(bucket: ReadOnlyTree) -> float:
    return float(bucket["le"])


def _histogram(buckets: Sequence[ReadOnlyTree], value: Callable[[str], Any]) -> Buckets:
    """Return the observations of a histogram; those of a hidden bucket count for the next one."""
    counts, hidden, total = list[int](), 0, 0.0
    for bucket in buckets:
        count = math.floor(_number(value(bucket["value"])))
        total += _bound(bucket) * count
        if bucket.get("hidden"):
            hidden += count
        else:
            counts.append(count + hidden)
            hidden = 0
    return Buckets((*counts, hidden), total)


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
