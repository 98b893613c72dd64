"""Encoding of spans as a request of OpenTelemetry's protocol (OTLP): an ExportTraceServiceRequest in protobuf.

The functions are named after the messages of opentelemetry/proto/trace/v1/trace.proto and common.proto.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from mockube.apiserver.wire.protobuf.varint import (
    FIXED32,
    FIXED64,
    bytes_field,
    string_field,
    tag_of,
    varint,
    varint_field,
)

from .spans import Event, Span, SpanContext

EXPORT: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
"""The method of the collector."""
_ERROR: Final = 2
_KNOWS_REMOTE: Final = 0x100
"""The flag that says that the next one is known."""
_IS_REMOTE: Final = 0x200
_NEGATIVE: Final = 1 << 64
"""What is added to a negative number, as protobuf encodes it."""


def export_request(spans: Iterable[Span], resource: Mapping[str, str]) -> bytes:
    """Return the request that sends spans of this server, whose attributes are `resource`."""
    scopes: dict[str, list[bytes]] = {}
    for span in spans:
        scopes.setdefault(span.scope, []).append(bytes_field(2, _span(span)))
    resource_spans = [bytes_field(1, _attributes(1, resource))]
    resource_spans += [
        bytes_field(2, bytes_field(1, string_field(1, scope)) + b"".join(encoded))
        for scope, encoded in scopes.items()
    ]
    return bytes_field(1, b"".join(resource_spans))


def _span(span: Span) -> bytes:
    fields = [
        bytes_field(1, span.context.trace_id),
        bytes_field(2, span.context.span_id),
        string_field(5, span.name),
        varint_field(6, span.kind),
        _fixed64_field(7, span.started),
        _fixed64_field(8, span.ended),
        _attributes(9, span.attributes),
    ]
    if span.context.state:
        fields.append(string_field(3, span.context.state))
    flags = span.context.flags | _KNOWS_REMOTE
    if span.parent is not None:
        fields.append(bytes_field(4, span.parent.span_id))
        flags |= _IS_REMOTE if span.has_remote_parent else 0
    fields += [bytes_field(11, _event(event)) for event in span.events]
    if span.link is not None:
        fields.append(bytes_field(13, _link(span.link)))
    if span.error is not None:
        fields.append(bytes_field(15, string_field(2, span.error) + varint_field(3, _ERROR)))
    fields.append(_fixed32_field(16, flags))
    return b"".join(fields)


def _event(event: Event) -> bytes:
    return _fixed64_field(1, event.time) + string_field(2, event.name) + _attributes(3, event.attributes)


def _link(linked: SpanContext) -> bytes:
    state = string_field(3, linked.state) if linked.state else b""
    flags = _fixed32_field(6, linked.flags | _KNOWS_REMOTE | _IS_REMOTE)
    return bytes_field(1, linked.trace_id) + bytes_field(2, linked.span_id) + state + flags


def _attributes(number: int, attributes: Mapping[str, str | int]) -> bytes:
    return b"".join(
        bytes_field(number, string_field(1, key) + bytes_field(2, _any_value(value)))
        for key, value in attributes.items()
    )


def _any_value(value: str | int) -> bytes:
    if isinstance(value, str):
        return bytes_field(1, value.encode(errors="replace"))
    return varint_field(3, value if value >= 0 else value + _NEGATIVE)


def _fixed64_field(number: int, value: int) -> bytes:
    return varint(tag_of(number, FIXED64)) + value.to_bytes(8, "little")


def _fixed32_field(number: int, value: int) -> bytes:
    return varint(tag_of(number, FIXED32)) + value.to_bytes(4, "little")
