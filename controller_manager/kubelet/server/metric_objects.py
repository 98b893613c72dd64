"""Families of metrics as text, and those of kwok's Metric objects."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from prometheus_client.utils import floatToGoString

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.expressions import UsageError
from mockube.controller_manager.kubelet.server.node_usage import Measurement, NodeUsage

Labels = Sequence[tuple[str, Any]]


class Sample(NamedTuple):
    labels: Labels
    value: float
    suffix: str = ""
    """Of a histogram's name."""


class Family(NamedTuple):
    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


def text_of(family: Family) -> str:
    """The family as Prometheus' text format has it."""
    lines = [
        f"# HELP {family.name} {' '.join(family.help.split())}",
        f"# TYPE {family.name} {family.kind}",
        *(_line(f"{family.name}{one.suffix}", one) for one in family.samples),
    ]
    return "".join(f"{line}\n" for line in lines)


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{label}="{_escape(str(of))}"' for label, of in sample.labels)
    return f"{name}{{{labels}}} {_go_float(sample.value)}" if labels else f"{name} {_go_float(sample.value)}"


def _go_float(value: float) -> str:
    number: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return number


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def metric_family(metric: ReadOnlyTree, usage: NodeUsage, measured: Measurement) -> Family | None:
    """Evaluate a metric of a Metric object; a sample whose expressions fail is left out."""
    kind = metric.get("kind") or ""
    sample = {"counter": _value, "gauge": _value, "histogram": _histogram}.get(kind)
    if sample is None:
        return None
    samples: list[Sample] = []
    for pod, container in _subjects(metric.get("dimension") or "node", measured):
        value = partial(usage.value, measured=measured, pod=pod, container=container)
        with suppress(UsageError, KeyError, TypeError, ValueError):
            labels = [(one["name"], value(one["value"])) for one in metric.get("labels") or ()]
            samples += sample(metric, labels, value)
    return Family(metric.get("name") or "", kind, metric.get("help") or "", samples)


def _value(metric: ReadOnlyTree, labels: Labels, value: Callable[[str], Any]) -> list[Sample]:
    return [Sample(labels, _number(value(metric["value"])))]


def _histogram(metric: ReadOnlyTree, labels: Labels, value: Callable[[str], Any]) -> list[Sample]:
    """Each bucket has the number of observations up to its bound; a hidden one is only counted."""
    counts = sorted(
        (float(one["le"]), math.floor(_number(value(one["value"]))), bool(one.get("hidden")))
        for one in metric.get("buckets") or ()
    )
    count, sum_, samples = 0, 0.0, []
    for bound, observed, hidden in counts:
        count += observed
        sum_ += bound * observed
        if not hidden:
            samples.append(Sample([*labels, ("le", _go_float(bound))], float(count), "_bucket"))
    samples.append(Sample([*labels, ("le", "+Inf")], float(count), "_bucket"))
    return [*samples, Sample(labels, sum_, "_sum"), Sample(labels, float(count), "_count")]


def _subjects(dimension: str, measured: Measurement) -> Iterator[tuple[ReadOnlyTree, ReadOnlyTree]]:
    if dimension == "node":
        yield {}, {}
    elif dimension == "pod":
        yield from ((pod, {}) for pod in measured.pods)
    elif dimension == "container":
        yield from measured.running()


def _number(value: Any) -> float:
    found = getattr(value, "quantity", value)
    return float(getattr(found, "number", found))
