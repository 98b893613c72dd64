"""What is recorded of every request: a number or two for the metrics, and a line or two if there is an audit log."""

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apiserver.audit.audit import Audit
from mockube.apiserver.audit.audit import Request as AuditedRequest
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.requests import Counts, RequestMetrics, labels
from mockube.apiserver.request.filter import Config, Handle
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, error_response


def with_audit(handle: Handle, config: Config) -> Handle:
    """Record the beginning and the end of a request that was authenticated."""
    observer = config.observer

    async def filter_(request: Request) -> Response:
        record = observer.begin(request)
        response: Response | None = None
        try:
            response = await handle(request)
        except Exception as error:  # noqa: BLE001 - it is recorded as the response that it stands for
            response = error_response(error, request)
        finally:
            observer.end(record, request, response)
        return response

    return filter_


class RequestRecord(Struct, frozen=True, kw_only=True):
    """What `begin` returns for `end`."""

    counts: Counts
    started: float
    audited: AuditedRequest | None


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

    def begin(self, request: Request) -> RequestRecord:
        under = labels(request.info, request.resource, dry_run=request.is_dry_run, applies=request.applies)
        audited = None if self._audit is None else self._audit.receive(request)
        return RequestRecord(
            counts=self._metrics.begin(under), started=self._clock.monotonic(), audited=audited
        )

    def reject(self, request: Request, response: Response) -> None:
        """Record a request that could not be authenticated."""
        if self._audit is not None:
            self._audit.reject(request, response.status, response.body)

    def end(self, record: RequestRecord, request: Request, response: Response | None) -> None:
        """Record the end of a request, which has no response if it was cancelled."""
        code = 0 if response is None else response.status
        if request.is_aborted:
            self._metrics.abort(record.counts)
        self._metrics.end(record.counts, code, self._clock.monotonic() - record.started)
        if self._audit is not None and record.audited is not None:
            refusal = b"" if response is None else response.refusal
            self._audit.complete(record.audited, request, code, answer=refusal)

    def terminate_watch(self, resource: Resource) -> None:
        """Record that a watch of a resource was ended because its client did not read."""
        self._metrics.terminate_watch(resource)
