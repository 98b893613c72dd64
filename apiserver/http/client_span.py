"""The span of a request that this server sends to another one."""

from http import HTTPStatus

from yarl import URL

from mockube.apiserver.tracing import spans
from mockube.apiserver.tracing.spans import OTEL_HTTP, Attributes, NoSpan, Span, SpanKind


def client_span(method: str, url: str) -> Span | NoSpan:
    """Return a child of the current span for a request."""
    return spans.child(
        f"HTTP {method}", lambda: _attributes(method, url), kind=SpanKind.CLIENT, scope=OTEL_HTTP
    )


def record_status(code: int) -> None:
    """Record the status of the response in the current span, as an error if it is one."""
    span = spans.recording()
    if span is not None and span.kind is SpanKind.CLIENT:
        span.attributes["http.response.status_code"] = code
        if code >= HTTPStatus.BAD_REQUEST:
            span.fail()


def _attributes(method: str, text: str) -> Attributes:
    url = URL(text, encoded=True)
    attributes: Attributes = {
        "http.request.method": method,
        "url.full": text,
        "server.address": url.host or "",
        "network.protocol.version": "1.1",
    }
    if url.port is not None and not url.is_default_port():
        attributes["server.port"] = url.port
    return attributes
