"""Requests, by the labels of upstream.

Counting is on the path of every request, so it is a few additions to plain numbers. Labels come from the rows of resources
and from a fixed set of words, never from values that a client sent, so that no client can create many of them.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.request_info import CONNECT_SUBRESOURCES, RequestInfo
from mockube.component_base.metrics import MetricsRegistry, Number

from . import families

_REMOVAL: Final = re.compile(r"unavailable in v(\d+\.\d+)\+")
_READ_ONLY = frozenset({"GET", "LIST", "WATCH"})
_LONG_RUNNING: Final = frozenset({"WATCH", "CONNECT"})
_KNOWN_VERBS = _READ_ONLY | {"CONNECT", "POST", "PUT", "PATCH", "APPLY", "DELETE"}
_VERBS = {"create": "POST", "update": "PUT", "deletecollection": "DELETE"}
_SIZED: Final = frozenset({"GET", "LIST", "WATCH"})
_BODIES: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "patch", "DELETE": "delete"}
"""The label of the size of a body, by verb."""


class Route(NamedTuple):
    """What a request that reached its endpoint is counted as, besides its verb, as by upstream's handlers."""

    component: str = "apiserver"
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""


RESOURCE_ROUTE: Final = Route()
"""The route of all requests for resources: their labels are those of the resource."""


class Labels(NamedTuple):
    """The labels under which a request is counted, in the order of `families.REQUEST_LABELS`."""

    verb: str
    dry_run: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    scope: str = ""
    component: str = "apiserver"

    def without_dry_run(self) -> tuple[str, ...]:
        return (self.verb, *self[2:])


def labels(info: RequestInfo, resource: Resource | None, *, dry_run: bool, applies: bool) -> Labels:
    """Return the labels of a request; only the verb if it is not for a resource of this server."""
    return (_labels_usual if len(info.path) <= _USUAL_LENGTH else _labels)(info, resource, dry_run, applies)


def _labels(info: RequestInfo, resource: Resource | None, dry_run: bool, applies: bool) -> Labels:  # noqa: FBT001 - remembered by position
    verb = "APPLY" if applies else _VERBS.get(info.verb, info.verb.upper())
    if info.subresource in CONNECT_SUBRESOURCES:
        verb = "CONNECT"
    if verb == "HEAD":
        verb = "GET"
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


def _body_verb(labels: Labels) -> str | None:
    """Return the label of the size of a body."""
    if labels.verb == "DELETE" and labels.scope != "resource":
        return "delete_collection"
    return _BODIES.get(labels.verb)


class RequestCounts:
    """The numbers of requests with the same labels."""

    __slots__ = ("active", "bodies", "codes", "duration", "labels", "metrics", "sizes", "sli_duration")

    def __init__(self, metrics: "RequestMetrics", labels: Labels) -> None:
        self.metrics = metrics
        self.labels = labels
        bare = labels.without_dry_run()
        if labels.verb in _LONG_RUNNING:
            self.active = metrics.longrunning.of(*bare) if labels.resource else Number()
        else:
            self.active = metrics.in_flight.of("readOnly" if labels.verb in _READ_ONLY else "mutating")
        self.codes: dict[int, Number] = {}
        self.duration = metrics.durations.of(*labels)
        has_objective = not labels.dry_run and labels.verb != "WATCH"
        self.sli_duration = metrics.sli_durations.of(*bare) if has_objective else None
        is_sized = labels.verb in _SIZED or not labels.scope  # of a page, whatever the method
        self.sizes = metrics.sizes.of(*bare) if is_sized else None
        body = _body_verb(labels) if labels.resource else None
        self.bodies = metrics.bodies.of(labels.group, labels.resource, body) if body else None

    def code(self, code: int) -> Number:
        """Count a code for the first time."""
        number = self.codes[code] = self.metrics.totals.of(*self.labels, str(code))
        return number


class RequestMetrics:
    """Counts requests; `find` returns the resource of a group, version and name."""

    def __init__(self, find: Callable[[str, str, str], Resource | None], metrics: MetricsRegistry) -> None:
        self._find = find
        self._counts: dict[Labels, RequestCounts] = {}
        self.totals = metrics.numbers(families.REQUESTS)
        self.durations = metrics.distributions(families.REQUEST_DURATION)
        self.sli_durations = metrics.distributions(families.REQUEST_SLI_DURATION)
        self.sizes = metrics.distributions(families.RESPONSE_SIZES)
        self.bodies = metrics.distributions(families.REQUEST_BODY_SIZE)
        self.in_flight = metrics.numbers(families.CURRENT_INFLIGHT)
        self.longrunning = metrics.numbers(families.LONGRUNNING)
        self._aborted = metrics.numbers(families.REQUEST_ABORTS)
        self._terminations = metrics.numbers(families.REQUEST_TERMINATIONS)
        self._deprecated = metrics.numbers(families.REQUESTED_DEPRECATED_APIS)
        for kind in ("mutating", "readOnly"):
            self.in_flight.of(kind)
            metrics.numbers(families.CURRENT_INQUEUE).of(kind)

    def begin(self, labels: Labels) -> RequestCounts:
        """Count a request as in flight; return the counts to pass to `end`."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = RequestCounts(self, labels)
            self._note_deprecated(labels)
        counts.active.value += 1
        return counts

    def end(
        self,
        counts: RequestCounts,
        code: int | None,
        seconds: float,
        size: int | None,
        webhooks: float = 0,
        route: Route | None = RESOURCE_ROUTE,
    ) -> None:
        """Count the end of a request, which has no code if it was aborted; `webhooks` is the time of admission webhooks.

        Without a route, the request is not counted: it was refused before its endpoint, or there is none.
        """
        counts.active.value -= 1
        if code is None or route is None:
            return
        if route is not RESOURCE_ROUTE:
            counts = self._counts_of_page(counts.labels, route)
        (counts.codes.get(code) or counts.code(code)).value += 1
        counts.duration.observe(seconds)
        if counts.sli_duration is not None:
            counts.sli_duration.observe(seconds - webhooks)
        if counts.sizes is not None and size is not None:
            counts.sizes.observe(size)

    def _counts_of_page(self, labels: Labels, route: Route) -> RequestCounts:
        own = Labels(labels.verb, labels.dry_run, *route[1:], scope="", component=route.component)
        counts = self._counts.get(own)
        if counts is None:
            counts = self._counts[own] = RequestCounts(self, own)
        return counts

    def drop(self, counts: RequestCounts, code: int) -> None:
        """Count a request that was refused because too many are in flight."""
        (counts.codes.get(code) or counts.code(code)).value += 1

    def abort(self, counts: RequestCounts) -> None:
        """Count a response that was aborted after its beginning because it took too long or was not read, or one that a fault has cut."""
        labels = counts.labels
        self._aborted.add(1, labels.verb, *labels[2:7])

    def terminate(self, counts: RequestCounts, code: int) -> None:
        """Count a request that the server ended to protect itself."""
        self._terminations.add(1, *counts.labels.without_dry_run(), str(code))

    def _note_deprecated(self, labels: Labels) -> None:
        """Note the first request for a deprecated API; the release that removes it is in its warning."""
        resource = self._find(labels.group, labels.version, labels.resource) if labels.resource else None
        if resource is not None and resource.deprecated:
            removal = _REMOVAL.search(resource.deprecated)
            self._deprecated.set(1, *labels[2:6], removal[1] if removal else "")
