"""The encoded requests are decoded by OpenTelemetry's own messages."""

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2

from mockube.apimachinery.randomness import SeededRandom
from mockube.apiserver.tracing.otlp import export_request
from mockube.apiserver.tracing.spans import SpanContext, SpanKind
from mockube.apiserver.tracing.tracer import Tracer
from mockube.component_base.clock import SteppedClock

REMOTE = SpanContext(b"t" * 16, b"s" * 8, 1, "a=b")


def tracer():
    return Tracer(lambda _: None, clock=SteppedClock(), random=SeededRandom(), samples_per_million=1_000_000)


def decoded(*spans, **resource):
    return ExportTraceServiceRequest.FromString(export_request(spans, resource))


def test_every_field_of_span_is_encoded():
    attributes = {"text": "é\ud800", "number": 300, "negative": -1, "zero": 0}
    span = tracer().root(
        "x", remote=REMOTE, link=REMOTE, kind=SpanKind.SERVER, scope="s", attributes=attributes
    )
    span.add_event("e", {"len": 3})
    span.fail("broken")
    span.end()
    (found,) = decoded(span).resource_spans[0].scope_spans[0].spans
    assert (found.trace_id, found.parent_span_id, found.trace_state) == (b"t" * 16, b"s" * 8, "a=b")
    assert found.span_id == span.context.span_id
    assert (found.name, found.kind) == ("x", trace_pb2.Span.SPAN_KIND_SERVER)
    assert (found.start_time_unix_nano, found.end_time_unix_nano) == (span.started, span.ended)
    assert found.start_time_unix_nano == int(SteppedClock().now().timestamp()) * 10**9
    values = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in found.attributes}
    assert values == {"text": "é?", "number": 300, "negative": -1, "zero": 0}
    (event,) = found.events
    assert (event.name, event.time_unix_nano, event.attributes[0].value.int_value) == ("e", span.started, 3)
    assert (found.links[0].trace_id, found.links[0].trace_state) == (b"t" * 16, "a=b")
    assert (found.status.code, found.status.message) == (trace_pb2.Status.STATUS_CODE_ERROR, "broken")
    assert found.flags == 0x301


def test_parent_in_this_server_is_not_remote():
    root = tracer().root("x", scope="s")
    child = root.child("y")
    child.end()
    (found,) = decoded(child).resource_spans[0].scope_spans[0].spans
    assert (found.parent_span_id, found.flags) == (root.context.span_id, 0x101)


def test_spans_are_grouped_by_scope_and_resource_is_sent_once():
    spans = [tracer().root(name, scope=scope) for name, scope in (("x", "a"), ("y", "b"), ("z", "a"))]
    (resource,) = decoded(*spans, **{"service.name": "apiserver"}).resource_spans
    assert {each.key: each.value.string_value for each in resource.resource.attributes} == {
        "service.name": "apiserver"
    }
    found = {each.scope.name: [span.name for span in each.spans] for each in resource.scope_spans}
    assert found == {"a": ["x", "z"], "b": ["y"]}
