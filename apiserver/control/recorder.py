"""The recorder of the last requests to the server. Requests of controllers and of other users have separate limits."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.apiserver.request.hooks import Proceed
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import RequestInfo
from mockube.component_base.clock import Clock

from .matching import CONTROLLERS, Match

MAX_CALLS: Final = 10_000
"""The number of recorded calls of users, and of controllers; older calls are dropped."""


class RecordedCall(Struct, frozen=True, kw_only=True):
    """One recorded request. `code` and `seconds` are None until there is a response, as for a watch in progress."""

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
    """The path and query, as sent."""
    code: int | None
    seconds: float | None

    def __str__(self) -> str:
        code = "..." if self.code is None else self.code
        return f"{self.at:%H:%M:%S.%f} {code} {self.verb} {self.uri} ({self.user}, {self.agent})"


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


class CallRecorder:
    """A hook that records every request."""

    def __init__(self, clock: Clock, *, max_calls: int = MAX_CALLS) -> None:
        self._clock = clock
        self._count = 0
        self._user_entries: deque[_Entry] = deque(maxlen=max_calls)
        self._controller_entries: deque[_Entry] = deque(maxlen=max_calls)
        self.dropped_count = 0
        """The number of dropped calls, without those of controllers."""

    async def record(self, request: Request, proceed: Proceed) -> Response:
        started = self._clock.monotonic()
        self._count += 1
        entry = _Entry(request, self._count, self._clock.now())
        ring = self._controller_entries if entry.user == CONTROLLERS else self._user_entries
        if ring is self._user_entries and len(ring) == ring.maxlen:
            self.dropped_count += 1
        ring.append(entry)
        response = await proceed(request)
        entry.code, entry.seconds = response.status, self._clock.monotonic() - started
        return response

    def calls(self, match: Match, code: int | None = None) -> Sequence[RecordedCall]:
        """Return the matching requests, oldest first; with a code, those with this status code."""
        return [_to_call(entry) for entry in self._entries(match, code)]

    def count_verbs(self, match: Match, code: int | None = None) -> Mapping[str, int]:
        """Return the number of matching requests for resources, by verb."""
        return Counter(entry.info.verb for entry in self._entries(match, code) if entry.info.is_resource)

    def _entries(self, match: Match, code: int | None) -> Sequence[_Entry]:
        entries = sorted((*self._user_entries, *self._controller_entries), key=lambda entry: entry.number)
        return [
            entry
            for entry in entries
            if code in (None, entry.code) and match.matches(entry.user, entry.agent, entry.info)
        ]

    def clear(self) -> None:
        self._user_entries.clear()
        self._controller_entries.clear()
        self.dropped_count = 0


def _to_call(entry: _Entry) -> RecordedCall:
    info = entry.info
    return RecordedCall(
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
