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
from itertools import chain, islice
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from mockube.apimachinery.groups import CONTROL
from mockube.apiserver.request.limits import WRITES, is_long_running
from mockube.apiserver.request.request import Request
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.storage.journal import MAX_TEXT, Journal
from mockube.component_base.clock import Clock
from mockube.etcd.kv import Revision

from .access import Access, access_of
from .bodies import DROPPED, NO_BODY, KeptBody, kept_body
from .matching import Candidate, Match, Matcher, is_controller
from .quiet import QuietTime

MAX_CALLS: Final = 10_000
"""The number of recorded calls of users, and of controllers; older calls are dropped."""
HISTORY: Final = 2_000
"""The number of publications that a watch may be behind."""
OWN_RESOURCE: Final = "requests"
"""The resource of the recorded requests: its own requests are not recorded, or a watch would feed itself."""
MAX_PROBLEM: Final = 4_096
"""The bytes of the longest Status of an error that is kept."""
MAX_PROBLEMS: Final = 500
"""The newest errors whose Status is kept, of controllers and of other users."""
_ERRORS_FROM: Final = 400
_NOT_FOUND: Final = 404


def is_error(code: int | None) -> bool:
    return code is not None and code >= _ERRORS_FROM


class RecordedCall(Struct, frozen=True, kw_only=True):
    """One recorded request. `code` and `seconds` are None until there is a response, as for a watch in progress.

    Of a request that has ended without one, because its client left or a fault has cut its connection, `code` is None.
    """

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
    """The path and query, as sent; of long texts, the beginning is recorded."""
    code: int | None
    seconds: float | None

    def __str__(self) -> str:
        code = self.code or ("..." if self.seconds is None else "---")
        return f"{self.at:%H:%M:%S.%f} {code} {self.verb} {self.uri} ({self.user}, {self.agent})"


class _Outcome(Struct, frozen=True, gc=False):
    """What is kept of a request that has ended."""

    info: RequestInfo
    user: str
    agent: str
    uri: str
    audit_id: str
    code: int | None
    seconds: float
    received: int
    """The bytes of the body that the client sent."""
    sent: int
    """The bytes of the body of the response."""
    revision: Revision
    """The last revision that the request has written; 0 if it is not known to have written one."""
    fault: str
    is_answered_by_fault: bool
    is_cut: bool
    """Whether that fault has cut the connection."""
    access: Access
    problem: bytes
    """The Status of an error as JSON; b"" of a long or old one."""
    body: KeptBody


class RecordedRequest(Struct, eq=False):
    """A request, which is kept while it is in progress, and its outcome afterwards. Every request makes one: it is small."""

    in_progress: Request | None
    """None when it has ended."""
    number: int
    at: datetime
    ended: _Outcome | None = None
    version: int = 0
    """The version of the last publication; 0 before it."""
    first_version: int = 0
    """The version of the first one."""

    @property
    def outcome(self) -> _Outcome:
        """What is known of the request: without a code while it is in progress, and if it ended without a response."""
        return self.ended or _outcome_of(self.request, None, 0.0, 0, 0, problem=b"")

    @property
    def request(self) -> Request:
        """The request while it is in progress."""
        assert self.in_progress is not None
        return self.in_progress

    @property
    def has_ended(self) -> bool:
        return self.ended is not None


def _outcome_of(  # noqa: PLR0913 - each is a part of the outcome
    request: Request,
    code: int | None,
    seconds: float,
    sent: int,
    revision: Revision,
    *,
    problem: bytes,
    body: KeptBody = NO_BODY,
) -> _Outcome:
    context = request.context
    return _Outcome(
        _shortened(request.info),
        request.user.name[:MAX_TEXT],
        (request.user_agent if context is None else context.user_agent)[:MAX_TEXT],
        request.uri[:MAX_TEXT],
        request.audit_id[:MAX_TEXT],
        code,
        seconds,
        0 if context is None else len(context.body.data),
        sent,
        revision,
        request.fault,
        request.is_answered_by_fault,
        request.is_cut,
        access_of(request),
        problem if len(problem) <= MAX_PROBLEM else b"",
        body,
    )


