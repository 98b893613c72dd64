"""The recorder of the last requests to the server. Requests of controllers and of other users have separate limits.

A request is recorded when it arrives, for `calls`, and published when it ends, or when its stream begins: from then on it is an
object of the kind Request. Its version counts the publications.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Final

from msgspec import Struct

from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.request.limits import is_long_running
from mockube.apiserver.request.request import Request
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.storage.journal import MAX_TEXT, Journal
from mockube.component_base.clock import Clock
from mockube.etcd.kv import Revision

from .matching import Match, is_controller

MAX_CALLS: Final = 10_000
"""The number of recorded calls of users, and of controllers; older calls are dropped."""
HISTORY: Final = 2_000
"""The number of publications that a watch may be behind."""
OWN_RESOURCE: Final = "requests"
"""The resource of the recorded requests: its own requests are not recorded, or a watch would feed itself."""
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_ERRORS_FROM: Final = 400


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


class RecordedRequest:
    """A request, while it is in progress and afterwards."""

    __slots__ = (
        "_request",
        "_user",
        "agent",
        "at",
        "audit_id",
        "code",
        "fault",
        "first_version",
        "info",
        "number",
        "received",
        "revision",
        "seconds",
        "sent",
        "started",
        "uri",
        "version",
    )

    def __init__(self, request: Request, number: int, at: datetime, started: float) -> None:
        self._request: Request | None = request
        self._user = ""
        self.number = number
        self.at = at
        self.started = started
        self.info: RequestInfo = request.info
        self.agent = request.user_agent[:MAX_TEXT]
        self.uri = request.uri
        self.audit_id = request.audit_id
        self.code: int | None = None
        self.seconds: float | None = None
        self.received = 0
        """The bytes of the body that the client sent."""
        self.sent = 0
        """The bytes of the body of the response."""
        self.revision: Revision = 0
        """The last revision that the request has written; 0 if it is not known to have written one."""
        self.fault = ""
        self.version = self.first_version = 0
        """The versions of the last and the first publication; 0 before it."""

    @property
    def user(self) -> str:
        """The name of the user: of the impersonated one, as soon as it is known."""
        return self._user if self._request is None else self._request.user.name

    def end(self, code: int | None, seconds: float, sent: int | None) -> None:
        request = self._request
        assert request is not None
        self._user, self._request = request.user.name, None
        self.code, self.seconds, self.sent = code, seconds, sent or 0
        self.fault = request.fault
        context = request.context
        self.received = 0 if context is None else len(context.body.data)


class RequestRecorder:
    """Records every request but those for recorded requests. The observer of requests calls it."""

    def __init__(
        self,
        clock: Clock,
        *,
        max_calls: int = MAX_CALLS,
        first_version: int = 0,
        journal: Journal | None = None,
    ) -> None:
        """`journal` knows the revisions that requests have written."""
        self._clock = clock
        self._journal = journal
        self._count = 0
        self._user_requests: deque[RecordedRequest] = deque(maxlen=max_calls)
        self._controller_requests: deque[RecordedRequest] = deque(maxlen=max_calls)
        self.dropped_count = 0
        """The number of dropped calls, without those of controllers."""
        self.newest = self.oldest = first_version
        """The version of the last publication, and of the last one that watches do not get any more."""
        self._published: deque[tuple[int, RecordedRequest]] = deque(maxlen=HISTORY)
        """The newest publications with their versions, for watches."""
        self.watchers: set[asyncio.Event] = set()
        """Set at each publication."""

    def begin(self, request: Request) -> RecordedRequest | None:
        """Record a request; None if it is not recorded."""
        info = request.info
        if info.group == CONTROL and info.resource == OWN_RESOURCE:
            return None
        self._count += 1
        recorded = RecordedRequest(request, self._count, self._clock.now(), self._clock.real.monotonic())
        ring = self._controller_requests if is_controller(recorded.user) else self._user_requests
        if ring is self._user_requests and len(ring) == ring.maxlen:
            self.dropped_count += 1
        ring.append(recorded)
        if is_long_running(info):
            self._publish(recorded)
        return recorded

    def end(self, recorded: RecordedRequest, code: int | None, sent: int | None) -> None:
        """Note how a request ended; None as code of one that has no response."""
        recorded.end(code, self._clock.real.monotonic() - recorded.started, sent)
        is_written = recorded.info.verb in _WRITES and code is not None and code < _ERRORS_FROM
        if is_written and self._journal is not None:
            recorded.revision = self._journal.revision_of(recorded.audit_id)
        self._publish(recorded)

    def _publish(self, recorded: RecordedRequest) -> None:
        self.newest = recorded.version = self.newest + 1
        recorded.first_version = recorded.first_version or recorded.version
        if len(self._published) == HISTORY:
            self.oldest = self._published[0][0]
        self._published.append((recorded.version, recorded))
        for watcher in self.watchers:
            watcher.set()

    @property
    def count(self) -> int:
        """The number of requests that have arrived."""
        return self._count

    def find(self, number: int) -> RecordedRequest | None:
        """Return the published request with a number."""
        for ring in (self._user_requests, self._controller_requests):
            position = bisect_left(ring, number, key=_number)
            if position < len(ring) and ring[position].number == number:
                return ring[position] if ring[position].version else None
        return None

    def published(self) -> Sequence[RecordedRequest]:
        """Return all published requests, in the order in which they arrived."""
        return [recorded for recorded in self._all() if recorded.version]

    def published_since(self, version: int) -> Sequence[RecordedRequest]:
        """Return the requests that were published after a version, which must not be before `oldest`; each once."""
        begin = bisect_right(self._published, version, key=_version)
        return [recorded for at, recorded in islice(self._published, begin, None) if at == recorded.version]

    def _all(self) -> Iterator[RecordedRequest]:
        return merge(self._user_requests, self._controller_requests, key=_number)

    def calls(self, match: Match, code: int | None = None) -> Sequence[RecordedCall]:
        """Return the matching requests, oldest first; with a code, those with this status code."""
        return [_to_call(recorded) for recorded in self._matching(match, code)]

    def count_verbs(self, match: Match, code: int | None = None) -> Mapping[str, int]:
        """Return the number of matching requests for resources, by verb."""
        return Counter(
            recorded.info.verb for recorded in self._matching(match, code) if recorded.info.is_resource
        )

    def _matching(self, match: Match, code: int | None) -> Sequence[RecordedRequest]:
        return [
            recorded
            for recorded in self._all()
            if code in (None, recorded.code) and match.matches(recorded.user, recorded.agent, recorded.info)
        ]

    def clear(self) -> None:
        self._user_requests.clear()
        self._controller_requests.clear()
        self._published.clear()
        self.dropped_count, self.oldest = 0, self.newest


def _number(recorded: RecordedRequest) -> int:
    return recorded.number


def _version(published: tuple[int, RecordedRequest]) -> int:
    return published[0]


def _to_call(recorded: RecordedRequest) -> RecordedCall:
    info = recorded.info
    return RecordedCall(
        at=recorded.at,
        user=recorded.user,
        agent=recorded.agent,
        verb=info.verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        uri=recorded.uri,
        code=recorded.code,
        seconds=recorded.seconds,
    )
