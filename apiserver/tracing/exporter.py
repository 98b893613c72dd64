"""Exports spans to a collector by OpenTelemetry's protocol over gRPC, in batches, in a thread of its own.

A collector that is slow or dead delays nothing: at most `Limits.queue` spans wait for it, and later ones are dropped. The
log has one line when it fails, and one when it works again.
"""

import asyncio
import logging
import os
from collections import deque
from collections.abc import Mapping
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from . import otlp
from .spans import Span

if TYPE_CHECKING:
    import grpc

LOG: Final = logging.getLogger(__name__)

CALL_SECONDS: Final = 10.0
"""How long the collector may take to receive a batch, as in OpenTelemetry's exporters."""
_DIGITS: Final = 10
"""The digits of a variable that is too large."""
_CANCELLED: Final = "CANCELLED"
_RETRYABLE: Final = frozenset(
    {
        _CANCELLED,
        "DEADLINE_EXCEEDED",
        "RESOURCE_EXHAUSTED",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNAVAILABLE",
        "DATA_LOSS",
    }
)
"""The codes after which OTLP's specification lets a client send a batch again."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of batches. Environment variables of OpenTelemetry set them, as upstream."""

    queue: int = 2048
    """The maximum number of spans that wait."""
    batch: int = 512
    """The maximum number of spans in one request."""
    seconds: float = 5.0
    """How long a span waits for others before they are exported."""
    retry_seconds: float = 5.0
    """How long the exporter waits after a batch failed."""
    flush_seconds: float = 5.0
    """How long a server that ends waits until its last spans are exported."""


def limits_of(environment: Mapping[str, str]) -> Limits:
    """Return the limits that the variables set; as upstream, a value that is not a positive number is ignored."""
    default = Limits()

    def number(name: str, usual: int) -> int:
        text = environment.get(name, "")
        return (int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0) or usual

    queue = number("OTEL_BSP_MAX_QUEUE_SIZE", default.queue)
    return Limits(
        queue=queue,
        batch=min(number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", default.batch), queue),
        seconds=number("OTEL_BSP_SCHEDULE_DELAY", round(default.seconds * 1000)) / 1000,
    )


class SpanExporter:
    """Exports spans from `start` until `close`; `add` may be called before and after, and never waits."""

    def __init__(self, endpoint: str, resource: Mapping[str, str], limits: Limits) -> None:
        self._endpoint = endpoint
        self._resource = resource
        self._limits = limits
        self._queue: deque[Span] = deque()
        self._dropped = 0
        """The number of spans that were dropped."""
        self._is_failing = False
        self._has_span, self._has_batch, self._is_closing = Event(), Event(), Event()
        """Set when there is a span, when there are enough for a batch, and when the server ends."""
        self._thread = Thread(target=self._run, name="export traces", daemon=True)
        self._channel: grpc.Channel | None = None

    def add(self, span: Span) -> None:
        """Export a span that has ended, or drop it if too many wait."""
        queue = self._queue
        count = len(queue)
        if count >= self._limits.queue:
            if not self._dropped and not self._is_failing:
                LOG.warning("Traces: spans are dropped, because %d wait to be exported", count)
            self._dropped += 1
            return
        queue.append(span)
        if not count:
            self._has_span.set()
        if count + 1 >= self._limits.batch:
            self._has_batch.set()

    def start(self) -> None:
        # The process creates other processes only to run other programs, for which gRPC's handlers of forks are not needed; they
        # would write to the standard error output, as would its own log.
        os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        import grpc  # noqa: PLC0415 - large, and only installed with the extra

        # The channel connects again before the exporter tries again.
        backoff = round(self._limits.retry_seconds * 1000 / 2)
        options = [(f"grpc.{name}_reconnect_backoff_ms", backoff) for name in ("initial", "max")]
        self._channel = grpc.insecure_channel(self._endpoint, options)
        self._thread.start()

    async def close(self) -> None:
        """Export the spans that wait, within a few seconds."""
        self._is_closing.set()
        self._has_span.set()
        self._has_batch.set()
        await asyncio.to_thread(self._thread.join, self._limits.flush_seconds)
        assert self._channel is not None
        self._channel.close()  # ends a call, and thus the thread
        await asyncio.to_thread(self._thread.join, self._limits.flush_seconds)
        if lost := len(self._queue) + self._dropped:
            LOG.warning("Traces: %d spans were not exported to %s", lost, self._endpoint)

    def _run(self) -> None:
        try:
            self._export()
        except Exception:
            LOG.exception("Traces: the export ended, and spans are dropped from now on")

    def _export(self) -> None:
        assert self._channel is not None
        export = self._channel.unary_unary(otlp.EXPORT)
        is_closing = False
        while not is_closing:
            self._has_span.wait()
            self._has_batch.wait(self._limits.seconds)
            self._has_span.clear()
            self._has_batch.clear()
            is_closing = self._is_closing.is_set()  # afterwards, because `close` sets it before the others
            minimum = 1  # later batches are full, unless there are no more
            while len(self._queue) >= minimum:
                if not self._export_batch(export) and self._is_closing.wait(self._limits.retry_seconds):
                    self._export_batch(export)
                    return
                minimum = 1 if is_closing else self._limits.batch
            if self._queue:
                self._has_span.set()

    def _export_batch(self, export: Any) -> bool:
        """Send the oldest spans; return False if that failed and may be tried again."""
        import grpc  # noqa: PLC0415 - see `start`

        batch = [self._queue.popleft() for _ in range(min(len(self._queue), self._limits.batch))]
        request = otlp.export_request(batch, self._resource)
        try:
            export(request, timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            code = error.code().name
            if code != _CANCELLED:  # by `close`, which logs the number of lost spans
                self._report_failure(f"{code}: {error.details()}")
            if code in _RETRYABLE:
                self._queue.extendleft(reversed(batch))
                return False
            self._dropped += len(batch)
            return True
        except ValueError:  # the channel was closed: the server ends
            self._dropped += len(batch)
            return True
        self._report_success()
        return True

    def _report_failure(self, problem: str) -> None:
        if not self._is_failing:
            self._is_failing = True
            LOG.warning(
                "Traces: the collector %s does not receive spans: %s. Until it does, at most %d spans wait, others are dropped",
                self._endpoint,
                problem,
                self._limits.queue,
            )

    def _report_success(self) -> None:
        if self._is_failing:
            self._is_failing = False
            LOG.warning("Traces: the collector %s receives spans again", self._endpoint)
