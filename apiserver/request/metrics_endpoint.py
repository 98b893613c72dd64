"""Serve metrics at /metrics and /metrics/slis in the text or the protobuf format of Prometheus."""

import asyncio
import math
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

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
from mockube.component_base.exposition import CONTENT_TYPE, cumulative, metrics_text, sorted_labels
from mockube.component_base.metrics import Buckets, Collected, MetricsRegistry

from .page import Page
from .request import ACCEPT, Request
from .response import NOT_CACHED, Response

_FAMILY: Final = "io.prometheus.client.MetricFamily"
_MESSAGES: Final = f"application/vnd.google.protobuf; proto={_FAMILY}; encoding=delimited"
_ESCAPINGS: Final = ("allow-utf-8", "underscores", "dots", "values")
_TYPES: Final = {"counter": 0, "gauge": 1, "histogram": 4}
_VALUES: Final = {"gauge": 2, "counter": 3}
"""The field of a metric that holds the value, by type."""


async def _no_measurement() -> None: ...


def metrics_page(
    metrics: MetricsRegistry, clock: Clock, measure: Callable[[], Awaitable[None]] = _no_measurement
) -> Page:
    """Return a page of metrics, which are encoded in a thread. `measure` sets those that need to be awaited."""
    started = {"Process-Start-Time-Unix": str(int(clock.now().timestamp()))}

    async def page(request: Request) -> Response:
        content_type = negotiate(request.header(ACCEPT))
        write = metrics_text if content_type.startswith("text/") else _messages
        await measure()
        body = await asyncio.to_thread(write, metrics.collect())
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
    return f"{CONTENT_TYPE}; escaping={escaping}"


def _messages(collected: Sequence[Collected]) -> bytes:
    """Return length-delimited MetricFamily messages."""
    return b"".join(with_length(_family(each)) for each in collected if each.samples)


def _family(collected: Collected) -> bytes:
    family, samples = collected
    parts = [string_field(1, family.name), string_field(2, family.help), varint_field(3, _TYPES[family.type])]
    for labels, value in sorted_labels(family, samples):
        pairs = [bytes_field(1, string_field(1, name) + string_field(2, text)) for name, text in labels]
        encoded = (
            _histogram(family.buckets, value)
            if isinstance(value, Buckets)
            else bytes_field(_VALUES[family.type], _double(1, value))
        )
        parts.append(bytes_field(4, b"".join([*pairs, encoded])))
    return b"".join(parts)


def _histogram(bounds: Sequence[float], value: Buckets) -> bytes:
    counts = cumulative(value.counts)
    buckets = [
        bytes_field(3, varint_field(1, count) + _double(2, bound))
        for bound, count in zip((*bounds, math.inf), counts, strict=True)
    ]
    totals = varint_field(1, counts[-1]) + _double(2, value.total)
    return bytes_field(7, totals + b"".join(buckets))


def _double(number: int, value: float) -> bytes:
    return varint(tag_of(number, FIXED64)) + struct.pack("<d", value)
