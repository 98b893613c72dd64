"""What is noted of every request: a number or two for the metrics, and a line or two if there is an audit log."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from apimachinery.clock import Clock
from apiserver.http.requestinfo import RequestInfo
from apiserver.observe.audit import Audit, Request
from apiserver.observe.requests import Labels, RequestMetrics, labels
from apiserver.resources.spec import Resource
from apiserver.rest.call import User


class Arrival(Protocol):
    """A request as it came in. What the metrics do not need is looked at only if there is an audit log."""

    @property
    def info(self) -> RequestInfo: ...

    @property
    def user(self) -> User: ...

    @property
    def uri(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def user_agent(self) -> str: ...

    @property
    def is_dry_run(self) -> bool: ...

    @property
    def applies(self) -> bool:
        """Whether it is a patch by server-side apply."""


class Noted(Struct, frozen=True, kw_only=True):
    """What `end` is given back of `begin`."""

    under: Labels
    started: float
    audited: Request | None


class Observer:
    def __init__(
        self,
        metrics: RequestMetrics,
        audit: Audit | None,
        *,
        clock: Clock,
        resources: Callable[[str, str, str], Resource | None],
    ) -> None:
        self._metrics = metrics
        self._audit = audit
        self._clock = clock
        self._resources = resources

    def begin(self, arrival: Arrival) -> Noted:
        info = arrival.info
        resource = self._resources(info.group, info.version, info.resource) if info.is_resource else None
        under = labels(info, resource, dry_run=arrival.is_dry_run, applies=arrival.applies)
        if under.verb == "WATCH":
            self._metrics.watch_begins(under)
        else:
            self._metrics.begin(under)
        audited = None
        if self._audit is not None:
            audited = self._audit.receive(arrival.uri, arrival.source, arrival.user_agent, arrival.user, info)
        return Noted(under=under, started=self._clock.monotonic(), audited=audited)

    def end(self, noted: Noted, code: int, *, body: bytes = b"", answer: bytes = b"") -> None:
        if noted.under.verb == "WATCH":
            self._metrics.watch_ends(noted.under, code)
        else:
            self._metrics.end(noted.under, code, self._clock.monotonic() - noted.started)
        if self._audit is not None and noted.audited is not None:
            self._audit.complete(noted.audited, code, body=body, answer=answer)
