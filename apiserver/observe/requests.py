"""How many requests there are, how long they take, and how they end: upstream's metrics under upstream's names.

Counting is on the way of every request, so it is a few additions to plain numbers; the families that Prometheus reads
are made of them when it asks. Labels come from the rows of resources and from fixed words, never from what a client
sent, so that no client can make them many.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from apiserver.http.requestinfo import RequestInfo
from apiserver.resources.spec import Resource

_MILLISECONDS = (5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500)
_SECONDS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
BUCKETS = (*(limit / 1000 for limit in _MILLISECONDS), *map(float, _SECONDS))
"""Seconds; upstream's."""

_READ_ONLY = frozenset({"GET", "LIST", "WATCH"})
_KNOWN_VERBS = frozenset(
    {"GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}
)
_VERBS = {"create": "POST", "update": "PUT", "deletecollection": "DELETECOLLECTION"}


class Labels(NamedTuple):
    """What a request is counted under."""

    verb: str
    dry_run: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""
    component: str = "apiserver"


def labels(info: RequestInfo, resource: Resource | None, *, dry_run: bool, applies: bool) -> Labels:
    """What a request is counted under; for what is no resource of this server, by its verb alone."""
    return (_labels_usual if len(info.path) <= _USUAL_LENGTH else _labels)(info, resource, dry_run, applies)


def _labels(info: RequestInfo, resource: Resource | None, dry_run: bool, applies: bool) -> Labels:  # noqa: FBT001 - remembered by position
    verb = "APPLY" if applies else _VERBS.get(info.verb, info.verb.upper())
    if resource is None:
        return Labels(verb=verb if verb in _KNOWN_VERBS else "OTHER")
    subresource = info.subresource if resource.subresource(info.subresource) else ""
    return Labels(
        verb=verb,
        dry_run="All" if dry_run else "",
        group=resource.group,
        version=resource.version,
        resource=resource.name,
        subresource=subresource,
        scope="resource" if info.name else "namespace" if info.namespace else "cluster",
    )


# The same few paths are asked for again and again; a long one is a rarity that shall not fill the memory.
_USUAL_LENGTH: Final = 255
_labels_usual = lru_cache(maxsize=4096)(_labels)


class _Durations:
    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.total = 0.0


class RequestMetrics(Collector):
    """The numbers, and the families made of them."""

    def __init__(self) -> None:
        self._codes: Counter[tuple[Labels, int]] = Counter()
        self._durations: dict[Labels, _Durations] = {}
        self._in_flight: Counter[str] = Counter()
        self._watches: Counter[Labels] = Counter()

    def begin(self, under: Labels) -> None:
        self._in_flight[_kind(under.verb)] += 1

    def end(self, under: Labels, code: int, seconds: float) -> None:
        self._in_flight[_kind(under.verb)] -= 1
        self._codes[under, code] += 1
        durations = self._durations.get(under)
        if durations is None:
            durations = self._durations[under] = _Durations()
        durations.buckets[bisect_left(BUCKETS, seconds)] += 1
        durations.total += seconds

    def watch_begins(self, under: Labels) -> None:
        self._watches[under] += 1

    def watch_ends(self, under: Labels, code: int) -> None:
        self._watches[under] -= 1
        self._codes[under, code] += 1

    def collect(self) -> Iterable[Metric]:
        yield self._collect_totals()
        yield self._collect_durations()
        yield self._collect_in_flight()
        yield self._collect_watches()

    def _collect_totals(self) -> Metric:
        family = CounterMetricFamily(
            "apiserver_request",
            "Requests by what they were and how they ended.",
            labels=[*Labels._fields, "code"],
        )
        for (under, code), count in self._codes.items():
            family.add_metric([*under, str(code)], count)
        return family

    def _collect_durations(self) -> Metric:
        family = HistogramMetricFamily(
            "apiserver_request_duration_seconds", "How long requests took.", labels=Labels._fields
        )
        for under, durations in self._durations.items():
            family.add_metric(list(under), _cumulative(durations.buckets), durations.total)
        return family

    def _collect_in_flight(self) -> Metric:
        family = GaugeMetricFamily(
            "apiserver_current_inflight_requests",
            "Requests that are being answered.",
            labels=["request_kind"],
        )
        for kind in ("mutating", "readOnly"):
            family.add_metric([kind], self._in_flight[kind])
        return family

    def _collect_watches(self) -> Metric:
        names = [name for name in Labels._fields if name != "dry_run"]
        family = GaugeMetricFamily("apiserver_longrunning_requests", "Watches that are open.", labels=names)
        for under, count in self._watches.items():
            family.add_metric([getattr(under, name) for name in names], count)
        return family


def _kind(verb: str) -> str:
    return "readOnly" if verb in _READ_ONLY else "mutating"


def _cumulative(buckets: Iterable[int]) -> list[tuple[str, float]]:
    made, below = [], 0
    for limit, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
        below += count
        made.append((limit, float(below)))
    return made
