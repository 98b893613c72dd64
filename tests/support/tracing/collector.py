"""A collector of OpenTelemetry's protocol (OTLP over gRPC) in the test's own process, which keeps the spans it receives."""

import os
import threading
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")  # before the import: tests start processes

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from tests.support.event_loop import WAIT_TIMEOUT


@dataclass
class Event:
    name: str
    time: int
    attributes: dict[str, Any]


@dataclass
class CollectedSpan:
    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: str
    scope: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[Event]
    linked: list[str]
    """The trace IDs of the links."""
    status: str
    resource: dict[str, Any] = field(repr=False)


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Listens on a free port of the loopback interface, or on the `port` that is given."""

    def __init__(self, port: int = 0) -> None:
        self.spans: list[CollectedSpan] = []
        self.batches: list[int] = []
        """The number of spans of each request."""
        self._received = threading.Condition()
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{port}")

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.stop(grace=None).wait()

    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - the name of the method in the protocol
        spans = [
            _collected(span, scope.scope.name, _values(resource.resource.attributes))
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        with self._received:
            self.spans += spans
            self.batches.append(len(spans))
            self._received.notify_all()
        return trace_service_pb2.ExportTraceServiceResponse()

    def wait_until(self, matches: Callable[[CollectedSpan], bool]) -> CollectedSpan:
        """Wait for a span that matches, and return it."""
        with self._received:
            found = self._received.wait_for(lambda: next(filter(matches, self.spans), None), WAIT_TIMEOUT)
        assert found, f"no such span among {[span.name for span in self.spans]}"
        return found


def _collected(span: trace_pb2.Span, scope: str, resource: dict[str, Any]) -> CollectedSpan:
    return CollectedSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        name=span.name,
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        scope=scope,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_values(span.attributes),
        events=[Event(event.name, event.time_unix_nano, _values(event.attributes)) for event in span.events],
        linked=[link.trace_id.hex() for link in span.links],
        status=trace_pb2.Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
        resource=resource,
    )


def _values(attributes: Any) -> dict[str, Any]:
    def value(attribute: KeyValue) -> Any:
        kind = attribute.value.WhichOneof("value")
        return getattr(attribute.value, kind)

    return {attribute.key: value(attribute) for attribute in attributes}


def write_configuration(folder: Path, collector: Collector, *, samples_per_million: int = 1_000_000) -> Path:
    """Write the file for `--tracing-config-file`; by default, every request is traced."""
    path = folder / "tracing.yaml"
    path.write_text(
        "apiVersion: apiserver.config.k8s.io/v1\n"
        "kind: TracingConfiguration\n"
        f"endpoint: {collector.endpoint}\n"
        f"samplingRatePerMillion: {samples_per_million}\n"
    )
    return path
