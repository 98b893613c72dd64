"""Starts traces: decides which are sampled, and generates their IDs.

As upstream, a trace that another server began is sampled if that server samples it, any other trace for a share of them.
"""

import re
from collections.abc import Mapping
from typing import Final

from mockube.apimachinery.randomness import Random
from mockube.component_base.clock import Clock

from .spans import SAMPLED, Attributes, Export, Span, SpanContext, SpanKind, Trace

_TRACE_ID_BYTES: Final = 16
_FLAGS: Final = 3
"""The flags of a trace that are defined: that it is sampled, and that its ID is random."""
_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MAX_STATE: Final = 512
"""Characters of tracestate: a longer one is dropped, as the specification allows."""
_MAX_BAGGAGE: Final = 8192
"""Characters of baggage; a longer one is dropped."""


class Tracer:
    """Starts the root spans of this server; `export` receives each recorded span when it has ended."""

    def __init__(self, export: Export, *, clock: Clock, random: Random, samples_per_million: int) -> None:
        self._export = export
        self._clock = clock
        self._random = random
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
        identity = remote or self._new_identity()
        trace = Trace(self._export, self._clock, self._random, identity=identity, baggage=baggage)
        span = Span(trace, name, parent=remote, link=link, kind=kind, scope=scope, attributes=attributes)
        span.has_remote_parent = remote is not None
        return span

    def _new_identity(self) -> SpanContext:
        """Return the identity of a new trace: as in OpenTelemetry's SDK, its ID decides whether it is sampled, in all servers alike."""
        trace_id = self._random.bytes(_TRACE_ID_BYTES)
        is_sampled = int.from_bytes(trace_id[8:]) >> 1 < self._bound
        return SpanContext(trace_id, b"", SAMPLED if is_sampled else 0)


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
