"""Requests, and their authentication, impersonation and authorization: upstream's metrics under upstream's names.

Counting is on the path of every request, so it is a few additions to plain numbers; the metric families are built from
them at each scrape. Labels come from the rows of resources and from a fixed set of words, never from values that a client
sent, so that no client can create many of them.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.request_info import CONNECT_SUBRESOURCES, RequestInfo
from mockube.component_base.exposition import cumulative_buckets

_MILLISECONDS = (5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500)
_SECONDS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
BUCKETS = (*(limit / 1000 for limit in _MILLISECONDS), *map(float, _SECONDS))
"""In seconds, as upstream."""
SIZES: Final = tuple(10.0**power for power in range(3, 10))
"""In bytes, for responses to reads."""
_REMOVAL: Final = re.compile(r"unavailable in v(\d+\.\d+)\+")

_READ_ONLY = frozenset({"GET", "LIST", "WATCH"})
_LONG_RUNNING: Final = frozenset({"WATCH", "CONNECT"})
_KNOWN_VERBS = _READ_ONLY | {"CONNECT", "POST", "PUT", "PATCH", "APPLY", "DELETE"}
_VERBS = {"create": "POST", "update": "PUT", "deletecollection": "DELETE"}


SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, DENIED, UNDECIDED = "allowed", "denied", "no-opinion"
_ATTEMPT_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
_COUNTED_USERS: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)

Decisions = Callable[[], Mapping[tuple[str, str], tuple[int, int]]]
"""By type and name of an authorizer, the numbers of requests that it allowed and denied."""
Attempt: TypeAlias = tuple[str, str]
"""A mode of impersonation, and `allowed` or `denied`."""


class Labels(NamedTuple):
    """The labels under which a request is counted."""

    verb: str
    dry_run: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""
    component: str = "apiserver"


def labels(info: RequestInfo, resource: Resource | None, *, dry_run: bool, applies: bool) -> Labels:
    """Return the labels of a request; only the verb if it is not for a resource of this server."""
    return (_labels_usual if len(info.path) <= _USUAL_LENGTH else _labels)(info, resource, dry_run, applies)


def _labels(info: RequestInfo, resource: Resource | None, dry_run: bool, applies: bool) -> Labels:  # noqa: FBT001 - remembered by position
    verb = "APPLY" if applies else _VERBS.get(info.verb, info.verb.upper())
    if info.subresource in CONNECT_SUBRESOURCES:
        verb = "CONNECT"
    if verb not in _KNOWN_VERBS:
        verb = "other"
    if resource is None:
        return Labels(verb=verb)
    subresource = info.subresource if resource.subresource(info.subresource) else ""
    return Labels(
        verb=verb,
        dry_run="All" if dry_run else "",
        group=resource.group,
        version=resource.version,
        resource=resource.name,
        subresource=subresource,
        scope=_scope(info),
    )


def _scope(info: RequestInfo) -> str:
    """Return the scope of a request; a create is for one object, although its path has no name."""
    if info.name or info.verb == "create":
        return "resource"
    return "namespace" if info.namespace else "cluster"


# Most requests have one of a few paths; long paths are rare, and are not cached, to limit the memory.
_USUAL_LENGTH: Final = 255
_labels_usual = lru_cache(maxsize=4096)(_labels)


class RequestCounts:
    """The numbers of requests with the same labels."""

    __slots__ = (
        "buckets",
        "bytes",
        "codes",
        "is_long_running",
        "is_read",
        "kind",
        "labels",
        "sizes",
        "total",
    )

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.is_long_running = labels.verb in _LONG_RUNNING
        self.is_read = labels.verb in ("GET", "LIST")
        self.kind = "readOnly" if labels.verb in _READ_ONLY else "mutating"
        self.codes: Counter[int] = Counter()
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.total = 0.0
        self.sizes = [0] * (len(SIZES) + 1)
        self.bytes = 0


class RequestMetrics(Collector):
    """Counts requests, and builds the metric families from the counts."""

    def __init__(self, find: Callable[[str, str, str], Resource | None]) -> None:
        self._find = find
        self._counts: dict[Labels, RequestCounts] = {}
        self._in_flight = {"mutating": 0, "readOnly": 0}
        self._long_running: Counter[Labels] = Counter()
        self._aborted: Counter[Labels] = Counter()
        self._terminated: Counter[tuple[str, str]] = Counter()

    def begin(self, labels: Labels) -> RequestCounts:
        """Count a request as in flight; return the counts to pass to `end`."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = RequestCounts(labels)
        if counts.is_long_running:
            self._long_running[labels] += 1
        else:
            self._in_flight[counts.kind] += 1
        return counts

    def end(self, counts: RequestCounts, code: int | None, seconds: float, size: int) -> None:
        """Count the end of a request, which has no code if it was aborted."""
        if counts.is_long_running:
            self._long_running[counts.labels] -= 1
        else:
            self._in_flight[counts.kind] -= 1
        if code is None:
            return
        counts.codes[code] += 1
        counts.buckets[bisect_left(BUCKETS, seconds)] += 1
        counts.total += seconds
        if counts.is_read:
            counts.sizes[bisect_left(SIZES, size)] += 1
            counts.bytes += size

    def abort(self, counts: RequestCounts) -> None:
        """Count a response that was aborted after its beginning because it took too long or was not read."""
        self._aborted[counts.labels] += 1

    def terminate_watch(self, resource: Resource) -> None:
        """Count a watch that was closed because the client did not read."""
        self._terminated[resource.group, resource.name] += 1

    def collect(self) -> Iterable[Metric]:
        yield self._collect_totals()
        yield self._collect_durations()
        yield self._collect_sizes()
        yield self._collect_deprecated()
        yield self._collect_in_flight()
        yield self._collect_long_running()
        yield self._collect_aborted()
        yield self._collect_terminated()

    def _collect_totals(self) -> Metric:
        family = CounterMetricFamily(
            "apiserver_request",
            "Requests by verb, resource, scope and code.",
            labels=[*Labels._fields, "code"],
        )
        for labels, counts in self._counts.items():
            for code, count in counts.codes.items():
                family.add_metric([*labels, str(code)], count)
        return family

    def _collect_durations(self) -> Metric:
        family = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "How long requests took.", labels=Labels._fields
        )
        for labels, counts in self._counts.items():
            if any(counts.buckets):
                family.add_metric(list(labels), cumulative_buckets(BUCKETS, counts.buckets), counts.total)
        return family

    def _collect_sizes(self) -> Metric:
        names = [name for name in Labels._fields if name != "dry_run"]
        family = HistogramMetricFamily(
            "apiserver_response_sizes", "The bytes of responses to reads.", labels=names
        )
        for labels, counts in self._counts.items():
            if any(counts.sizes):
                values = [getattr(labels, name) for name in names]
                family.add_metric(values, cumulative_buckets(SIZES, counts.sizes), counts.bytes)
        return family

    def _collect_deprecated(self) -> Metric:
        """Return the deprecated APIs that were requested; the release that removes one is in its warning."""
        names = ("group", "version", "resource", "subresource", "removed_release")
        family = GaugeMetricFamily(
            "apiserver_requested_deprecated_apis", "Deprecated APIs that were requested.", labels=names
        )
        for group, version, name, subresource in {labels[2:6] for labels in self._counts if labels.resource}:
            resource = self._find(group, version, name)
            if resource is not None and resource.deprecated:
                removal = _REMOVAL.search(resource.deprecated)
                family.add_metric([group, version, name, subresource, removal[1] if removal else ""], 1)
        return family

    def _collect_in_flight(self) -> Metric:
        family = GaugeMetricFamily(
            "apiserver_current_inflight_requests",
            "Requests in flight.",
            labels=["request_kind"],
        )
        for kind, count in self._in_flight.items():
            family.add_metric([kind], count)
        return family

    def _collect_long_running(self) -> Metric:
        names = [name for name in Labels._fields if name != "dry_run"]
        text = "Watches and connections to nodes and pods that are open."
        family = GaugeMetricFamily("apiserver_longrunning_requests", text, labels=names)
        for labels, count in self._long_running.items():
            family.add_metric([getattr(labels, name) for name in names], count)
        return family

    def _collect_aborted(self) -> Metric:
        names = ("verb", "group", "version", "resource", "subresource", "scope")
        family = CounterMetricFamily(
            "apiserver_request_aborts", "Responses that were aborted before their end.", labels=names
        )
        for labels, count in self._aborted.items():
            family.add_metric([getattr(labels, name) for name in names], count)
        return family

    def _collect_terminated(self) -> Metric:
        family = CounterMetricFamily(
            "apiserver_terminated_watchers",
            "Watches that were closed because the client did not read.",
            labels=["group", "resource"],
        )
        for (group, resource), count in self._terminated.items():
            family.add_metric([group, resource], count)
        return family


