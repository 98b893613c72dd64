"""The recorder of the last requests to the server. Requests of controllers and of other users have separate limits."""

import warnings
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apiserver.request.hooks import Proceed
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import RequestInfo
from mockube.component_base.clock import Clock

from .matching import CONTROLLERS, Matcher

MAX_CALLS: Final = 10_000
"""The number of recorded calls of users, and of controllers; older calls are dropped."""

NO_VERBS: Final[Mapping[str, int]] = {}


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


class Calls(list[RecordedCall]):
    """The calls that match the criteria, oldest first. `other_verbs` are the numbers of those that match all other criteria."""

    __slots__ = ("_other_verbs", "_verbs")

    def __init__(
        self,
        calls: Iterable[RecordedCall] = (),
        *,
        verbs: Sequence[str] = (),
        other_verbs: Mapping[str, int] = NO_VERBS,
    ) -> None:
        super().__init__(calls)
        self._verbs = verbs
        self._other_verbs = other_verbs

    def __repr__(self) -> str:
        """Return the calls in lines; none are explained by the calls with other verbs, as an apply is a patch."""
        if self or not self._other_verbs:
            return "".join(f"\n  {call}" for call in self) or "no calls"
        counts = ", ".join(f"{count} {verb}" for verb, count in sorted(self._other_verbs.items()))
        is_apply = "patch" in self._other_verbs and {"create", "update"} & {*self._verbs}
        reason = " (an apply is a patch)" if is_apply else ""
        return f"no calls with the verb {' or '.join(self._verbs)}, but with others: {counts}{reason}"


class CallsDropped(UserWarning):
    """More calls were made than are recorded: the oldest are missing from the result."""


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
    """Middleware that records every request."""

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

    def calls(self, matcher: Matcher, code: int | None = None) -> Calls:
        entries = self._entries(matcher, code)
        if entries or not matcher.verbs:
            return Calls(_to_calls(entries))
        others = self._entries(replace(matcher, verbs=()), code)
        counts = Counter(entry.info.verb for entry in others if entry.info.is_resource)
        return Calls(verbs=matcher.verbs, other_verbs=counts)

    def _entries(self, matcher: Matcher, code: int | None) -> Sequence[_Entry]:
        entries = sorted((*self._user_entries, *self._controller_entries), key=lambda entry: entry.number)
        return [
            entry
            for entry in entries
            if code in (None, entry.code) and matcher.matches(entry.user, entry.agent, entry.info)
        ]

    def warn_of_dropped_calls(self) -> None:
        """Warn if calls were dropped: a dropped call looks like a call that was not made."""
        if self.dropped_count:
            warnings.warn(
                f"the oldest {self.dropped_count} calls were dropped: call clear_calls() before the calls to count",
                CallsDropped,
                stacklevel=3,
            )

    def clear(self) -> None:
        self._user_entries.clear()
        self._controller_entries.clear()
        self.dropped_count = 0


def _to_calls(entries: Iterable[_Entry]) -> Iterable[RecordedCall]:
    for entry in entries:
        info = entry.info
        yield RecordedCall(
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
