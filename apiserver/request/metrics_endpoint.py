"""Serve metrics at /metrics and /metrics/slis in the text or the protobuf format of Prometheus."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from mockube.apiserver.wire.negotiation import parse_accept
from mockube.apiserver.wire.protobuf.varint import (
    FIXED64,
    bytes_field,
    string_field,
    tag_of,
    varint,
    varint_field,
    with_length,
)
from mockube.component_base.clock import Clock
from mockube.component_base.exposition import metrics_text

from .health import Page
from .request import ACCEPT, Request
from .response import NOT_CACHED, Response

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
_FAMILY: Final = "io.prometheus.client.MetricFamily"
_MESSAGES: Final = f"application/vnd.google.protobuf; proto={_FAMILY}; encoding=delimited"
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")
_TYPES: Final = {"counter": 0, "gauge": 1, "summary": 2, "unknown": 3, "untyped": 3, "histogram": 4}
_VALUES: Final = {"gauge": 2, "counter": 3}
"""The field of a metric that holds the value, by type; 5 for the others."""


async def _no_metrics() -> Iterable[Metric]:
    return ()


def metrics_page(
    collect: Callable[[], Iterable[Metric]],
    clock: Clock,
    measure: Callable[[], Awaitable[Iterable[Metric]]] = _no_metrics,
) -> Page:
    """Return a page of metrics, which are encoded in a thread. `measure` returns metrics that need to be awaited."""
    started = {"Process-Start-Time-Unix": str(int(clock.now().timestamp()))}

    async def page(request: Request) -> Response:
        content_type = negotiate(request.header(ACCEPT))
        write = metrics_text if content_type.startswith("text/") else _messages
        body = await asyncio.to_thread(write, [*await measure(), *collect()])
        response = Response(200, [body], content_type, headers={**NOT_CACHED, **started})
        response.compressed = request.accepts_gzip
        return response

    return page


def negotiate(accept: str) -> str:
    """Return the Content-Type of the response to an Accept header."""
    escaping = "underscores"
    for clause in parse_accept(accept):
        parameters = clause.parameters
        if parameters.get("escaping") in _ESCAPINGS:
            escaping = parameters["escaping"]
        kind = f"{clause.type}/{clause.subtype}"
        if kind == "application/vnd.google.protobuf" and parameters.get("proto") == _FAMILY:
            if parameters.get("encoding") == "delimited":
                return f"{_MESSAGES}; escaping={escaping}"
        elif kind == "text/plain" and parameters.get("version", "") in ("", "0.0.4"):
            break
    return f"{_TEXT}; escaping={escaping}"


def _messages(metrics: Sequence[Metric]) -> bytes:
    """Return length-delimited MetricFamily messages."""
    return b"".join(with_length(_family(metric)) for metric in metrics if metric.samples)


def _family(metric: Metric) -> bytes:
    grouped: dict[tuple[tuple[str, str], ...], list[Sample]] = {}
    for sample in metric.samples:
        if not sample.name.endswith("_created"):
            labels = {name: text for name, text in sample.labels.items() if name not in ("le", "quantile")}
            grouped.setdefault(tuple(sorted(labels.items())), []).append(sample)
    is_total = metric.type == "counter" and not metric.name.endswith("_total")
    name = f"{metric.name}_total" if is_total else metric.name
    parts = [
        string_field(1, name),
        string_field(2, metric.documentation),
        varint_field(3, _TYPES.get(metric.type, 3)),
    ]
    for label_pairs, samples in grouped.items():
        pairs = [bytes_field(1, string_field(1, key) + string_field(2, text)) for key, text in label_pairs]
        parts.append(bytes_field(4, b"".join([*pairs, _value(metric.type, samples)])))
    return b"".join(parts)


def _value(kind: str, samples: Sequence[Sample]) -> bytes:
    if kind == "histogram":
        values = {sample.name.rpartition("_")[2]: sample.value for sample in samples}
        buckets = [
            bytes_field(3, varint_field(1, int(sample.value)) + _double(2, float(sample.labels["le"])))
            for sample in samples
            if "le" in sample.labels
        ]
        totals = varint_field(1, int(values.get("count", 0))) + _double(2, values.get("sum", 0.0))
        return bytes_field(7, totals + b"".join(buckets))
    return bytes_field(_VALUES.get(kind, 5), _double(1, samples[0].value))


def _double(number: int, value: float) -> bytes:
    return varint(tag_of(number, FIXED64)) + struct.pack("<d", value)
