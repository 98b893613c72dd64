"""The audit id of a request, and its record in the metrics and in the audit log."""

import itertools
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

import orjson
from msgspec import Struct

from mockube.apimachinery import randomness
from mockube.apimachinery.randomness import Random
from mockube.apiserver.audit.audit import NO_RESPONSE, Audit, AuditedRequest, AuditedResponse
from mockube.apiserver.metrics.requests import RequestCounts, RequestMetrics, labels
from mockube.component_base.clock import Clock

from .limits import is_long_running
from .request import Request
from .response import JSON, Response

_R = TypeVar("_R")
_LAST: Final = 0xFFFFFFFFFFFF


class AuditIds:
    """Generates a unique id for each request: UUIDs that count up from a random one."""

    def __init__(self, random: Random) -> None:
        self._beginning, _, end = randomness.uid(random).rpartition("-")
        self._numbers = itertools.count(int(end, 16))

    def next(self) -> str:
        return f"{self._beginning}-{next(self._numbers) & _LAST:012x}"


class Recorder(Protocol[_R]):
    """Records requests, to return them later."""

    def begin(self, request: Request, /) -> _R | None:
        """Record a request that has arrived; None if it is not recorded."""

    def end(
        self, recorded: _R, code: int | None, sent: int | None, seconds: float, problem: bytes, /
    ) -> None:
        """Record how a request ended, the bytes of its response, how long it took, and the Status of an error."""


class RequestRecord(Struct, frozen=True, kw_only=True):
    """A request between `RequestObserver.begin` and `RequestObserver.end`."""

    counts: RequestCounts
    started: float
    audited: AuditedRequest | None
    recorded: Any
    """What the recorder knows it by."""


class RequestObserver:
    def __init__(
        self,
        metrics: RequestMetrics,
        audit: Audit | None,
        *,
        clock: Clock,
        recorder: Recorder[Any] | None = None,
    ) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._audit = audit
        self._clock = clock

    def begin(self, request: Request) -> RequestRecord:
        under = labels(request.info, request.resource, dry_run=request.is_dry_run, applies=request.applies)
        audited = None if self._audit is None else self._begin_audit(self._audit, request)
        return RequestRecord(
            counts=self._metrics.begin(under),
            started=self._clock.monotonic(),
            audited=audited,
            recorded=None if self._recorder is None else self._recorder.begin(request),
        )

    @staticmethod
    def _begin_audit(audit: Audit, request: Request) -> AuditedRequest | None:
        audited = audit.receive(request, is_long_running=is_long_running(request.info))
        request.audited = audited
        if audited is not None and audited.is_long_running:
            request.on_stream = lambda code: audit.start(audited, request, AuditedResponse(code))
        return audited

    def reject(self, request: Request, response: Response) -> None:
        """Record a request that could not be authenticated."""
        if self._recorder is not None and (recorded := self._recorder.begin(request)) is not None:
            self._recorder.end(recorded, response.status, response.size, 0.0, response.status_object)
        if self._audit is not None:
            self._audit.reject(request, AuditedResponse(response.status, response.status_object))

    def end(self, record: RequestRecord, request: Request, response: Response | None) -> None:
        """Record the end of a request, which has no response if it was cancelled."""
        code, size = _code_and_size(request, response)
        if request.is_aborted:
            self._metrics.abort(record.counts)
        if request.is_terminated and response is not None:
            self._metrics.terminate(record.counts, response.status)
            if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                self._metrics.drop(record.counts, response.status)
        seconds, context = self._clock.monotonic() - record.started, request.context
        if self._recorder is not None and record.recorded is not None:
            sent = response if _has_response(request) else None
            status, problem = (None, b"") if sent is None else (sent.status, sent.status_object)
            self._recorder.end(record.recorded, status, size, seconds, problem)
        if context is None:
            self._metrics.end(record.counts, code, seconds, size, route=request.route)
        else:
            report = context.report
            webhooks = report.mutating_seconds + report.validating_seconds
            self._metrics.end(record.counts, code, seconds, size, webhooks, request.route)
            if record.counts.bodies is not None and code != HTTPStatus.UNSUPPORTED_MEDIA_TYPE:
                record.counts.bodies.observe(len(context.body.data))
        if self._audit is None or record.audited is None:
            return
        if _is_cut(request):
            self._audit.abort(record.audited, request)
        else:
            self._audit.complete(record.audited, request, _outcome(record.audited, request, response))


def _code_and_size(request: Request, response: Response | None) -> tuple[int | None, int | None]:
    """Return the code and size for the metrics.

    As upstream, an aborted request has no code, one that left HTTP has 0, and a watch by the deprecated path has no size.
    """
    if response is None or request.stream_status == HTTPStatus.SWITCHING_PROTOCOLS:
        return 0, 0
    has_size = not request.info.prefix and _has_response(request)
    size = request.streamed_bytes or response.size if has_size else None
    return None if _is_cut(request) else response.status, size


def _has_response(request: Request) -> bool:
    """Return whether its response has begun before a fault has cut its connection."""
    return not request.is_cut or bool(request.stream_status)


def _is_cut(request: Request) -> bool:
    return request.is_cut or (request.is_aborted and bool(request.stream_status))


def _outcome(audited: AuditedRequest, request: Request, response: Response | None) -> AuditedResponse:
    if response is None:
        return NO_RESPONSE
    obj = response.logged_object
    if audited.logs_response and not response.status_object and _is_discovery(request, response):
        obj = orjson.dumps(orjson.loads(response.body))
    return AuditedResponse(response.status, response.status_object, obj)


def _is_discovery(request: Request, response: Response) -> bool:
    """Return whether a page is an object, which is logged; a response that was streamed has no body here."""
    if request.info.is_resource or not response.size or not response.content_type.startswith(JSON):
        return False
    return request.path.startswith(("/api/", "/apis/")) or request.path in ("/api", "/apis")
