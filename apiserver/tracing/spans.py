"""Traces with their spans, and the current span of a request, from which code that is called for the request starts child spans.

A span that is not sampled is not recorded: it only has the identity that is sent to other servers, so that they do not
record theirs either.
"""

from collections.abc import Callable, Mapping, MutableMapping
from contextvars import ContextVar, Token
from enum import IntEnum
from typing import Final, NamedTuple, Self, TypeAlias

from mockube.apimachinery.randomness import Random
from mockube.component_base.clock import Clock

Attributes: TypeAlias = MutableMapping[str, str | int]

COMPONENT_BASE: Final = "k8s.io/component-base/tracing"
FILTER_LATENCY: Final = "k8s.op/apiserver/pkg/endpoints/filterlatency"
"""Upstream's scope of the spans of filters, which has this typing error."""
OTEL_HTTP: Final = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
_NANOSECONDS: Final = 10**9
_SPAN_ID_BYTES: Final = 8
SAMPLED: Final = 1
"""The flag of a trace that is sampled."""
MAX_TEXT: Final = 2048
"""Characters of a text that a client sent; what follows is cut off, so that spans that wait need little memory."""
MAX_EVENTS: Final = 128
"""The maximum number of events of a span, as in OpenTelemetry's SDK; later ones are dropped."""


class SpanKind(IntEnum):
    """The kinds of spans, by their numbers in the protocol."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class SpanContext(NamedTuple):
    """The identity of a span, as it is sent to other servers."""

    trace_id: bytes
    span_id: bytes
    flags: int
    state: str = ""
    """The header tracestate, which is forwarded as it is."""

    def header(self) -> str:
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{self.flags:02x}"


class Event(NamedTuple):
    name: str
    time: int
    attributes: Mapping[str, str | int]


class Trace:
    """What the spans of one trace of this server share. Each recorded span is exported when it has ended."""

    __slots__ = (
        "_began",
        "_flags",
        "_monotonic",
        "_random",
        "_state",
        "baggage",
        "export",
        "is_sampled",
        "trace_id",
    )

    def __init__(
        self, export: "Export", clock: Clock, random: Random, *, identity: SpanContext, baggage: str
    ) -> None:
        """Create a trace with the id, flags and state of `identity`."""
        self.trace_id = identity.trace_id
        self.is_sampled = is_sampled = bool(identity.flags & SAMPLED)
        self.baggage = baggage
        """The header baggage, which is forwarded as it is."""
        self.export = export
        self._flags = identity.flags
        self._state = identity.state
        self._random = random
        self._monotonic = clock.monotonic
        self._began = (
            int(clock.now().timestamp() * _NANOSECONDS) - int(self._monotonic() * _NANOSECONDS)
            if is_sampled
            else 0
        )

    def now(self) -> int:
        """Return the time in nanoseconds since 1970; within a trace, it never decreases."""
        return self._began + int(self._monotonic() * _NANOSECONDS)

    def new_context(self) -> SpanContext:
        return SpanContext(self.trace_id, self._random.bytes(_SPAN_ID_BYTES), self._flags, self._state)


class Span:
    """A span of a trace. As a context manager it is the current span within its block, and ends with it."""

    __slots__ = (
        "_token",
        "attributes",
        "context",
        "ended",
        "error",
        "events",
        "has_remote_parent",
        "kind",
        "link",
        "name",
        "open_child",
        "parent",
        "scope",
        "started",
        "trace",
    )

    def __init__(  # noqa: PLR0913 - the fields of a span
        self,
        trace: Trace,
        name: str,
        *,
        parent: SpanContext | None = None,
        link: SpanContext | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        scope: str = COMPONENT_BASE,
        attributes: Attributes | None = None,
    ) -> None:
        self.trace = trace
        self.context = trace.new_context()
        self.parent = parent
        self.has_remote_parent = False
        self.link = link
        """A span of another server that is related, but no parent."""
        self.name = name
        self.kind = kind
        self.scope = scope
        self.attributes: Attributes = {} if attributes is None else attributes
        self.events: list[Event] = []
        self.error: str | None = None
        """The description of an error; None if the status is not set."""
        self.started = trace.now() if trace.is_sampled else 0
        self.ended = 0
        """The time of its end in nanoseconds since 1970; 0 before."""
        self.open_child: Span | None = None
        """The child that other functions continue and end: the work on stored objects, then the encoding of the response."""
        self._token: Token[Span | None] | None = None

    def child(
        self, name: str, attributes: Attributes | None = None, *, scope: str = COMPONENT_BASE
    ) -> "Span":
        return Span(self.trace, name, parent=self.context, scope=scope, attributes=attributes)

    def add_event(self, name: str, attributes: Mapping[str, str | int] = {}) -> None:
        if len(self.events) < MAX_EVENTS:
            self.events.append(Event(name, self.trace.now(), attributes))

    def fail(self, description: str = "") -> None:
        """Set the status to an error."""
        self.error = description

    def end(self) -> None:
        """End the span, and export it, unless it has ended before."""
        if self.trace.is_sampled and not self.ended:
            self.ended = self.trace.now()
            self.trace.export(self)

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(self, _kind: object, _error: object, _trace: object) -> None:
        assert self._token is not None
        _current.reset(self._token)
        self.end()


Export: TypeAlias = Callable[[Span], None]
"""Receives each recorded span when it has ended."""

_current: ContextVar[Span | None] = ContextVar("mockube-span", default=None)


class NoSpan:
    """Stands for a child span outside of a recorded trace."""

    def add_event(self, name: str, attributes: Mapping[str, str | int] = {}) -> None:
        """Do nothing."""

    def fail(self, description: str = "") -> None:
        """Do nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, _error: object, _trace: object) -> None:
        """Do nothing."""


_NO_SPAN: Final = NoSpan()


def current() -> Span | None:
    """Return the current span, recorded or not."""
    return _current.get()


def recording() -> Span | None:
    """Return the current span if it is recorded."""
    span = _current.get()
    return span if span is not None and span.trace.is_sampled else None


def child(
    name: str,
    attributes: Callable[[], Attributes],
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    scope: str = COMPONENT_BASE,
) -> Span | NoSpan:
    """Return a child of the current span; the attributes are computed only if it is recorded."""
    parent = _current.get()
    if parent is None or not parent.trace.is_sampled:
        return _NO_SPAN
    return Span(parent.trace, name, parent=parent.context, kind=kind, scope=scope, attributes=attributes())


def outgoing_headers() -> Mapping[str, str]:
    """Return the headers by which another server continues the trace of the current span."""
    span = _current.get()
    if span is None:
        return {}
    headers = {"Traceparent": span.context.header()}
    if span.context.state:
        headers["Tracestate"] = span.context.state
    if span.trace.baggage:
        headers["Baggage"] = span.trace.baggage
    return headers
