"""The last requests to the server, in order: those of the controllers apart from all others."""

import warnings
from collections import deque
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery.clock import Clock
from mockube.apiserver.request.filter import Handle, Middleware
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import RequestInfo
from mockube.embedded.matching import CONTROLLERS, Matcher

MAX_CALLS: Final = 10_000
"""Calls of users, and as many of the controllers: older ones are dropped."""


class Call(Struct, frozen=True, kw_only=True):
    """One request. `code` and `seconds` are None as long as it is not answered, as with a watch that still runs."""

    at: datetime
    user: str
    agent: str
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    uri: str
    """Path and query, as sent."""
    code: int | None
    seconds: float | None

    def __str__(self) -> str:
        code = "..." if self.code is None else self.code
        return f"{self.at:%H:%M:%S.%f} {code} {self.verb} {self.uri} ({self.user}, {self.agent})"


class Calls(list[Call]):
    """The calls that were looked for, oldest first."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "".join(f"\n  {call}" for call in self) or "no calls"


class CallsDropped(UserWarning):
    """There were more calls than are kept: the oldest are missing from the result."""


class _Entry:
    __slots__ = ("agent", "at", "code", "info", "number", "seconds", "uri", "user")

    def __init__(self, request: Request, number: int, at: datetime) -> None:
        self.number = number
        self.at = at
        self.info: RequestInfo = request.info
        self.user = request.user.name
        self.agent = request.user_agent
        self.uri = request.uri
        self.code: int | None = None
        self.seconds: float | None = None


class Recorder:
    """Middleware that records every request, and calls other middleware."""

    def __init__(self, inner: Middleware, clock: Clock, *, max_calls: int = MAX_CALLS) -> None:
        self._inner = inner
        self._clock = clock
        self._count = 0
        self._of_users: deque[_Entry] = deque(maxlen=max_calls)
        self._of_controllers: deque[_Entry] = deque(maxlen=max_calls)
        self.dropped_count = 0
        """The number of dropped calls, without those of controllers."""

    async def record(self, request: Request, proceed: Handle) -> Response:
        began = self._clock.monotonic()
        self._count += 1
        entry = _Entry(request, self._count, self._clock.now())
        ring = self._of_controllers if entry.user == CONTROLLERS else self._of_users
        if ring is self._of_users and len(ring) == ring.maxlen:
            self.dropped_count += 1
        ring.append(entry)
        response = await self._inner(request, proceed)
        entry.code, entry.seconds = response.status, self._clock.monotonic() - began
        return response

    def calls(self, matcher: Matcher, code: int | None = None) -> Calls:
        entries = sorted((*self._of_users, *self._of_controllers), key=lambda entry: entry.number)
        return Calls(_calls(entry for entry in entries if _is_meant(entry, matcher, code)))

    def warn_of_dropped_calls(self) -> None:
        """Warn readers of the calls that some were dropped: a missing call looks like one that was never made."""
        if self.dropped_count:
            warnings.warn(
                f"the oldest {self.dropped_count} calls were dropped: call clear_calls() before the calls to count",
                CallsDropped,
                stacklevel=3,
            )

    def clear(self) -> None:
        self._of_users.clear()
        self._of_controllers.clear()
        self.dropped_count = 0


def _is_meant(entry: _Entry, matcher: Matcher, code: int | None) -> bool:
    return code in (None, entry.code) and matcher.matches(entry.user, entry.agent, entry.info)


def _calls(entries: Iterable[_Entry]) -> Iterable[Call]:
    for entry in entries:
        info = entry.info
        yield Call(
            at=entry.at,
            user=entry.user,
            agent=entry.agent,
            verb=info.verb,
            group=info.group,
            version=info.version,
            resource=info.resource,
            subresource=info.subresource,
            namespace=info.namespace,
            name=info.name,
            uri=entry.uri,
            code=entry.code,
            seconds=entry.seconds,
        )
