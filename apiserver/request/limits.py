"""Limits of requests: their number in flight, their time, and the flow schema that upstream would queue them by.

Long-running requests such as watches have neither limit; a snapshot counts as in flight, but has no deadline. Flow
schemas and priority levels do not limit requests here: as upstream, the headers of each response have their uids.
"""

import asyncio
import math
from collections.abc import Awaitable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from mockube.apimachinery import meta, status
from mockube.apimachinery.clock import Clock, Timer
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.registry.registry import OF_WRONG_TYPES, Backend
from mockube.apiserver.request.filter import Config, Handle
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, too_many_requests
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import MASTERS, User

T = TypeVar("T")

OUT_OF_TIME = "request did not complete within the allotted timeout"
LONG_VERBS = frozenset({"watch", "proxy"})
LONG_PATHS: Final = "/mockube/"
"""Requests below these paths have no deadline."""
LONG_SUBRESOURCES = frozenset({"attach", "exec", "log", "portforward", "proxy"})
READS = frozenset({"get", "list", "watch"})
FLOW_SCHEMAS: Final = GroupResource("flowcontrol.apiserver.k8s.io", "flowschemas")
PRIORITY_LEVELS: Final = GroupResource("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
_FLOW_CACHE_SIZE: Final = 4096
_ALL: Final = "*"
_SCHEMA: Final = "X-Kubernetes-Pf-Flowschema-Uid"
_LEVEL: Final = "X-Kubernetes-Pf-Prioritylevel-Uid"


class Budget(Struct, frozen=True, kw_only=True):
    """The maximum of reads and writes in flight, 0 for no limit, and the seconds that each may take."""

    reads: int = 400
    writes: int = 200
    seconds: float = 60.0
    watch_seconds: int = 1800
    """The minimum duration of a watch without timeoutSeconds; the maximum is twice as long."""


def is_long_running(info: RequestInfo) -> bool:
    """Return whether a request may stay open for hours: it does not count as in flight, and has no deadline."""
    return info.is_resource and (info.verb in LONG_VERBS or info.subresource in LONG_SUBRESOURCES)


def has_no_deadline(info: RequestInfo) -> bool:
    """Return whether a request counts as in flight, but has no deadline."""
    return not info.is_resource and info.path.startswith(LONG_PATHS)


def with_max_in_flight(handle: Handle, config: Config) -> Handle:
    """Refuse a request when the maximum of requests is in flight."""
    in_flight = config.in_flight

    def filter_(request: Request) -> Awaitable[Response]:
        info = request.info
        if not is_long_running(info):
            if not in_flight.enter(info.verb, request.user):
                return _refuse()
            request.is_in_flight = True
        return handle(request)

    return filter_


def with_written_response(handle: Handle, config: Config) -> Handle:
    """Write a large response while its request is in flight, because the client may read slowly or not at all."""
    in_flight = config.in_flight

    async def filter_(request: Request) -> Response:
        try:
            response = await handle(request)
            if response.is_large:
                await _write(response, request, config)
            return response
        finally:
            if request.is_in_flight:
                in_flight.leave(request.info.verb)

    return filter_


def with_deadline(handle: Handle, config: Config) -> Handle:
    """Cancel a request at its deadline, if it has one."""
    deadlines, most = config.deadlines, config.seconds

    def filter_(request: Request) -> Awaitable[Response]:
        if not request.is_in_flight or has_no_deadline(request.info):
            return handle(request)
        return deadlines.within(request_timeout(request.query.get("timeout", ()), most), handle(request))

    return filter_


def with_flow_headers(handle: Handle, config: Config) -> Handle:
    """Add the uids of the flow schema and the priority level of a request to its response."""
    flows = config.flows
    if flows is None:
        return handle

    def filter_(request: Request) -> Awaitable[Response]:
        info = request.info
        if info.verb == "watch" or not is_long_running(info):
            request.client.head += flows.head(request.user, info)
        return handle(request)

    return filter_


async def _refuse() -> Response:
    return too_many_requests()


async def _write(response: Response, request: Request, config: Config) -> None:
    client = request.client
    try:
        await config.deadlines.within(config.seconds, client.write(response))
    except ApiError:  # too late for an error response
        client.abort()
        request.is_aborted = True
    except ConnectionError:
        request.is_aborted = client.is_cut


class InFlight:
    """Limits the requests in flight, as --max-requests-inflight does."""

    def __init__(self, budget: Budget) -> None:
        self._limits = {True: budget.reads, False: budget.writes}
        self._counts = {True: 0, False: 0}

    def enter(self, verb: str, user: User) -> bool:
        """Count a request, and return whether it is within the limit; `leave` must follow.

        Members of system:masters are not limited: they may have to repair the server.
        """
        reads = verb in READS
        limit = self._limits[reads]
        if limit and self._counts[reads] >= limit and MASTERS not in user.groups:
            return False
        self._counts[reads] += 1
        return True

    def count(self, verb: str) -> int:
        """Return the number of reads or writes in flight."""
        return self._counts[verb in READS]

    def leave(self, verb: str) -> None:
        self._counts[verb in READS] -= 1


class Deadlines:
    """Cancels requests at their deadlines. Few are late, so all share one timer, which is set to the earliest deadline."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[asyncio.Task[object], float] = {}
        """The deadline of each running task."""
        self._timer: Timer | None = None
        self._timer_due = math.inf
        """The time of the timer: at or before the earliest deadline."""

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """Return the result of the work, or cancel it and raise Timeout; a write that was sent may still happen."""
        task = asyncio.current_task()
        assert task is not None
        due = self._due[task] = self._clock.monotonic() + seconds
        if due < self._timer_due:
            self._set_timer(due)
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._due or task.uncancel() > 0:
                raise
            raise status.timeout(OUT_OF_TIME, 0) from None
        finally:
            self._due.pop(task, None)

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due
        self._timer = self._clock.call_later(due - self._clock.monotonic(), self._on_timer)

    def _on_timer(self) -> None:
        now, self._timer, self._timer_due = self._clock.monotonic(), None, math.inf
        for task in [task for task, due in self._due.items() if due <= now]:
            del self._due[task]
            task.cancel()
        if self._due:
            self._set_timer(min(self._due.values()))


def request_timeout(timeout_values: Sequence[str], most: float) -> float:
    """Return the seconds that a request may take: those of `?timeout=`, at most `most`."""
    if not timeout_values or not timeout_values[0]:
        return most
    try:
        seconds = parse_duration(timeout_values[0]) / 1e9
    except DurationError as error:
        raise status.BadRequest(f"invalid timeout specified in the request URL - {error}") from error
    return seconds if 0 < seconds < most else most


class _Schema(NamedTuple):
    rules: Sequence[ReadOnlyTree]
    head: str
    """The header lines with the uids of the schema and the level."""


class Flows:
    """Finds the flow schema of a request in the watch cache.

    A request is matched once for each user and kind of request, until a schema or a level changes.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        layout, rows = backend.layout, backend.rows
        self._caches = [
            backend.watch_cache.resource_cache(layout.resource_cache(rows[name]))
            for name in (FLOW_SCHEMAS, PRIORITY_LEVELS)
        ]
        self._revisions: tuple[int, int] | None = None
        self._schemas: Sequence[_Schema] = ()
        self._heads: dict[Any, str] = {}

    def head(self, user: User, info: RequestInfo) -> str:
        """Return the header lines with the uids of the schema and the priority level of a request."""
        schemas, levels = self._caches
        newest = schemas.newest, levels.newest
        if newest != self._revisions:
            self._revisions, self._schemas, self._heads = newest, self._sorted_schemas(), {}
        key = (
            *(user.name, tuple(user.groups), info.verb, info.group, info.resource, info.subresource),
            info.namespace if info.is_resource else info.path,
        )
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= _FLOW_CACHE_SIZE:
                self._heads.clear()
            head = self._heads[key] = self._find(user, info)
        return head

    def _find(self, user: User, info: RequestInfo) -> str:
        for schema in self._schemas:
            if any(_matches(rule, user, info) for rule in schema.rules):
                return schema.head
        return ""

    def _sorted_schemas(self) -> Sequence[_Schema]:
        """Return the schemas whose level exists, in order of precedence."""
        schemas, levels = self._caches
        uids = {meta.name(tree): meta.uid(tree) for tree in (stored.tree() for stored in levels)}
        ranked_schemas = []
        for stored in schemas:
            try:
                tree = stored.tree()
                spec, name = tree["spec"], meta.name(tree)
                level = uids.get(spec["priorityLevelConfiguration"]["name"])
                if level is not None:
                    head = f"{_SCHEMA}: {meta.uid(tree)}\r\n{_LEVEL}: {level}\r\n"
                    schema = _Schema(spec.get("rules") or (), head)
                    ranked_schemas.append((spec.get("matchingPrecedence", 0), name, schema))
            except OF_WRONG_TYPES as error:
                self._backend.watch_cache.report_malformed(stored, error)
        return [schema for _, _, schema in sorted(ranked_schemas, key=lambda ranked: ranked[:2])]


def _matches(rule: ReadOnlyTree, user: User, info: RequestInfo) -> bool:
    if not any(_includes_user(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info.is_resource:
        return any(_includes_resource(each, info) for each in rule.get("resourceRules") or ())
    return any(_includes_url(each, info) for each in rule.get("nonResourceRules") or ())


def _includes_user(subject: ReadOnlyTree, user: User) -> bool:
    """Whether the subject includes the user; validation ensures one of the three members."""
    if named := subject.get("user"):
        return named["name"] in (_ALL, user.name)
    if group := subject.get("group"):
        return group["name"] == _ALL or group["name"] in user.groups
    account = subject.get("serviceAccount") or {}
    prefix = f"system:serviceaccount:{account.get('namespace')}:"
    if account.get("name") == _ALL:
        return user.name.startswith(prefix)
    return user.name == f"{prefix}{account.get('name')}"


def _contains(values: Sequence[str] | None, value: str) -> bool:
    return values is not None and (value in values or _ALL in values)


def _includes_resource(rule: ReadOnlyTree, info: RequestInfo) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (_contains(rule.get("verbs"), info.verb) and _contains(rule.get("apiGroups"), info.group)):
        return False
    if not _contains(rule.get("resources"), resource):
        return False
    return (
        _contains(rule.get("namespaces"), info.namespace)
        if info.namespace
        else bool(rule.get("clusterScope"))
    )


def _includes_url(rule: ReadOnlyTree, info: RequestInfo) -> bool:
    urls = rule.get("nonResourceURLs") or ()
    if not _contains(rule.get("verbs"), info.verb):
        return False
    folders = (url.rstrip(_ALL) for url in urls if url.endswith("/*"))
    return _contains(urls, info.path) or any(map(info.path.startswith, folders))
