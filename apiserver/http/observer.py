"""What is noted of every request: a number or two for the metrics, and a line or two if there is an audit log."""

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apiserver.audit.arrival import Arrival
from mockube.apiserver.audit.audit import Audit, Request
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.requests import Counts, RequestMetrics, labels


class RequestRecord(Struct, frozen=True, kw_only=True):
    """What `end` is given back of `begin`."""

    counts: Counts
    started: float
    audited: Request | None


class Observer:
    def __init__(
        self,
        metrics: RequestMetrics,
        audit: Audit | None,
        *,
        clock: Clock,
    ) -> None:
        self._metrics = metrics
        self._audit = audit
        self._clock = clock

    def begin(self, arrival: Arrival, resource: Resource | None) -> RequestRecord:
        """Note that a request has come, for a resource if there is one of its URL."""
        under = labels(arrival.info, resource, dry_run=arrival.is_dry_run, applies=arrival.applies)
        audited = None if self._audit is None else self._audit.receive(arrival)
        return RequestRecord(
            counts=self._metrics.begin(under), started=self._clock.monotonic(), audited=audited
        )

    def reject(self, arrival: Arrival, code: int, answer: bytes) -> None:
        """Note a request whose sender could not be authenticated."""
        if self._audit is not None:
            self._audit.reject(arrival, code, answer)

    def end(
        self, noted: RequestRecord, arrival: Arrival, code: int, *, body: bytes = b"", answer: bytes = b""
    ) -> None:
        self._metrics.end(noted.counts, code, self._clock.monotonic() - noted.started)
        if self._audit is not None and noted.audited is not None:
            self._audit.complete(noted.audited, arrival, code, body=body, answer=answer)

    def abort(self, noted: RequestRecord) -> None:
        """Its answer was cut off."""
        self._metrics.abort(noted.counts)

    def terminate_watch(self, resource: Resource) -> None:
        """A watch of it was ended whose client did not read."""
        self._metrics.terminate_watch(resource)
