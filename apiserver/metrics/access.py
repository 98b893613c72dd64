"""Authentication and authorization: upstream's metrics under upstream's names.

They are on the path of every request, so observing is a few additions; the metric families are built at each
scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from mockube.apiserver.metrics.admission import Durations
from mockube.apiserver.metrics.credentials import ImpersonationMetrics

_BUCKETS: Final = tuple(0.001 * 2**power for power in range(15))
_NAMED: Final = frozenset(
    {"admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"}
)
SUCCESS, FAILURE, ERROR = "success", "failure", "error"
ALLOWED, DENIED, UNDECIDED = "allowed", "denied", "no-opinion"

Decisions = Callable[[], Mapping[tuple[str, str], tuple[int, int]]]
"""By type and name of an authorizer, how often it allowed and denied."""


class AccessMetrics(Collector):
    def __init__(self, decisions: Decisions, monotonic: Callable[[], float]) -> None:
        self._decisions = decisions
        self.monotonic = monotonic
        self.authentication = {result: Durations(_BUCKETS) for result in (SUCCESS, FAILURE, ERROR)}
        self.authorization = {result: Durations(_BUCKETS) for result in (ALLOWED, DENIED, UNDECIDED, ERROR)}
        self.impersonation = ImpersonationMetrics()
        self._users: Counter[str] = Counter()

    def authenticated(self, user: str, began: float) -> None:
        """Count a user who was authenticated, by one of few names."""
        self._users[user if user in _NAMED else "email_id" if "@" in user else "other"] += 1
        self.authentication[SUCCESS].observe(self.monotonic() - began)

    def collect(self) -> Iterable[Metric]:
        yield _counter(
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


def _attempts(subsystem: str, name: str, found: Mapping[str, Durations]) -> Iterable[Metric]:
    counts = {result: sum(durations.counts) for result, durations in found.items()}
    yield _counter(name, f"Attempts of {subsystem}, by result.", "result", counts)
    family = HistogramMetricFamily(
        f"{subsystem}_duration_seconds", f"How long {subsystem} took, by result.", labels=["result"]
    )
    for result, durations in found.items():
        if counts[result]:
            sums = zip((*map(str, _BUCKETS), "+Inf"), accumulate(durations.counts), strict=True)
            family.add_metric([result], [*sums], durations.total)
    yield family


def _counter(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    """Return a counter whose name need not end in _total, as some of upstream's do not."""
    family = Metric(name.removesuffix("_total"), text, "counter")
    for value, count in counts.items():
        if count:
            family.add_sample(name, {label: value}, count)
    return family
