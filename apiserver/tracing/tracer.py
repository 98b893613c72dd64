"""Starts traces: decides which are sampled, and generates their IDs.

As upstream, a trace that another server began is sampled if that server samples it, any other trace for a share of them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery.randomness import Random
from mockube.component_base.clock import Clock

from .spans import SAMPLED, Attributes, Span, SpanContext, SpanKind

_NANOSECONDS: Final = 10**9
_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_FLAGS: Final = 3
"""The flags of a trace that are defined: that it is sampled, and that its ID is random."""
_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MAX_STATE: Final = 512
"""Characters of tracestate: a longer one is dropped, as the specification allows."""
_MAX_BAGGAGE: Final = 8192
"""Characters of baggage; a longer one is dropped."""


class Trace:
    """What the spans of one trace of this server share."""

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

    def __init__(self, tracer: "Tracer", trace_id: bytes, *, flags: int, state: str, baggage: str) -> None:
        self.trace_id = trace_id
        self.is_sampled = is_sampled = bool(flags & SAMPLED)
        self.baggage = baggage
        """The header baggage, which is forwarded as it is."""
        self.export = tracer.export
        self._flags = flags
        self._state = state
        self._random = tracer.random
        self._monotonic = tracer.clock.monotonic
        self._began = (
            int(tracer.clock.now().timestamp() * _NANOSECONDS) - int(self._monotonic() * _NANOSECONDS)
            if is_sampled
            else 0
        )

    def now(self) -> int:
        """Return the time in nanoseconds since 1970; within a trace, it never decreases."""
        return self._began + int(self._monotonic() * _NANOSECONDS)

    def new_context(self) -> SpanContext:
        return SpanContext(self.trace_id, self._random.bytes(_SPAN_ID_BYTES), self._flags, self._state)


class Tracer:
    """Starts the root spans of this server; `export` receives each recorded span when it has ended."""

    def __init__(
        self, export: Callable[[Span], None], *, clock: Clock, random: Random, samples_per_million: int
    ) -> None:
        self.export = export
        self.clock = clock
        self.random = random
        self._bound = samples_per_million * (1 << 63) // 1_000_000

    def root(  # noqa: PLR0913 - the fields of a span
        self,
        name: str,
        *,
        remote: SpanContext | None = None,
        link: SpanContext | None = None,
        baggage: str = "",
        kind: SpanKind = SpanKind.INTERNAL,
        scope: str,
        attributes: Attributes | None = None,
    ) -> Span:
        """Return the first span of a trace in this server: a child of a remote span, or of a new trace."""
        if remote is None:
            trace_id = self.random.bytes(_TRACE_ID_BYTES)
            flags = SAMPLED if self._is_sampled(trace_id) else 0
            trace = Trace(self, trace_id, flags=flags, state="", baggage=baggage)
        else:
            trace = Trace(self, remote.trace_id, flags=remote.flags, state=remote.state, baggage=baggage)
        span = Span(trace, name, parent=remote, link=link, kind=kind, scope=scope, attributes=attributes)
        span.has_remote_parent = remote is not None
        return span

    def _is_sampled(self, trace_id: bytes) -> bool:
        """Return whether a new trace is sampled: as OpenTelemetry's SDK, its ID decides, so that all servers decide alike."""
        return int.from_bytes(trace_id[8:]) >> 1 < self._bound


def remote_context(headers: Mapping[str, str]) -> SpanContext | None:
    """Return the span that the headers of a request name; None without a valid one."""
    parent = headers.get("traceparent")
    match = None if parent is None else _PARENT.fullmatch(parent)
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == "ff" or (version == "00" and (rest or int(flags, 16) > _FLAGS)):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    state = headers.get("tracestate", "")
    return SpanContext(
        bytes.fromhex(trace_id),
        bytes.fromhex(span_id),
        int(flags, 16) & _FLAGS,
        state if len(state) <= _MAX_STATE else "",
    )


def remote_baggage(headers: Mapping[str, str]) -> str:
    baggage = headers.get("baggage", "")
    return baggage if len(baggage) <= _MAX_BAGGAGE else ""