class Durations:
    """A histogram of durations. The path of every write adds to `quick` and `total` directly."""

    __slots__ = ("_buckets", "quick", "slow", "total")

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets = buckets
        self.quick = 0
        """The number of durations in the first bucket."""
        self.slow = [0] * len(buckets)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        if seconds <= self._buckets[0]:
            self.quick += 1
        else:
            self.slow[bisect_left(self._buckets, seconds) - 1] += 1
        self.total += seconds

    @property
    def number(self) -> int:
        """The number of all durations."""
        return self.quick + sum(self.slow)

    def cumulative(self) -> list[tuple[str, float]]:
        """Return the number of durations up to each bucket's bound."""
        return cumulative_buckets(self._buckets, (self.quick, *self.slow))


# --- access: authentication, impersonation and authorization


class AccessMetrics(Collector):
    def __init__(self, decisions: Decisions, monotonic: Callable[[], float]) -> None:
        self._decisions = decisions
        self.monotonic = monotonic
        self.authentication = {result: Durations(_ATTEMPT_BUCKETS) for result in (SUCCESS, FAILURE, ERROR)}
        self.authorization = {
            result: Durations(_ATTEMPT_BUCKETS) for result in (ALLOWED, DENIED, UNDECIDED, ERROR)
        }
        self.impersonation = ImpersonationMetrics()
        self._users: Counter[str] = Counter()

    def record_user(self, user: str, began: float) -> None:
        """Count an authenticated user under one of few names."""
        self._users[user if user in _COUNTED_USERS else "email_id" if "@" in user else "other"] += 1
        self.authentication[SUCCESS].observe(self.monotonic() - began)

    def collect(self) -> Iterable[Metric]:
        yield counter(
            "authenticated_user_requests", "Authenticated requests, by username.", "username", self._users
        )
        yield from _attempts("authentication", "authentication_attempts", self.authentication)
        yield from _attempts("authorization", "authorization_attempts_total", self.authorization)
        decided = CounterMetricFamily(
            "apiserver_authorization_decisions",
            "Decisions of authorizers, by their type and name.",
            labels=["type", "name", "decision"],
        )
        for (sort, name), counts in self._decisions().items():
            for decision, count in zip((ALLOWED, DENIED), counts, strict=True):
                if count:
                    decided.add_metric([sort, name, decision], count)
        yield decided
        yield from self.impersonation.collect()