def _shortened(info: RequestInfo) -> RequestInfo:
    """Return the attributes of a request with the beginnings of long texts, all of which are parts of its path."""
    if len(info.path) <= MAX_TEXT:
        return info
    texts = {name: text[:MAX_TEXT] for name, text in asdict(info).items() if isinstance(text, str)}
    return replace(info, **texts, rest=())


class _KeptBodies:
    """The newest requests whose bodies are kept, up to a number of bytes, and of recorded requests."""

    def __init__(self, max_bytes: int, max_requests: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._max_requests = max_requests
        self._requests: deque[tuple[RecordedRequest, int]] = deque()

    def add(self, recorded: RecordedRequest) -> None:
        """Keep the body of a request that has ended, and drop the oldest bodies for it."""
        body = recorded.outcome.body.body
        if body is None:
            return
        self._requests.append((recorded, len(body.data)))
        self._bytes += len(body.data)
        while self._bytes > self._max_bytes or len(self._requests) > self._max_requests:
            oldest, size = self._requests.popleft()
            self._bytes -= size
            oldest.ended = replace(oldest.outcome, body=KeptBody(omitted=DROPPED))

    def clear(self) -> None:
        self._requests.clear()
        self._bytes = 0


class RequestRecorder:
    """Records every request but those for recorded requests. The observer of requests calls it."""

    def __init__(
        self,
        clock: Clock,
        *,
        max_calls: int = MAX_CALLS,
        max_body_bytes: int = 0,
        first_version: int = 0,
        journal: Journal | None = None,
        quiet_time: QuietTime | None = None,
    ) -> None:
        """`max_body_bytes` is of the bodies of users, and of those of controllers; `journal` knows the revisions that requests have written;
        `quiet_time` notes the requests that arrive.
        """
        self._quiet_time = quiet_time
        self._clock = clock
        self._journal = journal
        self._count = 0
        self._user_requests: deque[RecordedRequest] = deque(maxlen=max_calls)
        self._controller_requests: deque[RecordedRequest] = deque(maxlen=max_calls)
        self._problems: Mapping[bool, deque[RecordedRequest]] = {
            of_controllers: deque(maxlen=MAX_PROBLEMS) for of_controllers in (False, True)
        }
        """The requests whose Status is kept, of controllers by True."""
        self._max_body_bytes = max_body_bytes
        self._bodies: Mapping[bool, _KeptBodies] = {
            of_controllers: _KeptBodies(max_body_bytes, max_calls) for of_controllers in (False, True)
        }
        self.in_progress = 0
        """The number of requests in progress, without streams and without those to the group of control."""
        self.dropped_count = 0
        """The number of dropped calls, without those of controllers."""
        self._dropped_until: dict[bool, datetime] = {}
        """When the last dropped call had arrived, of controllers by True, of other users by False."""
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
        if self._quiet_time is not None:
            self._quiet_time.note(info)
        self._count += 1
        recorded = RecordedRequest(request, self._count, self._clock.now())
        of_controllers = is_controller(request.user.name)
        ring = self._controller_requests if of_controllers else self._user_requests
        if len(ring) == ring.maxlen:
            self._dropped_until[of_controllers] = ring[0].at
            self.dropped_count += not of_controllers
        ring.append(recorded)
        if is_long_running(info):
            self._publish(recorded)
        elif info.group != CONTROL:
            self.in_progress += 1
        return recorded

    def end(
        self,
        recorded: RecordedRequest,
        code: int | None,
        sent: int | None,
        seconds: float,
        problem: bytes = b"",
    ) -> None:
        """Note how a request ended, after some seconds of the machine; None as code of one that has no response.

        `problem` is the Status of an error.
        """
        request, revision = recorded.request, 0
        if not recorded.version and request.info.group != CONTROL:
            self.in_progress -= 1
        may_be_written = code is not None or request.is_cut
        is_written = request.info.verb in WRITES and may_be_written and not is_error(code)
        if is_written and self._journal is not None:
            revision = self._journal.revision_of(request.audit_id)
        problem = problem if is_error(code) else b""
        body = NO_BODY
        if self._max_body_bytes and request.context is not None:
            body = kept_body(request.info, request.context.body)
        recorded.ended = _outcome_of(request, code, seconds, sent or 0, revision, problem=problem, body=body)
        recorded.in_progress = None
        if body.body is not None:
            self._bodies[is_controller(recorded.outcome.user)].add(recorded)
        if recorded.ended.problem:
            self._limit_problems(recorded)
        self._publish(recorded)

    def _limit_problems(self, recorded: RecordedRequest) -> None:
        """Drop the Status of an old error for that of a new one: a client may fail all the time."""
        newest = self._problems[is_controller(recorded.outcome.user)]
        if len(newest) == MAX_PROBLEMS:
            oldest = newest[0]
            oldest.ended = replace(oldest.outcome, problem=b"")
        newest.append(recorded)

    def _publish(self, recorded: RecordedRequest) -> None:
        self.newest = recorded.version = self.newest + 1
        recorded.first_version = recorded.first_version or recorded.version
        if len(self._published) == HISTORY:
            self.oldest = self._published[0][0]
        self._published.append((recorded.version, recorded))
        for watcher in self.watchers:
            watcher.set()

    def dropped_until(self, user: str) -> datetime | None:
        """Return when the last dropped call of users like this one had arrived; None if none was dropped."""
        return self._dropped_until.get(is_controller(user))

    def refused(self) -> Sequence[RecordedRequest]:
        """Return the requests of users that ended with an error other than 404, which clients cause by looking, or were cut; the newest first."""
        ended = (each for each in reversed(self._user_requests) if each.ended is not None)
        return [each for each in ended if _is_refused(each.outcome)]

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

    def find_audited(self, audit_id: str) -> RecordedRequest | None:
        """Return the newest published request with an audit id."""
        audit_id = audit_id[:MAX_TEXT]
        newest = chain(reversed(self._user_requests), reversed(self._controller_requests))
        return next((each for each in newest if each.version and each.outcome.audit_id == audit_id), None)

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
        infos = (recorded.outcome.info for recorded in self._matching(match, code))
        return Counter(info.verb for info in infos if info.is_resource)

    def _matching(self, match: Match, code: int | None) -> Sequence[RecordedRequest]:
        matcher = Matcher(match)
        return [recorded for recorded in self._all() if _is_matching(recorded.outcome, matcher, code)]

    def clear(self) -> None:
        self._user_requests.clear()
        self._controller_requests.clear()
        self._published.clear()
        for newest in self._problems.values():
            newest.clear()
        for bodies in self._bodies.values():
            bodies.clear()
        self._dropped_until = dict.fromkeys((False, True), self._clock.now())
        self.dropped_count, self.oldest = 0, self.newest


def _is_refused(outcome: _Outcome) -> bool:
    has_failed = outcome.is_cut or (is_error(outcome.code) and outcome.code != _NOT_FOUND)
    return has_failed and outcome.info.group != CONTROL


def _number(recorded: RecordedRequest) -> int:
    return recorded.number


def _version(published: tuple[int, RecordedRequest]) -> int:
    return published[0]


def _is_matching(outcome: _Outcome, matcher: Matcher, code: int | None) -> bool:
    candidate = Candidate(outcome.user, outcome.agent, outcome.info)
    return code in (None, outcome.code) and matcher.matches(candidate)


def _to_call(recorded: RecordedRequest) -> RecordedCall:
    outcome = recorded.outcome
    info = outcome.info
    return RecordedCall(
        at=recorded.at,
        user=outcome.user,
        agent=outcome.agent,
        verb=info.verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        uri=outcome.uri,
        code=outcome.code,
        seconds=outcome.seconds if recorded.has_ended else None,
    )