class ImpersonationMetrics(Collector):
    def __init__(self) -> None:
        self._attempts: dict[Attempt, Durations] = {}
        self._checks: dict[Attempt, Durations] = {}

    def note(self, attempt: Attempt, seconds: float, checks: Iterable[tuple[Attempt, float]]) -> None:
        """Observe an attempt, and its authorization checks."""
        self._attempts.setdefault(attempt, Durations(_ATTEMPT_BUCKETS)).observe(seconds)
        for check, check_seconds in checks:
            self._checks.setdefault(check, Durations(_ATTEMPT_BUCKETS)).observe(check_seconds)

    def collect(self) -> Iterable[Metric]:
        yield from _impersonations("attempts", "impersonation attempts", self._attempts)
        yield from _impersonations("authorization_attempts", "authorization checks of them", self._checks)


def _impersonations(
    name: str, subject: str, durations_by_attempt: Mapping[Attempt, Durations]
) -> Iterable[Metric]:
    labels = ["mode", "decision"]
    name = f"apiserver_impersonation_{name}"
    counted = CounterMetricFamily(name, f"Total number of {subject}.", labels=labels)
    latency = HistogramMetricFamily(f"{name}_duration_seconds", f"Latency of {subject}.", labels=labels)
    for attempt, durations in durations_by_attempt.items():
        counted.add_metric(attempt, durations.number)
        latency.add_metric(attempt, durations.cumulative(), durations.total)
    yield counted
    yield latency


def _attempts(subsystem: str, name: str, durations_by_result: Mapping[str, Durations]) -> Iterable[Metric]:
    counts = {result: durations.number for result, durations in durations_by_result.items()}
    yield counter(name, f"Attempts of {subsystem}, by result.", "result", counts)
    yield histogram(
        f"{subsystem}_duration_seconds",
        f"How long {subsystem} took, by result.",
        "result",
        durations_by_result,
    )


def counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    """Return a counter whose name need not end in _total, as some of upstream's do not."""
    family = Metric(name.removesuffix("_total"), text, "counter")
    for value, count in counts.items():
        if count:
            family.add_sample(name, {label: value}, count)
    return family


def histogram(name: str, text: str, label: str, durations_by_label: Mapping[str, Durations]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=[label])
    for value, durations in durations_by_label.items():
        if durations.number:
            family.add_metric([value], durations.cumulative(), durations.total)
    return family
